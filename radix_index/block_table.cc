#include "radix_index/block_table.h"

#include <new>
#include <utility>

#include "base/check.h"

namespace warmpath {

BlockTable::~BlockTable() {
  for (size_t shard = 0; shard < kShards; ++shard) {
    for (uint32_t level = 0; level < shards_[shard].segments; ++level) {
      memory_.release(levels_[level][shard], sizeof(Segment));
    }
  }
  for (Segment** level : levels_) memory_.release(level, kLevelBytes);
}

void BlockTable::insert(Hash128 identity, uint32_t run) {
  const size_t shard = shard_of(identity);
  // At most 15 of 16 places are taken.
  const uint32_t segments = shards_[shard].segments;
  if ((shards_[shard].used + 1) * 16 > shards_[shard].buckets() * kEntries * 15) {
    resize(shard, segments + step(segments));
  }
  put(shard, tag_of(identity), run);
  ++shards_[shard].used;
  ++size_;
}

void BlockTable::move(Hash128 identity, uint32_t from, uint32_t to) {
  const size_t shard = shard_of(identity);
  const Entry found = entry_of(shard, tag_of(identity), from);
  bucket_at(shard, found.at).set_run(found.entry, to);
}

void BlockTable::erase(Hash128 identity, uint32_t run) {
  const size_t shard = shard_of(identity);
  const uint16_t tag = tag_of(identity);
  const Entry found = entry_of(shard, tag, run);
  bucket_at(shard, found.at).tags[found.entry] = kEmpty;
  const uint32_t buckets = shards_[shard].buckets();
  for (uint32_t at = home_of(tag, buckets); at != found.at; at = next(at, buckets)) --bucket_at(shard, at).passed;
  --shards_[shard].used;
  --size_;
  // Far enough below what it grew at that coming and going does not resize it each time.
  const uint32_t fewer = shards_[shard].segments - step(shards_[shard].segments);
  if (shards_[shard].used * 16 <= fewer * kSegmentBuckets * kEntries * 13) resize(shard, fewer);
}

void BlockTable::put(size_t shard, uint16_t tag, uint32_t run) {
  const uint32_t buckets = shards_[shard].buckets();
  for (uint32_t at = home_of(tag, buckets);; at = next(at, buckets)) {
    Bucket& bucket = bucket_at(shard, at);
    const uint32_t empty = bucket.equal(kEmpty);
    if (empty == 0) {
      ++bucket.passed;
      continue;
    }
    const auto entry = static_cast<uint32_t>(std::countr_zero(empty));
    bucket.tags[entry] = tag;
    bucket.set_run(entry, run);
    return;
  }
}

BlockTable::Entry BlockTable::entry_of(size_t shard, uint16_t tag, uint32_t run) const {
  const uint32_t buckets = shards_[shard].buckets();
  uint32_t at = home_of(tag, buckets);
  // Two blocks of one run with one tag have entries that are alike: either will do.
  for (uint32_t looked = 0;; ++looked, at = next(at, buckets)) {
    WARMPATH_CHECK(looked < buckets, "a block that is stored must be in the table");
    const Bucket& bucket = bucket_at(shard, at);
    for (uint32_t fits = bucket.equal(tag); fits != 0; fits &= fits - 1) {
      const auto entry = static_cast<uint32_t>(std::countr_zero(fits));
      if (bucket.run(entry) == run) return {at, entry};
    }
  }
}

void BlockTable::resize(size_t shard, uint32_t segments) {
  Shard& resized = shards_[shard];
  moving_.clear();
  for (uint32_t at = 0; at < resized.buckets(); ++at) moving_.push_back(bucket_at(shard, at));
  while (levels_.size() < segments) {
    auto* level = static_cast<Segment**>(memory_.allocate(kLevelBytes));
    std::fill_n(level, kShards, nullptr);
    levels_.push_back(level);
  }
  for (; resized.segments > segments; --resized.segments, --segments_) {
    memory_.release(std::exchange(levels_[resized.segments - 1][shard], nullptr), sizeof(Segment));
  }
  for (; resized.segments < segments; ++resized.segments, ++segments_) {
    levels_[resized.segments][shard] = static_cast<Segment*>(memory_.allocate(sizeof(Segment)));
  }
  for (uint32_t level = 0; level < segments; ++level) new (levels_[level][shard]) Segment{};
  for (const Bucket& bucket : moving_) {
    for (uint32_t entry = 0; entry < kEntries; ++entry) {
      if (bucket.tags[entry] != kEmpty) put(shard, bucket.tags[entry], bucket.run(entry));
    }
  }
}

}  // namespace warmpath
