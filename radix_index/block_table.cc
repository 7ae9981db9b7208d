#include "radix_index/block_table.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "radix_index/heap_bytes.h"

namespace warmpath {

void BlockTable::insert(Hash128 identity, uint32_t run) {
  Shard& shard = shards_[shard_of(identity)];
  // A rebuilt shard is three quarters full: a sixth of it comes in before the next time.
  const auto grow = [&] { rebuild(shard, std::max(kMinHomes, shard.used + shard.used / 3 + 2)); };
  if ((shard.used + 1) * 8 > shard.homes * 7) grow();
  RunNumber number;
  number.set(run);
  while (!put(shard, tag_of(identity), number)) rebuild(shard, shard.homes + shard.homes / 8 + kMinHomes);
  ++shard.used;
  ++size_;
}

void BlockTable::move(Hash128 identity, uint32_t from, uint32_t to) {
  shards_[shard_of(identity)].runs[slot_of(identity, from)].set(to);
}

void BlockTable::erase(Hash128 identity, uint32_t run) {
  Shard& shard = shards_[shard_of(identity)];
  // Whatever the hole would cut off from its home moves into it, and leaves the next hole (Knuth 6.4, algorithm R).
  uint32_t hole = slot_of(identity, run);
  for (uint32_t slot = hole + 1; shard.tags[slot] != kEmpty; ++slot) {
    if (home_of(shard.tags[slot], shard.homes) > hole) continue;
    shard.tags[hole] = shard.tags[slot];
    shard.runs[hole] = shard.runs[slot];
    hole = slot;
  }
  shard.tags[hole] = kEmpty;
  --shard.used;
  --size_;
  if (shard.used * 2 < shard.homes && shard.homes > kMinHomes) {
    rebuild(shard, std::max(kMinHomes, shard.used + shard.used / 3 + 2));
  }
}

bool BlockTable::put(Shard& shard, uint16_t tag, RunNumber run) {
  uint32_t slot = home_of(tag, shard.homes);
  uint32_t empty;
  while ((empty = look(shard, slot, tag).empty) == 0) slot += kGroup;
  slot += static_cast<uint32_t>(std::countr_zero(empty));
  if (slot >= shard.homes + kSpare) return false;
  shard.tags[slot] = tag;
  shard.runs[slot] = run;
  return true;
}

uint32_t BlockTable::slot_of(Hash128 identity, uint32_t run) const {
  const Shard& shard = shards_[shard_of(identity)];
  const uint16_t tag = tag_of(identity);
  // Two blocks of one run with one tag have slots that are alike: either will do.
  for (uint32_t slot = home_of(tag, shard.homes); shard.homes > 0; slot += kGroup) {
    const Group group = look(shard, slot, tag);
    for (uint32_t fits = group.fits; fits != 0; fits &= fits - 1) {
      const uint32_t found = slot + static_cast<uint32_t>(std::countr_zero(fits));
      if (shard.runs[found].get() == run) return found;
    }
    if (group.empty != 0) break;
  }
  WARMPATH_CHECK(false, "a block that is stored must be in the table");
  __builtin_unreachable();
}

void BlockTable::rebuild(Shard& shard, uint32_t homes) {
  Shard old = std::exchange(shard, Shard{});
  for (bool fits = false; !fits; homes += homes / 8) {
    shard.tags = std::make_unique<uint16_t[]>(homes + kSpare + kGroup);
    shard.runs = std::make_unique<RunNumber[]>(homes + kSpare);
    shard.homes = homes;
    shard.used = old.used;
    fits = true;
    for (uint32_t slot = 0; slot < (old.homes == 0 ? 0 : old.homes + kSpare) && fits; ++slot) {
      if (old.tags[slot] != kEmpty) fits = put(shard, old.tags[slot], old.runs[slot]);
    }
  }
  const auto heap = [](uint32_t of_homes) {
    if (of_homes == 0) return size_t{0};
    return heap_bytes((of_homes + kSpare + kGroup) * sizeof(uint16_t)) +
           heap_bytes((of_homes + kSpare) * sizeof(RunNumber));
  };
  bytes_ += heap(shard.homes);
  bytes_ -= heap(old.homes);
}

}  // namespace warmpath
