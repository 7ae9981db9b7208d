#include "radix_index/radix_index.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/check.h"
#include "radix_index/heap_bytes.h"
#include "radix_index/index_walk.h"

namespace warmpath {

RadixIndex::RadixIndex(IndexOptions options) : impl_(std::make_unique<Impl>(options)) {}
RadixIndex::~RadixIndex() = default;
RadixIndex::RadixIndex(RadixIndex&&) noexcept = default;
RadixIndex& RadixIndex::operator=(RadixIndex&&) noexcept = default;

Result<ReplicaId> RadixIndex::add_replica() { return impl_->add_replica(); }
void RadixIndex::remove_replica(ReplicaId replica) { impl_->remove_replica(replica); }
bool RadixIndex::has_replica(ReplicaId replica) const { return impl_->has_replica(replica); }
FeedOutcome RadixIndex::apply(ReplicaId replica, const KvEventBatch& batch, MonotonicNs now) {
  return impl_->apply(replica, batch, now);
}
void RadixIndex::feed_lost(ReplicaId replica) { impl_->feed_lost(replica); }
void RadixIndex::place(ReplicaId replica, std::span<const Hash128> chain, MonotonicNs now, double ttl_s, size_t held) {
  impl_->place(replica, chain, now, ttl_s, held);
}
void RadixIndex::query(std::span<const Hash128> chain, MonotonicNs now, IndexMatches& matches) const {
  impl_->query(chain, now, matches);
}
void RadixIndex::maintain(MonotonicNs now, size_t max_runs) { impl_->maintain(now, max_runs); }
bool RadixIndex::confirm_epoch(ReplicaId replica, uint64_t boot_epoch) {
  return impl_->confirm_epoch(replica, boot_epoch);
}
bool RadixIndex::save_piece(SnapshotProgress& progress, MonotonicNs now, std::string& out) const {
  return impl_->save_piece(progress, now, out);
}
uint64_t RadixIndex::restore(const IndexSnapshot& from, std::span<const SnapshotReplica> replicas, double age_s,
                             MonotonicNs now) {
  return impl_->restore(from, replicas, age_s, now);
}
IndexReplicaView RadixIndex::replica_view(ReplicaId replica) const { return impl_->replica_view(replica); }
IndexStats RadixIndex::stats() const { return impl_->stats(); }
Status RadixIndex::check_integrity() const { return impl_->check_integrity(); }

// --- replicas and slots ---

RadixIndex::Impl::Impl(IndexOptions options)
    : options_(options), store_(options.max_bytes), faces_(std::make_unique<std::atomic<SlotFace>[]>(kMaxSlots)) {}

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
  replicas_ever_.store(static_cast<uint32_t>(replicas_.size()), std::memory_order_release);
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
    ReadEpochs& epochs = store_.epochs();
    for (Slot& slot : slots_) {
      if (slot.state != Slot::State::kDead || sweep_pass_ <= slot.reusable_after_pass) continue;
      slot.state = Slot::State::kSwept;
      slot.ticket = epochs.ticket();
    }
    epochs.reclaim();
    return std::find_if(slots_.begin(), slots_.end(), [&](const Slot& slot) {
      return slot.state == Slot::State::kFree || (slot.state == Slot::State::kSwept && epochs.passed(slot.ticket));
    });
  };
  auto free = find_free();
  while (free == slots_.end() && slots_.size() == kMaxSlots) {
    // Only restarts faster than any sweep get here: finish two passes now, and let readers leave.
    for (const uint64_t pass = sweep_pass_ + 2; sweep_pass_ < pass;) maintain(0, store_.id_end() + 1);
    free = find_free();
    if (free == slots_.end()) std::this_thread::yield();
  }
  if (free == slots_.end()) free = slots_.emplace(slots_.end());
  *free = Slot{};
  free->state = state;
  free->owner = owner;
  return static_cast<SlotId>(free - slots_.begin());
}

void RadixIndex::Impl::kill_slot(SlotId slot) {
  if (slot == kNoSlot) return;
  faces_[slot].store(SlotFace{}, std::memory_order_release);
  slots_[slot] = Slot{};
  slots_[slot].state = Slot::State::kDead;
  // The pass under way may be past some of its spans already; the one after it sees them all.
  slots_[slot].reusable_after_pass = sweep_pass_ + 1;
  dead_until_pass_ = sweep_pass_ + 1;
}

void RadixIndex::Impl::show_slots(const Replica& replica, ReplicaId id) {
  faces_[replica.holds].store({static_cast<uint16_t>(id), replica.placed}, std::memory_order_release);
  faces_[replica.placed].store({static_cast<uint16_t>(id), replica.holds}, std::memory_order_release);
}

