// BlockTable: from a block's identity to where it is stored, at five bytes a slot.
//
// The table holds no identities: a slot is a BlockPlace and one byte of the identity's hash (the tag); whoever asks
// compares the full 128 bits in the run that the place names. Open addressing with linear probing over the tags; 1,024
// shards, so that growing one touches a thousandth of the blocks. Load is kept below 7/8 and above 1/4 (erased slots
// are reclaimed when a shard is rebuilt, so churn does not grow it).
//
// Thread safety: const methods concurrently with each other, nothing beside a writer.
// Invariant: one slot per block; a slot's tag is tag_of(its identity).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/hash128.h"

namespace warmpath {

// A block is ids[offset] of a run. Packed into 32 bits: 24 for the run, 8 for the offset.
inline constexpr uint32_t kMaxRuns = uint32_t{1} << 24;
inline constexpr uint32_t kMaxRunBlocks = 256;

struct BlockPlace {
  uint32_t packed = UINT32_MAX;

  BlockPlace() = default;
  BlockPlace(uint32_t run, uint32_t offset) : packed(run << 8 | offset) {}
  uint32_t run() const { return packed >> 8; }
  uint32_t offset() const { return packed & 0xff; }
  bool operator==(const BlockPlace&) const = default;
};

class BlockTable {
 public:
  BlockTable() : shards_(kShards) {}

  // The place for which `is_at(place)` says that the identity is there; a default BlockPlace when there is none.
  template <typename IsAt>
  BlockPlace find(Hash128 identity, IsAt is_at) const {
    const Shard& shard = shards_[shard_of(identity)];
    if (shard.capacity == 0) return {};
    const uint8_t tag = tag_of(identity);
    for (uint32_t slot = home_of(identity, shard.capacity);; slot = slot + 1 == shard.capacity ? 0 : slot + 1) {
      if (shard.tags[slot] == kEmpty) return {};
      if (shard.tags[slot] == tag && is_at(shard.places[slot])) return shard.places[slot];
    }
  }

  // REQUIRES that the identity is not in the table. `identity_at(place)` gives any stored block's identity.
  template <typename IdentityAt>
  void insert(Hash128 identity, BlockPlace place, IdentityAt identity_at) {
    Shard& shard = shards_[shard_of(identity)];
    if ((shard.used + 1) * 8 > shard.capacity * 7) rebuild(shard, capacity_for(shard.live + 1), identity_at);
    put(shard, identity, place);
    ++shard.live;
  }

  // REQUIRES that the identity is at `from`; afterwards it is at `to`.
  void move(Hash128 identity, BlockPlace from, BlockPlace to) { *slot_of(identity, from).place = to; }

  // REQUIRES that the identity is at `place`.
  template <typename IdentityAt>
  void erase(Hash128 identity, BlockPlace place, IdentityAt identity_at) {
    Shard& shard = shards_[shard_of(identity)];
    *slot_of(identity, place).tag = kErased;
    --shard.live;
    if (shard.live * 4 < shard.capacity && shard.capacity > kMinCapacity) {
      rebuild(shard, capacity_for(shard.live), identity_at);
    }
  }

  size_t size() const;
  size_t bytes() const { return bytes_ + kShards * sizeof(Shard); }

 private:
  static constexpr size_t kShards = 1024;
  static constexpr uint32_t kMinCapacity = 8;
  static constexpr uint8_t kEmpty = 0;
  static constexpr uint8_t kErased = 1;

  struct Shard {
    std::unique_ptr<BlockPlace[]> places;
    std::unique_ptr<uint8_t[]> tags;
    uint32_t capacity = 0;
    uint32_t live = 0;
    uint32_t used = 0;  // live and erased
  };
  struct Slot {
    BlockPlace* place;
    uint8_t* tag;
  };

  static size_t shard_of(Hash128 identity) { return identity.hi >> 54; }
  static uint8_t tag_of(Hash128 identity) { return static_cast<uint8_t>(2 + (identity.hi & 0xffff) % 254); }
  static uint32_t home_of(Hash128 identity, uint32_t capacity) {
    return static_cast<uint32_t>((static_cast<unsigned __int128>(identity.lo) * capacity) >> 64);
  }
  // A rebuilt shard is 3/4 full: room for a sixth more before the next time.
  static uint32_t capacity_for(uint32_t live) { return std::max(kMinCapacity, live + live / 3 + 2); }

  static void put(Shard& shard, Hash128 identity, BlockPlace place);
  Slot slot_of(Hash128 identity, BlockPlace place);
  void resize(Shard& shard, uint32_t capacity);

  template <typename IdentityAt>
  void rebuild(Shard& shard, uint32_t capacity, IdentityAt identity_at) {
    Shard old = std::move(shard);
    shard = Shard{};
    resize(shard, capacity);
    for (uint32_t slot = 0; slot < old.capacity; ++slot) {
      if (old.tags[slot] > kErased) put(shard, identity_at(old.places[slot]), old.places[slot]);
    }
    shard.live = old.live;
    resize(old, 0);
  }

  std::vector<Shard> shards_;
  size_t bytes_ = 0;
};

}  // namespace warmpath
