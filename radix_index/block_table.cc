#include "radix_index/block_table.h"

#include "base/check.h"
#include "radix_index/heap_bytes.h"

namespace warmpath {

size_t BlockTable::size() const {
  size_t live = 0;
  for (const Shard& shard : shards_) live += shard.live;
  return live;
}

void BlockTable::put(Shard& shard, Hash128 identity, BlockPlace place) {
  uint32_t slot = home_of(identity, shard.capacity);
  while (shard.tags[slot] > kErased) slot = slot + 1 == shard.capacity ? 0 : slot + 1;
  if (shard.tags[slot] == kEmpty) ++shard.used;
  shard.tags[slot] = tag_of(identity);
  shard.places[slot] = place;
}

BlockTable::Slot BlockTable::slot_of(Hash128 identity, BlockPlace place) {
  Shard& shard = shards_[shard_of(identity)];
  uint32_t slot = shard.capacity == 0 ? 0 : home_of(identity, shard.capacity);
  for (uint32_t probed = 0; probed < shard.capacity; ++probed) {
    if (shard.tags[slot] > kErased && shard.places[slot] == place) return {&shard.places[slot], &shard.tags[slot]};
    slot = slot + 1 == shard.capacity ? 0 : slot + 1;
  }
  WARMPATH_CHECK(false, "a block that is stored must be in the table");
  __builtin_unreachable();
}

void BlockTable::resize(Shard& shard, uint32_t capacity) {
  bytes_ -= heap_bytes(shard.capacity * sizeof(BlockPlace)) + heap_bytes(shard.capacity);
  bytes_ += heap_bytes(capacity * sizeof(BlockPlace)) + heap_bytes(capacity);
  shard.places = capacity == 0 ? nullptr : std::make_unique<BlockPlace[]>(capacity);
  shard.tags = capacity == 0 ? nullptr : std::make_unique<uint8_t[]>(capacity);
  shard.capacity = capacity;
}

}  // namespace warmpath