void RadixIndex::Impl::renew_held(Replica& replica, ReplicaId id) {
  kill_slot(replica.holds);
  kill_slot(replica.placed);
  replica.holds = new_slot(Slot::State::kHolds, id);
  replica.placed = new_slot(Slot::State::kPlaced, id);
  show_slots(replica, id);
}

// --- storing and removing ---

void RadixIndex::Impl::touch_ancestors(uint32_t run, uint32_t mark) {
  constexpr uint32_t kOneSecond = 10 << 4;
  constexpr int kMostAncestors = 1 << 14;  // of a chain of 4 M blocks; and whatever hostile parents make of it
  for (int above = 0; above < kMostAncestors && store_.last_used(run) + kOneSecond < mark; ++above) {
    store_.touch(run, mark);
    const BlockPlace parent = store_.find(store_.ids(run)[store_.begin(run) - 1]);
    if (!parent.exists()) return;
    run = parent.run;
  }
}

void RadixIndex::Impl::store(SlotId slot, const BlocksStored& event, MonotonicNs now) {
  walk(event.parent, event.blocks, now,
       [&](uint32_t run, uint16_t begin, uint16_t end) { hold(slot, event.tier, run, begin, end); });
}

void RadixIndex::Impl::hold(SlotId slot, Tier tier, uint32_t run, uint16_t begin, uint16_t end) {
  Slot& owner = slots_[slot];
  const uint16_t holder = holder_of(slot, tier);
  const Hash128* ids = store_.ids(run);
  for (uint16_t offset = begin; offset < end; ++offset) owner.checksum ^= residency_term(ids[offset], tier);
  owner.resident[static_cast<size_t>(tier)] += static_cast<uint64_t>(end - begin);
  const SlotId placed = replicas_[owner.owner].placed;
  store_.edit(run, [&](RunDraft& draft) {
    const std::span<const HeldSpan> held = draft.held.spans();
    for (size_t n = first_span(held, holder); n < held.size() && held[n].key == holder; ++n) {
      for (uint16_t offset = std::max(begin, held[n].begin); offset < std::min(end, held[n].end); ++offset) {
        ++owner.extra_copies[{ids[offset], tier}];
      }
    }
    draft.held.cover(holder, begin, end);
    draft.placed.uncover(placed, begin, end);  // confirmed
  });
}

