#include "radix_index/radix_index.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "radix_index/index_impl.h"

namespace warmpath {

RadixIndex::RadixIndex(IndexOptions options) : impl_(std::make_unique<Impl>(options)) {}
RadixIndex::~RadixIndex() = default;
RadixIndex::RadixIndex(RadixIndex&&) noexcept = default;
RadixIndex& RadixIndex::operator=(RadixIndex&&) noexcept = default;

Result<ReplicaId> RadixIndex::add_replica() { return impl_->add_replica(); }
void RadixIndex::remove_replica(ReplicaId replica) { impl_->remove_replica(replica); }
FeedOutcome RadixIndex::apply(ReplicaId replica, const KvEventBatch& batch, MonotonicNs now) {
  return impl_->apply(replica, batch, now);
}
void RadixIndex::feed_lost(ReplicaId replica) { impl_->feed_lost(replica); }
void RadixIndex::place(ReplicaId replica, std::span<const Hash128> chain, MonotonicNs now, double ttl_s) {
  impl_->place(replica, chain, now, ttl_s);
}
void RadixIndex::query(std::span<const Hash128> chain, MonotonicNs now, IndexMatches& matches) const {
  impl_->query(chain, now, matches);
}
void RadixIndex::maintain(MonotonicNs now, size_t max_runs) { impl_->maintain(now, max_runs); }
IndexReplicaView RadixIndex::replica_view(ReplicaId replica) const { return impl_->replica_view(replica); }
IndexStats RadixIndex::stats() const { return impl_->stats(); }
Status RadixIndex::check_integrity() const { return impl_->check_integrity(); }

// --- replicas and slots ---

Result<ReplicaId> RadixIndex::Impl::add_replica() {
  const auto free = std::find_if(replicas_.begin(), replicas_.end(), [](const Replica& r) { return !r.in_use; });
  if (free == replicas_.end() && replicas_.size() >= options_.max_replicas) {
    return resource_exhausted("the index serves at most " + std::to_string(options_.max_replicas) + " replicas");
  }
  const auto id = static_cast<ReplicaId>(free - replicas_.begin());
  if (free == replicas_.end()) replicas_.emplace_back();
  Replica& added = replicas_[id];
  added = Replica{};
  added.in_use = true;
  added.holds = new_slot(Slot::State::kHolds, id);
  added.placed = new_slot(Slot::State::kPlaced, id);
  show_slots(added, id);
  ++replica_count_;
  return id;
}

void RadixIndex::Impl::remove_replica(ReplicaId id) {
  WARMPATH_CHECK(id < replicas_.size() && replicas_[id].in_use, "remove_replica() of an unknown replica");
  Replica& removed = replicas_[id];
  kill_slot(removed.holds);
  kill_slot(removed.loads);
  kill_slot(removed.placed);
  removed = Replica{};
  --replica_count_;
}

RadixIndex::Impl::SlotId RadixIndex::Impl::new_slot(Slot::State state, ReplicaId owner) {
  const auto find_free = [&] {
    return std::find_if(slots_.begin(), slots_.end(), [&](const Slot& slot) {
      return slot.state == Slot::State::kFree ||
             (slot.state == Slot::State::kDead && sweep_pass_ > slot.reusable_after_pass);
    });
  };
  auto free = find_free();
  if (free == slots_.end() && slots_.size() == kMaxSlots) {
    // Only restarts faster than any sweep get here: finish two passes now.
    for (const uint64_t pass = sweep_pass_ + 2; sweep_pass_ < pass;) maintain(0, store_.id_end() + 1);
    free = find_free();
    WARMPATH_CHECK(free != slots_.end(), "three slots per replica are always enough after a sweep");
  }
  if (free == slots_.end()) free = slots_.emplace(slots_.end());
  faces_.resize(slots_.size());
  *free = Slot{};
  free->state = state;
  free->owner = owner;
  return static_cast<SlotId>(free - slots_.begin());
}

void RadixIndex::Impl::kill_slot(SlotId slot) {
  if (slot == kNoSlot) return;
  faces_[slot] = SlotFace{};
  slots_[slot] = Slot{};
  slots_[slot].state = Slot::State::kDead;
  // The pass under way may be past some of its spans already; the one after it sees them all.
  slots_[slot].reusable_after_pass = sweep_pass_ + 1;
}

void RadixIndex::Impl::show_slots(const Replica& replica, ReplicaId id) {
  faces_[replica.holds] = {id, replica.placed};
  faces_[replica.placed] = {id, replica.holds};
}

void RadixIndex::Impl::renew_held(Replica& replica, ReplicaId id) {
  kill_slot(replica.holds);
  kill_slot(replica.placed);
  replica.holds = new_slot(Slot::State::kHolds, id);
  replica.placed = new_slot(Slot::State::kPlaced, id);
  show_slots(replica, id);
}

// --- storing and removing ---

template <typename Cover>
void RadixIndex::Impl::walk(Hash128 parent, std::span<const Hash128> blocks, MonotonicNs now, Cover cover) {
  BlockPlace last = store_.find(parent);
  BlockPlace place = blocks.empty() ? BlockPlace{} : store_.find(blocks[0]);
  for (size_t n = 0, runs_seen = 0; n < blocks.size(); ++runs_seen) {
    const uint32_t mark = RunStore::used_mark(now, static_cast<uint32_t>(runs_seen));
    uint32_t begin;
    if (place.exists()) {
      // A stretch of blocks that are there already, in one run.
      if (last.exists() && last.run != place.run && last.offset + 1 == store_.run(last.run).end &&
          place.offset == store_.run(place.run).begin && !has_dead_span(store_.run(place.run)) &&
          store_.join(last.run, place.run)) {
        place = {last.run, last.offset + 1};
      }
      const BlockRun& run = store_.run(place.run);
      run.touch(mark);
      begin = place.offset;
      last = place;
      while (++n < blocks.size() && last.offset + 1 < run.end && run.ids[last.offset + 1] == blocks[n]) ++last.offset;
      if (n < blocks.size()) place = store_.find(blocks[n]);
    } else {
      // A stretch of new ones, as far as one run takes them.
      const auto expected = static_cast<uint32_t>(std::min<size_t>(blocks.size() - n, kMaxRunBlocks));
      last = store_.add_block(parent, last, blocks[n], expected, mark);
      begin = last.offset;
      while (++n < blocks.size() && !(place = store_.find(blocks[n])).exists() && last.offset + 1 < kMaxRunBlocks) {
        last = store_.add_block(blocks[n - 1], last, blocks[n], expected, mark);
      }
    }
    parent = blocks[n - 1];
    cover(last.run, static_cast<uint16_t>(begin), static_cast<uint16_t>(last.offset + 1));
  }
}

void RadixIndex::Impl::store(SlotId slot, const BlocksStored& event, MonotonicNs now) {
  const ReplicaId owner = slots_[slot].owner;
  walk(event.parent, event.blocks, now, [&](uint32_t run, uint16_t begin, uint16_t end) {
    hold(slot, event.tier, run, begin, end);
    uncover_placed(run, replicas_[owner].placed, begin, end);  // confirmed
  });
}

void RadixIndex::Impl::hold(SlotId slot, Tier tier, uint32_t run_id, uint16_t begin, uint16_t end) {
  Slot& owner = slots_[slot];
  const uint16_t holder = holder_of(slot, tier);
  const BlockRun& run = store_.run(run_id);
  for (uint16_t offset = begin; offset < end; ++offset) owner.checksum ^= residency_term(run.ids[offset], tier);
  for (auto span = run.held.lower_bound(holder); span != run.held.spans().end() && span->key == holder; ++span) {
    for (uint16_t offset = std::max(begin, span->begin); offset < std::min(end, span->end); ++offset) {
      ++owner.extra_copies[{run.ids[offset], tier}];
    }
  }
  owner.resident[static_cast<size_t>(tier)] += static_cast<uint64_t>(end - begin);
  store_.edit(run_id, [&](BlockRun& edited) { edited.held.cover(holder, begin, end); });
}

void RadixIndex::Impl::remove(SlotId slot, const BlocksRemoved& event) {
  Slot& owner = slots_[slot];
  const uint16_t holder = holder_of(slot, event.tier);
  const std::vector<Hash128>& ids = event.blocks;
  for (size_t n = 0; n < ids.size();) {
    const size_t first = n++;
    const BlockPlace place = store_.find(ids[first]);
    if (!place.exists()) continue;
    const BlockRun& run = store_.run(place.run);
    auto begin = static_cast<uint16_t>(place.offset);
    const HeldSpan* span = run.held.find(holder, begin);
    if (span == nullptr) continue;
    auto end = static_cast<uint16_t>(begin + 1);
    if (!drop_extra_copy(owner, ids[first], event.tier)) {
      // Engines evict chains from the tail or list them from the front: take the neighbours along, in either direction.
      if (owner.extra_copies.empty()) {
        while (n < ids.size() && end < span->end && run.ids[end] == ids[n]) ++n, ++end;
        if (n == first + 1) {
          while (n < ids.size() && begin > span->begin && run.ids[begin - 1] == ids[n]) ++n, --begin;
        }
      }
      for (uint16_t offset = begin; offset < end; ++offset) {
        owner.checksum ^= residency_term(run.ids[offset], event.tier);
      }
      owner.resident[static_cast<size_t>(event.tier)] -= static_cast<uint64_t>(end - begin);
      store_.edit(place.run, [&](BlockRun& edited) { edited.held.uncover(holder, begin, end); });
      // What the engine has just given up is not about to be there, whatever was placed.
      uncover_placed(place.run, replicas_[owner.owner].placed, begin, end);
      drop_uncovered(place.run, begin, end);
    }
  }
}

bool RadixIndex::Impl::drop_extra_copy(Slot& owner, Hash128 identity, Tier tier) {
  const auto extra = owner.extra_copies.find({identity, tier});
  if (extra == owner.extra_copies.end()) return false;
  if (--extra->second == 0) owner.extra_copies.erase(extra);
  owner.checksum ^= residency_term(identity, tier);
  --owner.resident[static_cast<size_t>(tier)];
  return true;
}

void RadixIndex::Impl::drop_uncovered(uint32_t id, uint16_t begin, uint16_t end) {
  const BlockRun& run = store_.run(id);
  if (has_dead_span(run)) {
    sweep_run(id, 0);  // a split must not carry dead spans to where this pass has been already
  } else if (run.held.empty() && !run.placed) {
    store_.drop_blocks(id, run.begin, run.end);
  } else {
    bool any = false;
    for (uint16_t offset = begin; offset < end && !any; ++offset) any = !run.covers(offset);
    if (any) store_.settle(id);
  }
}

void RadixIndex::Impl::uncover_placed(uint32_t run, SlotId placed, uint16_t begin, uint16_t end) {
  if (!store_.run(run).placed) return;
  store_.edit(run, [&](BlockRun& edited) {
    edited.placed->uncover(placed, begin, end);
    if (edited.placed->empty()) edited.placed.reset();
  });
}

void RadixIndex::Impl::place(ReplicaId id, std::span<const Hash128> chain, MonotonicNs now, double ttl_s) {
  WARMPATH_CHECK(id < replicas_.size() && replicas_[id].in_use, "place() on an unknown replica");
  const Replica& replica = replicas_[id];
  const MonotonicNs expires = now + static_cast<MonotonicNs>(ttl_s * 1e9);
  walk({}, chain, now, [&](uint32_t run, uint16_t begin, uint16_t end) {
    store_.edit(run, [&](BlockRun& edited) {
      if (!edited.placed) edited.placed = std::make_unique<SpanList<PlacedSpan>>();
      edited.placed->cover(replica.placed, begin, end, expires);
    });
  });
  enforce_cap(now);
}

// --- upkeep ---

void RadixIndex::Impl::maintain(MonotonicNs now, size_t max_runs) {
  // At most once round in one call.
  for (size_t budget = std::min<size_t>(max_runs, store_.id_end()); budget > 0; --budget) {
    const uint32_t run = sweep_cursor_++;
    if (store_.in_use(run)) sweep_run(run, now);
    if (sweep_cursor_ >= store_.id_end()) break;
  }
  if (sweep_cursor_ >= store_.id_end()) {
    sweep_cursor_ = 0;
    ++sweep_pass_;
  }
}

bool RadixIndex::Impl::has_dead_span(const BlockRun& run) const {
  const auto is_dead = [&](SlotId slot) { return slots_[slot].state == Slot::State::kDead; };
  for (const HeldSpan& span : run.held.spans()) {
    if (is_dead(slot_of(span.key))) return true;
  }
  if (!run.placed) return false;
  for (const PlacedSpan& span : run.placed->spans()) {
    if (is_dead(span.key)) return true;
  }
  return false;
}

void RadixIndex::Impl::sweep_run(uint32_t id, MonotonicNs now) {
  const BlockRun& run = store_.run(id);
  const auto held_is_gone = [&](const HeldSpan& span) { return slots_[slot_of(span.key)].state == Slot::State::kDead; };
  const auto placed_is_gone = [&](const PlacedSpan& span) {
    return span.expires_ns <= now || slots_[span.key].state == Slot::State::kDead;
  };
  const auto& held = run.held.spans();
  bool stale = std::any_of(held.begin(), held.end(), held_is_gone);
  if (run.placed) {
    const auto& placed = run.placed->spans();
    stale = stale || std::any_of(placed.begin(), placed.end(), placed_is_gone);
  }
  if (!stale) return;
  store_.edit(id, [&](BlockRun& edited) {
    edited.held.remove_if(held_is_gone);
    if (edited.placed) edited.placed->remove_if(placed_is_gone);
    if (edited.placed && edited.placed->empty()) edited.placed.reset();
  });
  store_.settle(id);
}

void RadixIndex::Impl::enforce_cap(MonotonicNs now) {
  // The least recently matched of a few random runs, as Redis does: near enough to LRU without a list through all runs.
  constexpr int kSampled = 8;
  while ((store_.bytes() > options_.max_bytes || store_.run_count() + 4096 > kMaxRuns) && store_.run_count() > 0) {
    uint32_t victim = 0;
    bool found = false;
    for (int tries = 0, sampled = 0; sampled < kSampled && tries < 64; ++tries) {
      victim_seed_ = victim_seed_ * 6364136223846793005ull + 1442695040888963407ull;
      const auto id = static_cast<uint32_t>((victim_seed_ >> 33) % store_.id_end());
      if (!store_.in_use(id)) continue;
      ++sampled;
      if (!found || store_.run(id).last_used < store_.run(victim).last_used) victim = id;
      found = true;
    }
    if (!found) {
      while (!store_.in_use(victim)) ++victim;
    }
    sweep_run(victim, now);
    if (store_.in_use(victim)) evict_run(victim);
  }
}

void RadixIndex::Impl::evict_run(uint32_t id) {
  const BlockRun& run = store_.run(id);
  for (const HeldSpan& span : run.held.spans()) {
    Slot& owner = slots_[slot_of(span.key)];
    const Tier tier = tier_of(span.key);
    if (owner.state == Slot::State::kDead) continue;
    for (uint16_t offset = span.begin; offset < span.end; ++offset) {
      uint64_t copies = 1;
      if (const auto extra = owner.extra_copies.find({run.ids[offset], tier}); extra != owner.extra_copies.end()) {
        copies += extra->second;
        owner.extra_copies.erase(extra);
      }
      if (copies % 2 == 1) owner.checksum ^= residency_term(run.ids[offset], tier);
      owner.resident[static_cast<size_t>(tier)] -= copies;
      owner.blocks_dropped += copies;
    }
  }
  evicted_blocks_ += run.size();
  store_.drop_run(id);
}

IndexReplicaView RadixIndex::Impl::replica_view(ReplicaId id) const {
  WARMPATH_CHECK(id < replicas_.size() && replicas_[id].in_use, "replica_view() of an unknown replica");
  const Replica& replica = replicas_[id];
  const Slot& slot = slots_[replica.holds];
  IndexReplicaView view;
  view.trust = replica.trust;
  view.boot_epoch = replica.boot_epoch;
  view.last_sequence = replica.last_sequence;
  view.resident_blocks = slot.resident;
  view.checksum = slot.checksum;
  view.gaps = replica.gaps;
  view.audits_failed = replica.audits_failed;
  view.blocks_dropped = slot.blocks_dropped;
  view.last_event_ns = replica.last_event_ns;
  return view;
}

IndexStats RadixIndex::Impl::stats() const {
  IndexStats stats;
  stats.bytes = store_.bytes();
  stats.distinct_blocks = store_.block_count();
  stats.runs = store_.run_count();
  stats.replicas = replica_count_;
  stats.evicted_blocks = evicted_blocks_;
  for (uint32_t id = 0; id < store_.id_end(); ++id) {
    stats.spans += store_.run(id).held.spans().size();
    if (store_.run(id).placed) stats.placed_spans += store_.run(id).placed->spans().size();
  }
  return stats;
}

}  // namespace warmpath
