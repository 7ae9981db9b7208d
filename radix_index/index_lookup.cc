// RadixIndex::query: the walk down a chain, run by run, beside a writer.
//
// Each run is looked at as one RunView, so what a lookup says about a run was true at one moment during the lookup; two
// runs may be seen at two moments. The writer can move the next block from a run of its own into the run just seen (or
// out of it) while the lookup is between the two; so when the next block is not found, the run just seen is looked at
// again, if it has changed, a bounded number of times.
#include <algorithm>
#include <cstdint>

#include "radix_index/index_impl.h"

namespace warmpath {

namespace {

// Each needs a change to the very run within the moment between two looks at it.
constexpr int kMostSecondLooks = 8;
// Holders of a run, from which on it pays to ask for their data beforehand.
constexpr size_t kMany = 8;

MonotonicNs expiry(const PlacedSpan& span) {
  return std::atomic_ref<MonotonicNs>(const_cast<PlacedSpan&>(span).expires_ns).load(std::memory_order_relaxed);
}

}  // namespace

void RadixIndex::Impl::extend(IndexMatch& match, const RunView& view, std::span<const HeldSpan> held, SlotId placed,
                              uint16_t offset, uint16_t end, MonotonicNs now) {
  if (held.size() == 1 && held[0].begin <= offset && held[0].end >= end) {
    match.blocks[static_cast<size_t>(tier_of(held[0].key))] += static_cast<uint32_t>(end - offset);
    return;
  }
  while (offset < end) {
    // The nearest tier that covers `offset`, and how far: up to its end, or to where a nearer tier begins.
    const HeldSpan* best = nullptr;
    uint16_t limit = end;
    for (const HeldSpan& span : held) {
      if (span.end <= offset) continue;
      if (span.begin > offset) {
        if (best == nullptr || span.key < best->key) limit = std::min(limit, span.begin);
      } else if (best == nullptr || span.key < best->key) {
        best = &span;  // keys of one slot are in tier order, so later spans never replace it
        limit = std::min(limit, span.end);
      }
    }
    if (best != nullptr) {
      match.blocks[static_cast<size_t>(tier_of(best->key))] += static_cast<uint32_t>(limit - offset);
    } else {
      const PlacedSpan* expected = find_span<PlacedSpan>(view.placed(), placed, offset);
      if (expected == nullptr || expiry(*expected) <= now) return;
      limit = std::min(limit, expected->end);
      match.placed_blocks += static_cast<uint32_t>(limit - offset);
    }
    offset = limit;
  }
}

RadixIndex::Impl::SlotFace RadixIndex::Impl::face_of(SlotId slot, const IndexMatches& out) const {
  const SlotFace face = faces_[slot].load(std::memory_order_acquire);
  return face.replica < out.position_of_replica.size() ? face : SlotFace{};  // else: it came after the lookup began
}

template <typename Serve>
void RadixIndex::Impl::for_each_holder(const RunView& view, const IndexMatches& out, Serve serve) const {
  const std::span<const HeldSpan> held = view.held();
  for (size_t n = 0; n < held.size();) {
    const size_t first = n++;
    const SlotId slot = slot_of(held[first].key);
    while (n < held.size() && slot_of(held[n].key) == slot) ++n;
    const SlotFace face = face_of(slot, out);
    if (face.visible()) serve(face.replica, held.subspan(first, n - first), face.partner);
  }
  SlotId seen = kNoSlot;
  for (const PlacedSpan& span : view.placed()) {
    if (span.key == seen) continue;
    seen = span.key;
    const SlotFace face = face_of(seen, out);
    if (!face.visible()) continue;
    // A replica that also holds part of this run was served above.
    const size_t at = first_span(held, holder_of(face.partner, Tier::kDevice));
    if (at < held.size() && slot_of(held[at].key) == face.partner) continue;
    serve(face.replica, std::span<const HeldSpan>(), seen);
  }
}

WARMPATH_PREFETCHES inline bool RadixIndex::Impl::prefetch_all_holders(const RunView& view,
                                                                       const IndexMatches& out) const {
  const size_t faces = std::min(3 * out.position_of_replica.size(), kMaxSlots) * sizeof(SlotFace);
  const size_t positions = out.position_of_replica.size() * sizeof(uint32_t);
  if (view.held().size() * 2 < (faces + positions) / kCacheLine) return false;
  prefetch_lines(faces_.get(), faces, SIZE_MAX);
  prefetch_lines(out.position_of_replica.data(), positions, SIZE_MAX);
  return true;
}

WARMPATH_PREFETCHES inline void RadixIndex::Impl::prefetch_holders(const RunView& view, const IndexMatches& out) const {
  for (const HeldSpan& span : view.held()) prefetch(&faces_[slot_of(span.key)]);
  for (const HeldSpan& span : view.held()) {
    const SlotFace face = face_of(slot_of(span.key), out);
    if (face.visible()) prefetch(&out.position_of_replica[face.replica]);
  }
}

size_t RadixIndex::Impl::begin_matches(IndexMatches& out, const RunView& view, uint16_t end, MonotonicNs now) const {
  const std::span<const HeldSpan> held = view.held();
  const auto length = static_cast<uint32_t>(end - view.begin());
  size_t reached = 0;
  uint32_t count = 0;
  out.matches.resize(held.size() + view.placed().size());
  for_each_holder(view, out, [&](ReplicaId replica, std::span<const HeldSpan> spans, SlotId placed) {
    uint32_t& position = out.position_of_replica[replica];
    // Twice only at the moment when another slot becomes the replica's.
    if (position < count && out.matches[position].replica == replica) return;
    IndexMatch& match = out.matches[count];
    match.replica = replica;
    // Nearly always one span in one tier covers everything.
    if (spans.size() == 1 && spans[0].begin <= view.begin() && spans[0].end >= end) {
      match.blocks[static_cast<size_t>(tier_of(spans[0].key))] = length;
      position = count++;
      ++reached;
      return;
    }
    extend(match, view, spans, placed, view.begin(), end, now);
    const uint32_t leading = match.leading_blocks();
    if (leading == 0) return;
    position = count++;
    reached += leading == length;
  });
  out.matches.resize(count);
  return reached;
}

size_t RadixIndex::Impl::extend_matches(IndexMatches& out, const RunView& view, uint32_t depth, uint16_t offset,
                                        uint16_t end, MonotonicNs now) const {
  const uint32_t reach = depth + end - offset;
  size_t reached = 0;
  for_each_holder(view, out, [&](ReplicaId replica, std::span<const HeldSpan> spans, SlotId placed) {
    const uint32_t position = out.position_of_replica[replica];
    if (position >= out.matches.size()) return;
    IndexMatch& match = out.matches[position];
    if (match.replica != replica || match.leading_blocks() != depth) return;
    extend(match, view, spans, placed, offset, end, now);
    reached += match.leading_blocks() == reach;
  });
  return reached;
}

void RadixIndex::Impl::query(std::span<const Hash128> chain, MonotonicNs now, IndexMatches& out) const {
  out.matches.clear();
  const uint32_t replicas = replicas_ever_.load(std::memory_order_acquire);
  if (out.position_of_replica.size() < replicas) out.position_of_replica.resize(replicas);
  if (chain.empty()) return;

  const ReadEpochs::Reader reader = store_.enter();
  RunStore::Found found = store_.find_head(chain[0]);
  uint32_t depth = 0;
  uint32_t run_depth = 0;  // where this run's first block is in the chain
  int second_looks = 0;
  for (uint32_t runs_seen = 0; found.view != nullptr; ++runs_seen) {
    const RunView& view = *found.view;
    const Hash128* ids = view.ids();
    const uint32_t offset = view.begin() + (depth - run_depth);
    const size_t most = std::min<size_t>(chain.size() - depth, view.end() - offset);
    // These are needed next; let them come while the identities are compared. So may the run that goes on from here,
    // and the one after it if that is full.
    const size_t after = depth + most;
    prefetch_lines(view.held().data(), view.held().size_bytes(), 32);
    prefetch_lines(ids + offset, most * sizeof(Hash128), 16);
    if (after < chain.size()) store_.prefetch_head(chain[after]);
    if (after + kMaxRunBlocks < chain.size()) store_.prefetch_head(chain[after + kMaxRunBlocks]);
    const bool few_of_many = view.held().size() >= kMany && !prefetch_all_holders(view, out);
    uint32_t length = 0;
    while (length < most && ids[offset + length] == chain[depth + length]) ++length;
    const auto end = static_cast<uint16_t>(offset + length);
    store_.touch(found.run, RunStore::used_mark(now, runs_seen));
    const bool goes_on = length == most && after < chain.size();
    if (goes_on) store_.prefetch_run(chain[after]);
    if (few_of_many) prefetch_holders(view, out);
    if (goes_on) store_.prefetch_view(chain[after]);
    if (length > 0) {
      const size_t reached = depth == 0 ? begin_matches(out, view, end, now)
                                        : extend_matches(out, view, depth, static_cast<uint16_t>(offset), end, now);
      if (reached == 0) break;
    }
    depth += length;
    if (depth == chain.size()) break;

    const RunStore::Found next = store_.find_head(chain[depth]);
    if (next.view != nullptr) {
      found = next;
      run_depth = depth;
      continue;
    }
    // Has this run changed meanwhile, and does it still begin as it did?
    const RunView* again = store_.view(found.run);
    if (again == found.view || again == nullptr || ++second_looks > kMostSecondLooks) break;
    if (again->ids()[again->begin()] != chain[run_depth] || again->size() <= depth - run_depth) break;
    found.view = again;
  }
}

}  // namespace warmpath
