// Replica: one KV cache behind an endpoint, as requests see it: may it be used, how busy is it, how far is its index
// entry to be trusted. The fleet's monitor (replica_monitor.h) writes the state; requests write the books.
//
// Load has two sources. This gateway's own requests are counted from the moment they are routed; what the replica
// reports beyond those belongs to others (another gateway, a tool) and is added on top.
// Thread safety: any thread; one short mutex.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "policies/candidate.h"
#include "policies/prefill_book.h"
#include "proto/describe.h"
#include "router/recent_removals.h"
#include "router/upstream.h"

namespace warmpath {

enum class ReplicaState : uint8_t { kConnecting, kReady, kDown, kIncompatible };
std::string_view replica_state_name(ReplicaState state);

// What one prompt adds to a replica's books while it is there.
struct LoadShare {
  int32_t sequences = 1;
  int64_t uncached_tokens = 0;
  double prefill_s = 0;  // predicted
  bool started = false;
  PrefillBook::Ticket ticket = 0;  // set by book_sent()
};

class Replica {
 public:
  // `clock` outlives it.
  Replica(std::string name, std::string model, std::shared_ptr<Upstream> upstream, ReplicaId index_id,
          const Clock& clock);

  const std::string& name() const { return name_; }    // its address
  const std::string& model() const { return model_; }  // the served name
  Upstream& upstream() const { return *upstream_; }

  void book_sent(LoadShare& share);
  // Its first token is there.
  void book_started(LoadShare& share);
  void book_finished(const LoadShare& share);

  // Of its endpoint. What a candidate was given stays valid as long as the replica lives, whatever is set later.
  void set_labels(const Labels& labels);
  // Everything but the cached tokens and the rates.
  void fill(Candidate& candidate) const;
  bool usable() const;  // ready and not draining
  ReplicaState state() const;
  ReplicaId index_id() const { return index_id_.load(std::memory_order_acquire); }
  Trust trust() const { return trust_.load(std::memory_order_relaxed); }
  ReplicaDescription description() const;
  ReplicaStats stats() const;
  std::string trouble() const;  // why it is not ready, for people
  RecentRemovals& removals() { return removals_; }

  // The monitor's side.
  void set_state(ReplicaState state, std::string trouble);
  void set_ready(const ReplicaDescription& description);
  void set_stats(const ReplicaStats& stats);
  void set_trust(Trust trust) { trust_.store(trust, std::memory_order_relaxed); }
  void set_index_id(ReplicaId id) { index_id_.store(id, std::memory_order_release); }

 private:
  struct Load {
    int32_t running = 0;
    int32_t queued = 0;
    int64_t queued_tokens = 0;
  };

  const std::string name_;
  const std::string model_;
  const std::shared_ptr<Upstream> upstream_;
  const Clock& clock_;
  std::atomic<ReplicaId> index_id_;
  std::atomic<Trust> trust_{Trust::kPredicted};
  RecentRemovals removals_;

  mutable std::mutex mutex_;
  ReplicaState state_ = ReplicaState::kConnecting;
  std::string trouble_ = "not connected yet";
  ReplicaDescription description_;
  ReplicaStats stats_;
  Load own_;                  // by this gateway
  Load others_;               // what the last report showed beyond our own
  PrefillBook prefills_;      // own prompts without a first token
  std::list<Labels> labels_;  // all there ever were, the current ones last; one more per reload that changes them
};

}  // namespace warmpath
