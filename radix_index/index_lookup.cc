// RadixIndex::query: the walk down a chain, run by run.
#include <algorithm>

#include "radix_index/index_impl.h"

namespace warmpath {

void RadixIndex::Impl::extend(IndexMatch& match, const BlockRun& run, const HeldSpan* held, const HeldSpan* held_end,
                              SlotId placed, uint16_t offset, uint16_t end, MonotonicNs now) const {
  // Nearly always one span in one tier covers everything.
  if (held_end - held == 1 && held->begin <= offset && held->end >= end) {
    match.blocks[held->key % kTiers] += static_cast<uint32_t>(end - offset);
    return;
  }
  while (offset < end) {
    // The nearest tier that covers `offset`, and how far: up to its end, or to where a nearer tier begins.
    const HeldSpan* best = nullptr;
    uint16_t limit = end;
    for (const HeldSpan* span = held; span != held_end; ++span) {
      if (span->end <= offset) continue;
      if (span->begin > offset) {
        if (best == nullptr || span->key < best->key) limit = std::min(limit, span->begin);
      } else if (best == nullptr || span->key < best->key) {
        best = span;  // keys of one slot are in tier order, so later spans never replace it
        limit = std::min(limit, span->end);
      }
    }
    if (best != nullptr) {
      match.blocks[best->key % kTiers] += static_cast<uint32_t>(limit - offset);
    } else {
      const PlacedSpan* expected = run.placed ? run.placed->find(placed, offset) : nullptr;
      if (expected == nullptr || expected->expires_ns <= now) return;
      limit = std::min(limit, expected->end);
      match.placed_blocks += static_cast<uint32_t>(limit - offset);
    }
    offset = limit;
  }
}

void RadixIndex::Impl::query(std::span<const Hash128> chain, MonotonicNs now, IndexMatches& out) const {
  out.matches.clear();
  if (out.position_of_replica.size() < replicas_.size()) out.position_of_replica.resize(replicas_.size());

  uint32_t depth = 0;
  for (uint32_t runs_seen = 0; depth < chain.size(); ++runs_seen) {
    const BlockPlace place = store_.find(chain[depth]);
    if (!place.exists()) break;
    const BlockRun& run = store_.run(place.run);
    const auto offset = static_cast<uint16_t>(place.offset);
    const size_t most = std::min<size_t>(chain.size() - depth, run.end - offset);
    // The spans are needed next; let them come while the identities are compared.
    __builtin_prefetch(run.held.spans().data());
    uint32_t length = 1;
    while (length < most && run.ids[offset + length] == chain[depth + length]) ++length;
    const auto end = static_cast<uint16_t>(offset + length);
    run.touch(RunStore::used_mark(now, runs_seen));

    size_t still_leading = 0;
    // The match of a replica that holds everything so far, or null.
    const auto current = [&](ReplicaId replica) -> IndexMatch* {
      uint32_t& position = out.position_of_replica[replica];
      if (position >= out.matches.size() || out.matches[position].replica != replica) {
        if (depth > 0) return nullptr;
        position = static_cast<uint32_t>(out.matches.size());
        out.matches.push_back({replica, {}, 0});
      }
      IndexMatch& match = out.matches[position];
      return match.leading_blocks() == depth ? &match : nullptr;
    };

    const HeldSpan* span = run.held.spans().data();
    const HeldSpan* const last = span + run.held.spans().size();
    while (span != last) {
      const SlotId slot = slot_of(span->key);
      const HeldSpan* next = span + 1;
      while (next != last && slot_of(next->key) == slot) ++next;
      const SlotFace& face = faces_[slot];
      if (face.replica != kNobody) {
        if (IndexMatch* match = current(face.replica)) {
          extend(*match, run, span, next, face.partner, offset, end, now);
          still_leading += match->leading_blocks() == depth + length;
        }
      }
      span = next;
    }
    if (run.placed) {
      SlotId seen = kNoSlot;
      for (const PlacedSpan& placed : run.placed->spans()) {
        const SlotFace& face = faces_[placed.key];
        if (placed.key == seen || face.replica == kNobody) continue;
        seen = placed.key;
        // A replica that also holds part of this run was served above.
        const auto held = run.held.lower_bound(holder_of(face.partner, Tier::kDevice));
        if (held != run.held.spans().end() && slot_of(held->key) == face.partner) continue;
        if (IndexMatch* match = current(face.replica)) {
          extend(*match, run, nullptr, nullptr, seen, offset, end, now);
          still_leading += match->leading_blocks() == depth + length;
        }
      }
    }
    depth += length;
    if (still_leading == 0) break;
  }
  for (uint32_t n = 0; n < out.matches.size();) {
    if (out.matches[n].leading_blocks() > 0) {
      ++n;
      continue;
    }
    out.matches[n] = out.matches.back();
    out.position_of_replica[out.matches[n].replica] = n;
    out.matches.pop_back();
  }
}

}  // namespace warmpath
