// What bench_index measures on: chains made of nothing but numbers, and a fleet of holders that report them. Thread
// safety: none.
#pragma once

#include <cstdint>
#include <vector>

#include "radix_index/radix_index.h"

namespace warmpath {

inline constexpr MonotonicNs kSecond = 1'000'000'000;

uint64_t mix(uint64_t z);

// Block `position` of the chain named `chain`.
Hash128 chain_block(uint64_t chain, int position);
std::vector<Hash128> stretch(uint64_t chain, int first, int count);

// Holders with event streams, one per replica of the index.
class BenchFleet {
 public:
  BenchFleet(RadixIndex& index, int holders);

  KvEventBatch stored(int holder, Hash128 parent, std::vector<Hash128> blocks);
  KvEventBatch removed(int holder, std::vector<Hash128> blocks);
  void apply(int holder, const KvEventBatch& batch, MonotonicNs now = kSecond) {
    index_.apply(ids_[static_cast<size_t>(holder)], batch, now);
  }
  ReplicaId id(int holder) const { return ids_[static_cast<size_t>(holder)]; }
  int holders() const { return static_cast<int>(ids_.size()); }
  uint64_t blocks() const { return blocks_; }  // in all batches so far

 private:
  KvEventBatch batch(int holder, KvEvent event);

  RadixIndex& index_;
  std::vector<ReplicaId> ids_;
  std::vector<uint64_t> sequences_;
  uint64_t blocks_ = 0;
};

}  // namespace warmpath
