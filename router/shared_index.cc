#include "router/shared_index.h"

#include <algorithm>

namespace warmpath {

void SharedIndex::place(ReplicaId replica, std::span<const Hash128> chain, MonotonicNs now, double ttl_s, size_t held) {
  if (held >= chain.size()) return;
  if (writers_.try_lock()) {
    if (index_.has_replica(replica)) index_.place(replica, chain, now, ttl_s, held);
    place_left_behind();
    writers_.unlock();
  } else {
    const std::span<const Hash128> needed = chain.subspan(held - std::min<size_t>(held, 1));
    const std::lock_guard lock(left_mutex_);
    left_.push_back({replica, {needed.begin(), needed.end()}, std::min<size_t>(held, 1), now, ttl_s});
    any_left_.store(true, std::memory_order_seq_cst);
  }
  take_turn_if_needed();
}

void SharedIndex::place_left_behind() {
  while (any_left_.load(std::memory_order_seq_cst)) {
    std::vector<Placement> left;
    {
      const std::lock_guard lock(left_mutex_);
      left.swap(left_);
      any_left_.store(false, std::memory_order_seq_cst);
    }
    for (const Placement& placement : left) {
      if (!index_.has_replica(placement.replica)) continue;
      index_.place(placement.replica, placement.chain, placement.now, placement.ttl_s, placement.held);
    }
  }
}

void SharedIndex::take_turn_if_needed() {
  // Who leaves something and finds the turn taken may go: its owner looks once more after giving it back.
  while (any_left_.load(std::memory_order_seq_cst) && writers_.try_lock()) {
    place_left_behind();
    writers_.unlock();
  }
}

}  // namespace warmpath
