// KV events: how a replica tells the world which prefix blocks it holds. Plain values; proto/codec.h maps them to
// protobuf.
//
// A stream starts with one snapshot (SnapshotBegin, SnapshotBlocks..., SnapshotEnd{last_sequence}); after it come
// batches with sequence last_sequence+1, +2, ... without gaps. `boot_epoch` never changes within a stream. A receiver
// that sees a gap asks for a new stream. Copies are counted: a block stored twice in one tier is held until it is
// removed twice.
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "base/hash128.h"

namespace warmpath {

enum class Tier : uint8_t { kDevice = 0, kHost = 1, kDisk = 2 };
inline constexpr int kTiers = 3;
std::string_view tier_name(Tier tier);

// `blocks` continue `parent` in order: blocks[0]'s parent is `parent`, blocks[i]'s is blocks[i-1].
// A first block's parent is the chain root (base/block_chain.h), which is never stored itself.
struct BlocksStored {
  Tier tier = Tier::kDevice;
  Hash128 parent;
  std::vector<Hash128> blocks;
};

// One copy of each goes. Order has no meaning.
struct BlocksRemoved {
  Tier tier = Tier::kDevice;
  std::vector<Hash128> blocks;
};

// Every block of the replica, in every tier, is gone.
struct BlocksCleared {};

// The replica is alive and has sent everything up to the batch's sequence. `checksum` = XOR over (tier, resident block)
// copies of XXH3-128(identity, tier).lo, so that a receiver can audit what it believes.
struct Heartbeat {
  int64_t resident_blocks = 0;  // copies, over all tiers
  uint64_t checksum = 0;
};

// These blocks are next to go, unless they are used.
struct EvictSoon {
  Tier tier = Tier::kDevice;
  std::vector<Hash128> blocks;
};

using KvEvent = std::variant<BlocksStored, BlocksRemoved, BlocksCleared, Heartbeat, EvictSoon>;

struct KvEventBatch {
  uint64_t boot_epoch = 0;
  uint64_t sequence = 0;  // of this batch; within a snapshot: the sequence the snapshot is of
  enum class Kind : uint8_t { kSnapshotBegin, kSnapshotPart, kSnapshotEnd, kLive } kind = Kind::kLive;
  std::vector<KvEvent> events;  // snapshot parts hold BlocksStored only
};

// The term that one resident copy adds to Heartbeat::checksum.
uint64_t residency_term(Hash128 identity, Tier tier);

}  // namespace warmpath
