#include "radix_index/bench_fleet.h"

#include <utility>

namespace warmpath {

// The finalizer of splitmix64 (Steele, Lea, Flood 2014).
uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

Hash128 chain_block(uint64_t chain, int position) {
  const uint64_t seed = chain * 0x10001 + static_cast<uint64_t>(position) + 1;
  return {mix(seed * 0x9e3779b97f4a7c15ull), mix(seed * 0xd1342543de82ef95ull + 7)};
}

std::vector<Hash128> stretch(uint64_t chain, int first, int count) {
  std::vector<Hash128> blocks;
  blocks.reserve(static_cast<size_t>(count));
  for (int n = first; n < first + count; ++n) blocks.push_back(chain_block(chain, n));
  return blocks;
}

BenchFleet::BenchFleet(RadixIndex& index, int holders) : index_(index), sequences_(static_cast<size_t>(holders)) {
  for (int n = 0; n < holders; ++n) {
    ids_.push_back(*index.add_replica());
    index.apply(ids_.back(), {1, 0, KvEventBatch::Kind::kSnapshotBegin, {}}, kSecond);
    index.apply(ids_.back(), {1, 0, KvEventBatch::Kind::kSnapshotEnd, {}}, kSecond);
  }
}

KvEventBatch BenchFleet::stored(int holder, Hash128 parent, std::vector<Hash128> blocks) {
  blocks_ += blocks.size();
  return batch(holder, BlocksStored{Tier::kDevice, parent, std::move(blocks)});
}

KvEventBatch BenchFleet::removed(int holder, std::vector<Hash128> blocks) {
  blocks_ += blocks.size();
  return batch(holder, BlocksRemoved{Tier::kDevice, std::move(blocks)});
}

KvEventBatch BenchFleet::batch(int holder, KvEvent event) {
  KvEventBatch made{1, ++sequences_[static_cast<size_t>(holder)], KvEventBatch::Kind::kLive, {}};
  made.events.push_back(std::move(event));
  return made;
}

}  // namespace warmpath
