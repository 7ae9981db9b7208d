// BlockTable: from a block's identity to the run that holds it, at about six bytes a block. Only the writer asks it
// (where is the block that this event names?); lookups follow chains and need no more than RunTable.
//
// The table holds no identities: an entry is 16 bits of the identity (the tag) and 24 bits of run number, and whoever
// asks compares the full 128 bits in the runs whose tag fits (at 12 million blocks a wrong one in 25 lookups).
// A bucket is one cache line of twelve entries; what does not fit goes into the next one, and a bucket counts who has
// passed it, so that a search knows where to end and erasing leaves no tombstones: churn does not grow the table. The
// tag alone says where a search starts, so growing reads no identity; 4,096 shards, so that it moves little at a time.
//
// A shard is some segments of four buckets, all of one size for all shards, so that one that grows or shrinks takes and
// leaves nothing that another could not use:
//
//             shard 0  shard 1  shard 2 ...
//   level 0   [ 4   ]  [ 4   ]  [ 4   ]       buckets 0..3 of each shard
//   level 1   [ 4   ]  [ 4   ]  [ -   ]       buckets 4..7
//
// Every call is one cache miss in a large index: prefetch() the blocks of an event first.
// Thread safety: none; the writer's.
// Invariants: one entry per block; a bucket that was passed is counted as passed by each entry further on; a shard
// has room for one more.
#pragma once

#include <emmintrin.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/hash128.h"
#include "radix_index/prefetch.h"
#include "radix_index/run_memory.h"

namespace warmpath {

inline constexpr uint32_t kMaxRuns = uint32_t{1} << 24;

class BlockTable {
 public:
  explicit BlockTable(RunMemory& memory) : memory_(memory), shards_(kShards) {}
  ~BlockTable();
  BlockTable(const BlockTable&) = delete;
  BlockTable& operator=(const BlockTable&) = delete;

  // Calls `is_there(run)` for the runs that may hold the block until one says true.
  template <typename IsThere>
  void find(Hash128 identity, IsThere is_there) const {
    const size_t shard = shard_of(identity);
    const uint32_t buckets = shards_[shard].buckets();
    if (buckets == 0) return;
    const uint16_t tag = tag_of(identity);
    uint32_t at = home_of(tag, buckets);
    for (uint32_t looked = 0; looked < buckets; ++looked, at = next(at, buckets)) {
      const Bucket& bucket = bucket_at(shard, at);
      for (uint32_t fits = bucket.equal(tag); fits != 0; fits &= fits - 1) {
        if (is_there(bucket.run(static_cast<uint32_t>(std::countr_zero(fits))))) return;
      }
      if (bucket.passed == 0) return;
    }
  }
  WARMPATH_PREFETCHES void prefetch(Hash128 identity) const {
    const size_t shard = shard_of(identity);
    const uint32_t buckets = shards_[shard].buckets();
    if (buckets != 0) warmpath::prefetch(&bucket_at(shard, home_of(tag_of(identity), buckets)));
  }

  // REQUIRES that the block is not in the table, and run < kMaxRuns.
  void insert(Hash128 identity, uint32_t run);
  // REQUIRES that the block is in the table, at `from`.
  void move(Hash128 identity, uint32_t from, uint32_t to);
  // REQUIRES that the block is in the table, at `run`.
  void erase(Hash128 identity, uint32_t run);

  size_t size() const { return size_; }
  size_t bytes() const {
    return segments_ * RunMemory::piece_bytes(sizeof(Segment)) + levels_.size() * RunMemory::piece_bytes(kLevelBytes);
  }

 private:
  static constexpr size_t kShards = 4096;
  static constexpr uint32_t kEntries = 12;
  static constexpr uint32_t kSegmentBuckets = 4;
  static constexpr uint16_t kEmpty = 0;

  struct alignas(64) Bucket {
    uint16_t tags[kEntries] = {};
    uint8_t runs[kEntries][3] = {};
    uint32_t passed = 0;  // entries in later buckets whose search starts here or before

    // Bit n is about entry n.
    uint32_t equal(uint16_t tag) const {
      const __m128i wanted = _mm_set1_epi16(static_cast<short>(tag));
      const __m128i low = _mm_cmpeq_epi16(_mm_load_si128(reinterpret_cast<const __m128i*>(tags)), wanted);
      const __m128i high = _mm_cmpeq_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(tags + 8)), wanted);
      return static_cast<uint32_t>(_mm_movemask_epi8(_mm_packs_epi16(low, high))) & ((1u << kEntries) - 1);
    }
    uint32_t run(uint32_t entry) const {
      return runs[entry][0] | static_cast<uint32_t>(runs[entry][1]) << 8 | static_cast<uint32_t>(runs[entry][2]) << 16;
    }
    void set_run(uint32_t entry, uint32_t run) {
      runs[entry][0] = static_cast<uint8_t>(run);
      runs[entry][1] = static_cast<uint8_t>(run >> 8);
      runs[entry][2] = static_cast<uint8_t>(run >> 16);
    }
  };
  static_assert(sizeof(Bucket) == 64);
  using Segment = std::array<Bucket, kSegmentBuckets>;
  struct Shard {
    uint32_t segments = 0;
    uint32_t used = 0;  // entries
    uint32_t buckets() const { return segments * kSegmentBuckets; }
  };
  struct Entry {
    uint32_t at;  // bucket
    uint32_t entry;
  };
  static constexpr size_t kLevelBytes = kShards * sizeof(Segment*);

  static size_t shard_of(Hash128 identity) { return identity.hi >> 52; }
  // Never kEmpty. Bits of the other half than the shard's, so that both are even.
  static uint16_t tag_of(Hash128 identity) { return static_cast<uint16_t>(std::max<uint64_t>(identity.lo >> 48, 1)); }
  static uint32_t home_of(uint16_t tag, uint32_t buckets) {
    return static_cast<uint32_t>((static_cast<uint64_t>(tag) * buckets) >> 16);
  }
  static uint32_t next(uint32_t at, uint32_t buckets) { return ++at == buckets ? 0 : at; }
  const Bucket& bucket_at(size_t shard, uint32_t at) const {
    return (*levels_[at / kSegmentBuckets][shard])[at % kSegmentBuckets];
  }
  Bucket& bucket_at(size_t shard, uint32_t at) { return (*levels_[at / kSegmentBuckets][shard])[at % kSegmentBuckets]; }
  // How many segments a shard grows or shrinks by.
  static uint32_t step(uint32_t segments) { return std::max<uint32_t>(1, segments / 16); }

  // REQUIRES an empty place.
  void put(size_t shard, uint16_t tag, uint32_t run);
  Entry entry_of(size_t shard, uint16_t tag, uint32_t run) const;
  // Gives the shard so many segments and puts its entries where they belong then.
  void resize(size_t shard, uint32_t segments);

  RunMemory& memory_;
  std::vector<Shard> shards_;
  std::vector<Segment**> levels_;  // [level][shard]
  size_t segments_ = 0;
  size_t size_ = 0;
  std::vector<Bucket> moving_;  // while a shard is resized
};

}  // namespace warmpath
