// SharedIndex: the fleet's RadixIndex for many threads. Lookups go straight to it: they never wait for a writer.
// Writers take turns; a placement, which every request makes, never waits for its turn: whoever is writing does it on
// the way out. Thread safety: any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "radix_index/radix_index.h"

namespace warmpath {

class SharedIndex {
 public:
  explicit SharedIndex(size_t max_bytes) : index_(options(max_bytes)) {}

  void query(std::span<const Hash128> chain, MonotonicNs now, IndexMatches& matches) const {
    index_.query(chain, now, matches);
  }
  // As RadixIndex::place, now or within the moment that another writer still needs. A replica that has left the index
  // by then is passed over.
  void place(ReplicaId replica, std::span<const Hash128> chain, MonotonicNs now, double ttl_s, size_t held);
  // Any other write: `change` gets the index to itself.
  template <typename Change>
  auto write(Change change) {
    const Turn turn(*this);
    return change(index_);
  }
  // Any other read; in turn with the writers.
  template <typename Look>
  auto read(Look look) const {
    const Turn turn(const_cast<SharedIndex&>(*this));
    return look(static_cast<const RadixIndex&>(index_));
  }

 private:
  struct Placement {
    ReplicaId replica;
    std::vector<Hash128> chain;  // from `held - 1` on, if there is a block before
    size_t held;                 // 0 or 1: of `chain`
    MonotonicNs now;
    double ttl_s;
  };
  // The writer's turn. What was left behind meanwhile is done before it is over.
  class Turn {
   public:
    explicit Turn(SharedIndex& index) : index_(index) { index_.writers_.lock(); }
    ~Turn() {
      index_.place_left_behind();
      index_.writers_.unlock();
      index_.take_turn_if_needed();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    SharedIndex& index_;
  };

  static IndexOptions options(size_t max_bytes) {
    IndexOptions options;
    options.max_bytes = max_bytes;
    return options;
  }
  void place_left_behind();    // in turn
  void take_turn_if_needed();  // out of turn: somebody may have left something after the last look

  RadixIndex index_;
  std::mutex writers_;
  std::mutex left_mutex_;
  std::vector<Placement> left_;
  std::atomic<bool> any_left_{false};
};

}  // namespace warmpath
