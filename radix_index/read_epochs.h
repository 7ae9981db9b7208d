// ReadEpochs: memory that readers may still look at is freed only once no reader that could see it is left.
//
// A reader counts itself in (enter), follows published pointers, and counts itself out: two increments, whatever the
// writer does, so it neither waits nor retries. The writer takes something out of sight first, retires it, and frees it
// in reclaim() after every counter has been seen at zero since. Each stripe of counters has two sides; new readers are
// sent to one while the other one drains, so a steady stream of readers cannot keep the writer from freeing.
//
// Why no fence is needed: the writer looks at a counter with a read-modify-write. If that comes first, the reader's own
// increment reads from it, and so the reader sees everything the writer did before; if it comes second, it is not zero.
// Thread safety: enter() from any thread; everything else from the one writer.
// Invariant: what retire() was given is freed exactly once; the destructor frees the rest (no reader may be left).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "radix_index/run_memory.h"

namespace warmpath {

class ReadEpochs {
 public:
  class [[nodiscard]] Reader {
   public:
    explicit Reader(std::atomic<uint32_t>& counter) : counter_(counter) {
      counter_.fetch_add(1, std::memory_order_acq_rel);
    }
    ~Reader() { counter_.fetch_sub(1, std::memory_order_release); }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

   private:
    std::atomic<uint32_t>& counter_;
  };

  explicit ReadEpochs(RunMemory& memory) : memory_(memory) {}
  ~ReadEpochs();
  ReadEpochs(const ReadEpochs&) = delete;
  ReadEpochs& operator=(const ReadEpochs&) = delete;

  Reader enter() const {
    return Reader(counters_[stripe_of_this_thread()].readers[side_.load(std::memory_order_relaxed)]);
  }

  // A piece of `bytes` of the RunMemory; nobody finds it any more.
  void retire(void* memory, size_t bytes);
  // Frees what it can without waiting.
  void reclaim();
  // The same once enough has come together to be worth looking at every counter.
  void reclaim_some() {
    if (retired_.size() >= kWorthALook) reclaim();
  }
  // As RunMemory counts them.
  size_t retired_bytes() const { return retired_bytes_; }

  // passed(ticket()) becomes true once every reader of now is gone (and reclaim() has noticed).
  uint64_t ticket() { return wanted_ = started_ + 1; }
  bool passed(uint64_t ticket) const { return finished_ >= ticket; }

 private:
  static constexpr size_t kStripes = 32;
  static constexpr size_t kWorthALook = 64;

  struct alignas(64) Counter {
    mutable std::array<std::atomic<uint32_t>, 2> readers{};
  };
  struct Retired {
    void* memory;
    size_t bytes;
  };

  static size_t stripe_of_this_thread();
  bool drained(uint32_t side);
  void turn();
  void free_all(std::vector<Retired>& list);

  RunMemory& memory_;
  std::array<Counter, kStripes> counters_;
  std::atomic<uint32_t> side_{0};  // where new readers count themselves

  std::vector<Retired> retired_;   // since the present cycle began
  std::vector<Retired> draining_;  // waits for the present cycle to end
  int sides_left_ = 0;             // of the present cycle; 0: none is under way
  uint64_t started_ = 0;           // cycles
  uint64_t finished_ = 0;
  uint64_t wanted_ = 0;  // a ticket asks for this many
  size_t retired_bytes_ = 0;
};

}  // namespace warmpath
