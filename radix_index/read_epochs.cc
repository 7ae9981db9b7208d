#include "radix_index/read_epochs.h"

#include <algorithm>

namespace warmpath {

ReadEpochs::~ReadEpochs() {
  free_all(draining_);
  free_all(retired_);
}

size_t ReadEpochs::stripe_of_this_thread() {
  static std::atomic<size_t> next{0};
  thread_local const size_t stripe = next.fetch_add(1, std::memory_order_relaxed) % kStripes;
  return stripe;
}

void ReadEpochs::retire(void* memory, size_t bytes) {
  retired_.push_back({memory, bytes});
  retired_bytes_ += RunMemory::piece_bytes(bytes);
}

void ReadEpochs::reclaim() {
  for (;;) {
    if (sides_left_ == 0) {
      if (retired_.empty() && wanted_ <= started_) return;
      draining_.swap(retired_);
      ++started_;
      sides_left_ = 2;
      turn();
    }
    // The side that readers have just been turned away from.
    while (drained(1 - side_.load(std::memory_order_relaxed))) {
      if (--sides_left_ == 0) break;
      turn();
    }
    if (sides_left_ > 0) return;
    free_all(draining_);
    finished_ = started_;
  }
}

void ReadEpochs::turn() { side_.store(1 - side_.load(std::memory_order_relaxed), std::memory_order_release); }

bool ReadEpochs::drained(uint32_t side) {
  return std::all_of(counters_.begin(), counters_.end(), [side](const Counter& counter) {
    return counter.readers[side].fetch_add(0, std::memory_order_acq_rel) == 0;
  });
}

void ReadEpochs::free_all(std::vector<Retired>& list) {
  for (const Retired& retired : list) {
    retired_bytes_ -= RunMemory::piece_bytes(retired.bytes);
    memory_.release(retired.memory, retired.bytes);
  }
  list.clear();
}

}  // namespace warmpath
