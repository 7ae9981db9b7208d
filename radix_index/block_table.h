// BlockTable: from a block's identity to the run that holds it, at five bytes a slot.
//
// The table holds no identities: a slot is 16 bits of the identity (the tag) and 24 bits of run number. Whoever asks
// compares the full 128 bits in the runs whose tag fits (a wrong one is looked at once in five lookups, at 12 million
// blocks). Open addressing with linear probing; the tag alone says where probing starts, so growing and erasing move
// slots without reading a single identity, and erasing leaves no tombstones: churn does not grow the table. 1,024
// shards, so that growing one moves a thousandth of the slots.
//
// Thread safety: const methods concurrently with each other, nothing beside a writer.
// Invariants: one slot per block; between it and its home no slot is empty; at most 7/8 and (above a minimum) at least
// 1/4 of a shard's homes' worth of slots is used.
#pragma once

#include <emmintrin.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/hash128.h"

namespace warmpath {

inline constexpr uint32_t kMaxRuns = uint32_t{1} << 24;

class BlockTable {
 public:
  BlockTable() : shards_(kShards) {}

  // Calls `is_there(run)` for the runs that may hold the block until one says true.
  template <typename IsThere>
  void find(Hash128 identity, IsThere is_there) const {
    const Shard& shard = shards_[shard_of(identity)];
    if (shard.homes == 0) return;
    const uint16_t tag = tag_of(identity);
    for (uint32_t slot = home_of(tag, shard.homes);; slot += kGroup) {
      const Group group = look(shard, slot, tag);
      for (uint32_t fits = group.fits; fits != 0; fits &= fits - 1) {
        if (is_there(shard.runs[slot + static_cast<uint32_t>(std::countr_zero(fits))].get())) return;
      }
      if (group.empty != 0) return;
    }
  }

  // REQUIRES that the block is not in the table, and run < kMaxRuns.
  void insert(Hash128 identity, uint32_t run);
  // REQUIRES that the block is in the table, at `from`.
  void move(Hash128 identity, uint32_t from, uint32_t to);
  // REQUIRES that the block is in the table, at `run`.
  void erase(Hash128 identity, uint32_t run);

  size_t size() const { return size_; }
  size_t bytes() const { return bytes_ + kShards * sizeof(Shard); }

 private:
  static constexpr size_t kShards = 1024;
  static constexpr uint32_t kMinHomes = 8;
  static constexpr uint32_t kSpare = 24;  // slots past the last home
  static constexpr uint32_t kGroup = 8;   // tags looked at together; so many that are always empty end the array
  static constexpr uint16_t kEmpty = 0;

  struct RunNumber {
    uint8_t bytes[3];
    uint32_t get() const { return bytes[0] | bytes[1] << 8 | bytes[2] << 16; }
    void set(uint32_t run) {
      bytes[0] = static_cast<uint8_t>(run);
      bytes[1] = static_cast<uint8_t>(run >> 8);
      bytes[2] = static_cast<uint8_t>(run >> 16);
    }
  };
  struct Shard {
    std::unique_ptr<uint16_t[]> tags;   // [homes + kSpare + kGroup]
    std::unique_ptr<RunNumber[]> runs;  // [homes + kSpare]
    uint32_t homes = 0;
    uint32_t used = 0;
  };
  // Bit n is about the n-th of eight slots.
  struct Group {
    uint32_t fits;
    uint32_t empty;
  };

  static size_t shard_of(Hash128 identity) { return identity.hi >> 54; }
  // Never kEmpty. Bits of the other half than the shard's, so that both are even.
  static uint16_t tag_of(Hash128 identity) { return static_cast<uint16_t>(std::max<uint64_t>(identity.lo >> 48, 1)); }
  static uint32_t home_of(uint16_t tag, uint32_t homes) {
    return static_cast<uint32_t>((static_cast<uint64_t>(tag) * homes) >> 16);
  }
  static Group look(const Shard& shard, uint32_t slot, uint16_t tag) {
    const __m128i tags = _mm_loadu_si128(reinterpret_cast<const __m128i*>(&shard.tags[slot]));
    const auto bits = [](__m128i equal) {
      return static_cast<uint32_t>(_mm_movemask_epi8(_mm_packs_epi16(equal, _mm_setzero_si128())));
    };
    return {bits(_mm_cmpeq_epi16(tags, _mm_set1_epi16(static_cast<short>(tag)))),
            bits(_mm_cmpeq_epi16(tags, _mm_setzero_si128()))};
  }

  // False when the spare slots are full.
  static bool put(Shard& shard, uint16_t tag, RunNumber run);
  uint32_t slot_of(Hash128 identity, uint32_t run) const;
  void rebuild(Shard& shard, uint32_t homes);

  std::vector<Shard> shards_;
  size_t size_ = 0;
  size_t bytes_ = 0;  // of the shards' arrays
};

}  // namespace warmpath
