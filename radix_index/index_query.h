// What a lookup in the index answers: per replica, how much of a prompt's front it holds, and where.
//
// Leading means without a hole: block n counts only if the replica holds blocks 0..n. A block held in several tiers
// counts once, in the nearest (device, then host, then disk); a block that is only expected counts as placed. Thread
// safety: plain values; one IndexMatches per thread, reused between lookups so that nothing is allocated.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "proto/kv_event.h"

namespace warmpath {

// Names one replica inside one index; small, dense and reused after remove_replica().
using ReplicaId = uint32_t;

struct IndexMatch {
  ReplicaId replica = 0;
  std::array<uint32_t, kTiers> blocks{};  // of the leading run, by nearest tier
  uint32_t placed_blocks = 0;             // of the leading run, expected but not (or not yet) confirmed

  uint32_t held_blocks() const { return blocks[0] + blocks[1] + blocks[2]; }
  uint32_t leading_blocks() const { return held_blocks() + placed_blocks; }
};

struct IndexMatches {
  // Replicas with at least one leading block, in no particular order.
  std::vector<IndexMatch> matches;

  const IndexMatch* find(ReplicaId replica) const {
    if (replica >= position_of_replica.size()) return nullptr;
    const uint32_t position = position_of_replica[replica];
    return position < matches.size() && matches[position].replica == replica ? &matches[position] : nullptr;
  }

  // For each replica, where its match is: a sparse set, so an entry counts only if the match there names the replica.
  std::vector<uint32_t> position_of_replica;
};

}  // namespace warmpath