void RadixIndex::Impl::remove(SlotId slot, const BlocksRemoved& event) {
  constexpr size_t kAhead = 32;
  Slot& owner = slots_[slot];
  const SlotId placed = replicas_[owner.owner].placed;
  const uint16_t holder = holder_of(slot, event.tier);
  const std::vector<Hash128>& ids = event.blocks;
  for (size_t n = 0; n < std::min(ids.size(), kAhead); ++n) store_.prefetch(ids[n]);
  for (size_t n = 0; n < ids.size();) {
    const size_t first = n++;
    if (first + kAhead < ids.size()) store_.prefetch(ids[first + kAhead]);
    const BlockPlace place = store_.find(ids[first]);
    if (!place.exists()) continue;
    const HeldSpan* span = find_span(store_.view(place.run)->held(), holder, static_cast<uint16_t>(place.offset));
    if (span == nullptr || drop_extra_copy(owner, ids[first], event.tier)) continue;
    const Hash128* in_run = store_.ids(place.run);
    auto begin = static_cast<uint16_t>(place.offset);
    auto end = static_cast<uint16_t>(begin + 1);
    // Engines evict chains from the tail or list them from the front: take the neighbours along, in either direction.
    if (owner.extra_copies.empty()) {
      while (n < ids.size() && end < span->end && in_run[end] == ids[n]) ++n, ++end;
      if (n == first + 1) {
        while (n < ids.size() && begin > span->begin && in_run[begin - 1] == ids[n]) ++n, --begin;
      }
    }
    for (uint16_t offset = begin; offset < end; ++offset) {
      owner.checksum ^= residency_term(in_run[offset], event.tier);
    }
    owner.resident[static_cast<size_t>(event.tier)] -= static_cast<uint64_t>(end - begin);
    store_.edit(place.run, [&](RunDraft& draft) {
      draft.held.uncover(holder, begin, end);
      // What the engine has just given up is not about to be there, whatever was placed.
      draft.placed.uncover(placed, begin, end);
      drop_dead(draft);
    });
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

void RadixIndex::Impl::place(ReplicaId id, std::span<const Hash128> chain, MonotonicNs now, double ttl_s, size_t held) {
  WARMPATH_CHECK(id < replicas_.size() && replicas_[id].in_use, "place() on an unknown replica");
  if (held >= chain.size()) return;
  const SlotId placed = replicas_[id].placed;
  const MonotonicNs expires = now + static_cast<MonotonicNs>(ttl_s * 1e9);
  const Hash128 parent = held == 0 ? Hash128{} : chain[held - 1];
  walk(parent, chain.subspan(held), now, [&](uint32_t run, uint16_t begin, uint16_t end) {
    if (store_.renew_placed(run, placed, begin, end, expires)) return;
    store_.edit(run, [&](RunDraft& draft) { draft.placed.cover(placed, begin, end, expires); });
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
  store_.epochs().reclaim();
}

bool RadixIndex::Impl::has_dead_span(const RunView& view) const {
  if (!dead_may_be_there()) return false;
  const auto held = view.held();
  const auto placed = view.placed();
  return std::any_of(held.begin(), held.end(), [&](const HeldSpan& span) { return is_dead(slot_of(span.key)); }) ||
         std::any_of(placed.begin(), placed.end(), [&](const PlacedSpan& span) { return is_dead(span.key); });
}

// Wherever a run may fall into pieces: a piece must not carry dead spans to where the sweep has been already.
void RadixIndex::Impl::drop_dead(RunDraft& draft) const {
  if (!dead_may_be_there()) return;
  draft.held.remove_if([&](const HeldSpan& span) { return is_dead(slot_of(span.key)); });
  draft.placed.remove_if([&](const PlacedSpan& span) { return is_dead(span.key); });
}

void RadixIndex::Impl::sweep_run(uint32_t run, MonotonicNs now) {
  const RunView& view = *store_.view(run);
  const auto has_expired = [&](const PlacedSpan& span) { return span.expires_ns <= now; };
  const auto placed = view.placed();
  if (!has_dead_span(view) && std::none_of(placed.begin(), placed.end(), has_expired)) return;
  store_.edit(run, [&](RunDraft& draft) {
    drop_dead(draft);
    draft.placed.remove_if(has_expired);
  });
}

void RadixIndex::Impl::enforce_cap(MonotonicNs now) {
  // The least recently matched of a few random runs, as Redis does: near enough to LRU without a list through all runs.
  // What continues it goes first; that is at least as old, for using a run uses all above it.
  constexpr int kSampled = 8;
  constexpr int kMostGenerations = 1 << 14;
  store_.epochs().reclaim_some();
  while ((bytes() > options_.max_bytes || store_.run_count() + 4096 > kMaxRuns) && store_.run_count() > 0) {
    uint32_t victim = UINT32_MAX;
    for (int tries = 0, sampled = 0; sampled < kSampled && tries < 64; ++tries) {
      victim_seed_ = victim_seed_ * 6364136223846793005ull + 1442695040888963407ull;
      const auto run = static_cast<uint32_t>((victim_seed_ >> 33) % store_.id_end());
      if (!store_.in_use(run)) continue;
      ++sampled;
      if (victim == UINT32_MAX || store_.last_used(run) < store_.last_used(victim)) victim = run;
    }
    if (victim == UINT32_MAX) {
      for (victim = 0; !store_.in_use(victim);) ++victim;
    }
    for (int generation = 0; generation < kMostGenerations; ++generation) {
      const uint32_t child = store_.child_of(victim);
      if (child == UINT32_MAX) break;
      victim = child;
    }
    sweep_run(victim, now);
    if (store_.in_use(victim)) evict_run(victim);
    store_.epochs().reclaim_some();
  }
}

void RadixIndex::Impl::evict_run(uint32_t run) {
  const RunView& view = *store_.view(run);
  const Hash128* ids = view.ids();
  for (const HeldSpan& span : view.held()) {
    Slot& owner = slots_[slot_of(span.key)];
    const Tier tier = tier_of(span.key);
    if (owner.state == Slot::State::kDead) continue;
    for (uint16_t offset = span.begin; offset < span.end; ++offset) {
      uint64_t copies = 1;
      if (const auto extra = owner.extra_copies.find({ids[offset], tier}); extra != owner.extra_copies.end()) {
        copies += extra->second;
        owner.extra_copies.erase(extra);
      }
      if (copies % 2 == 1) owner.checksum ^= residency_term(ids[offset], tier);
      owner.resident[static_cast<size_t>(tier)] -= copies;
      owner.blocks_dropped += copies;
    }
  }
  evicted_blocks_ += view.size();
  store_.drop_run(run);
}

size_t RadixIndex::Impl::bytes() const {
  constexpr size_t kFixed = heap_bytes(sizeof(Impl)) + heap_bytes(kMaxSlots * sizeof(SlotFace));
  return store_.bytes() + kFixed + heap_bytes(slots_.capacity() * sizeof(Slot)) +
         heap_bytes(replicas_.capacity() * sizeof(Replica));
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
  stats.bytes = bytes();
  stats.max_bytes = options_.max_bytes;
  stats.distinct_blocks = store_.block_count();
  stats.runs = store_.run_count();
  stats.spans = store_.held_spans();
  stats.placed_spans = store_.placed_spans();
  stats.replicas = replica_count_;
  stats.evicted_blocks = evicted_blocks_;
  return stats;
}

}  // namespace warmpath
