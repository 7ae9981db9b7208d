#include "radix_index/block_table.h"

#include <utility>

#include "base/check.h"
#include "radix_index/heap_bytes.h"

namespace warmpath {

void BlockTable::insert(Hash128 identity, uint32_t run) {
  Shard& shard = shards_[shard_of(identity)];
  // At most 15 of 16 places are taken, and 15 of 17 once rebuilt.
  if ((shard.used + 1) * 16 > shard.homes * kEntries * 15) rebuild(shard, homes_for(shard.used + shard.used / 16 + 1));
  while (!put(shard, tag_of(identity), run)) rebuild(shard, shard.homes + shard.homes / 8 + 1);
  ++shard.used;
  ++size_;
}

void BlockTable::move(Hash128 identity, uint32_t from, uint32_t to) {
  const Entry found = entry_of(identity, from);
  found.bucket->set_run(found.entry, to);
}

void BlockTable::erase(Hash128 identity, uint32_t run) {
  Shard& shard = shards_[shard_of(identity)];
  const Entry found = entry_of(identity, run);
  found.bucket->tags[found.entry] = kEmpty;
  Bucket* const home = &shard.buckets[home_of(tag_of(identity), shard.homes)];
  for (Bucket* passed = home; passed != found.bucket; ++passed) --passed->passed;
  --shard.used;
  --size_;
  if (shard.used == 0) {
    bytes_ -= shard_bytes(shard.homes);
    shard = Shard{};
  } else if (shard.used * 2 < shard.homes * kEntries && homes_for(shard.used) * 4 < shard.homes * 3) {
    rebuild(shard, homes_for(shard.used));
  }
}

bool BlockTable::put(Shard& shard, uint16_t tag, uint32_t run) {
  Bucket* const home = &shard.buckets[home_of(tag, shard.homes)];
  Bucket* const end = &shard.buckets[shard.homes] + kSpare;
  for (Bucket* bucket = home; bucket != end; ++bucket) {
    const uint32_t empty = bucket->equal(kEmpty);
    if (empty == 0) continue;
    const auto entry = static_cast<uint32_t>(std::countr_zero(empty));
    bucket->tags[entry] = tag;
    bucket->set_run(entry, run);
    for (Bucket* passed = home; passed != bucket; ++passed) ++passed->passed;
    return true;
  }
  return false;
}

BlockTable::Entry BlockTable::entry_of(Hash128 identity, uint32_t run) {
  Shard& shard = shards_[shard_of(identity)];
  WARMPATH_CHECK(shard.homes > 0, "a block that is stored must be in the table");
  const uint16_t tag = tag_of(identity);
  // Two blocks of one run with one tag have entries that are alike: either will do.
  for (Bucket* bucket = &shard.buckets[home_of(tag, shard.homes)];; ++bucket) {
    for (uint32_t fits = bucket->equal(tag); fits != 0; fits &= fits - 1) {
      const auto entry = static_cast<uint32_t>(std::countr_zero(fits));
      if (bucket->run(entry) == run) return {bucket, entry};
    }
    WARMPATH_CHECK(bucket->passed != 0, "a block that is stored must be in the table");
  }
}

size_t BlockTable::shard_bytes(uint32_t homes) {
  // Aligned allocation costs one line more, about.
  return homes == 0 ? 0 : heap_bytes((homes + kSpare + 1) * sizeof(Bucket));
}

void BlockTable::rebuild(Shard& shard, uint32_t homes) {
  Shard old = std::exchange(shard, Shard{});
  for (bool fits = false; !fits; homes += homes / 8 + 1) {
    shard.buckets = std::make_unique<Bucket[]>(homes + kSpare);
    shard.homes = homes;
    shard.used = old.used;
    fits = true;
    for (uint32_t n = 0; n < (old.homes == 0 ? 0 : old.homes + kSpare) && fits; ++n) {
      const Bucket& bucket = old.buckets[n];
      for (uint32_t entry = 0; entry < kEntries && fits; ++entry) {
        if (bucket.tags[entry] != kEmpty) fits = put(shard, bucket.tags[entry], bucket.run(entry));
      }
    }
  }
  bytes_ += shard_bytes(shard.homes);
  bytes_ -= shard_bytes(old.homes);
}

}  // namespace warmpath
