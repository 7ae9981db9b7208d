// RadixIndex::Impl: replicas, their storage slots, and the operations that radix_index.h promises. Private to this
// room.
//
// A storage slot is a number under which spans are written. A replica owns one slot for what it holds and one for what
// is placed on it; a snapshot is loaded into a third, and takes the first one's place when it is complete. Clearing,
// restarting or removing a replica only declares its slots dead: lookups skip them at once, maintain() sweeps them
// away, and a full sweep later the number is used again.
#pragma once

#include <array>
#include <optional>
#include <unordered_map>
#include <vector>

#include "radix_index/radix_index.h"
#include "radix_index/run_store.h"

namespace warmpath {

class RadixIndex::Impl {
 public:
  explicit Impl(IndexOptions options) : options_(options) {}

  Result<ReplicaId> add_replica();
  void remove_replica(ReplicaId replica);
  FeedOutcome apply(ReplicaId replica, const KvEventBatch& batch, MonotonicNs now);
  void feed_lost(ReplicaId replica);
  void place(ReplicaId replica, std::span<const Hash128> chain, MonotonicNs now, double ttl_s);
  void query(std::span<const Hash128> chain, MonotonicNs now, IndexMatches& matches) const;
  void maintain(MonotonicNs now, size_t max_runs);
  IndexReplicaView replica_view(ReplicaId replica) const;
  IndexStats stats() const;
  Status check_integrity() const;

 private:
  using SlotId = uint16_t;
  static constexpr SlotId kNoSlot = UINT16_MAX;
  static constexpr ReplicaId kNobody = UINT32_MAX;
  // A holder key is slot * kTiers + tier, in 16 bits.
  static constexpr size_t kMaxSlots = UINT16_MAX / kTiers;

  // Copies beyond the first of one block in one tier. Rare: vLLM holds at most two, the in-tree engine one.
  struct CopyKey {
    Hash128 identity;
    Tier tier;
    bool operator==(const CopyKey&) const = default;
  };
  struct CopyKeyHash {
    size_t operator()(const CopyKey& key) const noexcept { return key.identity.lo ^ static_cast<size_t>(key.tier); }
  };

  struct Slot {
    enum class State : uint8_t { kFree, kHolds, kLoads, kPlaced, kDead };
    State state = State::kFree;
    ReplicaId owner = 0;
    std::array<uint64_t, kTiers> resident{};  // copies
    uint64_t checksum = 0;
    uint64_t blocks_dropped = 0;
    std::unordered_map<CopyKey, uint32_t, CopyKeyHash> extra_copies;
    uint64_t reusable_after_pass = 0;  // kDead
  };

  // What a lookup needs to know of a slot, in one place and small: a query over many holders reads one per holder.
  struct SlotFace {
    ReplicaId replica = kNobody;  // whose holdings or placements lookups see here; kNobody while loading, free or dead
    SlotId partner = kNoSlot;     // the replica's other visible slot
  };
  struct Replica {
    enum class Phase : uint8_t { kNoStream, kSnapshot, kLive };
    bool in_use = false;
    Phase phase = Phase::kNoStream;
    Trust trust = Trust::kPredicted;
    SlotId holds = kNoSlot;
    SlotId loads = kNoSlot;  // only in kSnapshot
    SlotId placed = kNoSlot;
    uint64_t boot_epoch = 0;
    bool epoch_known = false;
    uint64_t last_sequence = 0;
    uint64_t gaps = 0;
    uint64_t audits_failed = 0;
    MonotonicNs last_event_ns = 0;
  };

  static uint16_t holder_of(SlotId slot, Tier tier) {
    return static_cast<uint16_t>(slot * kTiers + static_cast<int>(tier));
  }
  static SlotId slot_of(uint16_t holder) { return static_cast<SlotId>(holder / kTiers); }
  static Tier tier_of(uint16_t holder) { return static_cast<Tier>(holder % kTiers); }

  SlotId new_slot(Slot::State state, ReplicaId owner);
  void kill_slot(SlotId slot);
  // Lookups see the replica's present slots from now on.
  void show_slots(const Replica& replica, ReplicaId id);
  // The replica holds nothing from now on.
  void renew_held(Replica& replica, ReplicaId id);

  void store(SlotId slot, const BlocksStored& event, MonotonicNs now);
  void remove(SlotId slot, const BlocksRemoved& event);
  // True if the block had more than one copy, and now has one less.
  static bool drop_extra_copy(Slot& owner, Hash128 identity, Tier tier);
  // Drops those of blocks [begin, end) of a run that nobody covers any more.
  void drop_uncovered(uint32_t run, uint16_t begin, uint16_t end);
  // Covers blocks [begin, end) of a run for a holder; where it already does, counts another copy.
  void hold(SlotId slot, Tier tier, uint32_t run, uint16_t begin, uint16_t end);
  // Walks `blocks` along the chain, adding what is missing, and calls cover(run, begin, end) for each stretch of a run.
  template <typename Cover>
  void walk(Hash128 parent, std::span<const Hash128> blocks, MonotonicNs now, Cover cover);
  void uncover_placed(uint32_t run, SlotId placed, uint16_t begin, uint16_t end);

  FeedOutcome degrade(Replica& replica, std::string reason);
  FeedOutcome apply_live(Replica& replica, ReplicaId id, const KvEventBatch& batch, MonotonicNs now);
  FeedOutcome apply_snapshot(Replica& replica, ReplicaId id, const KvEventBatch& batch, MonotonicNs now);
  std::optional<std::string> audit(const Replica& replica, const Heartbeat& heartbeat) const;

  // How far a replica's leading blocks reach inside [offset, end) of a run, adding to `match` by nearest tier.
  void extend(IndexMatch& match, const BlockRun& run, const HeldSpan* held, const HeldSpan* held_end, SlotId placed,
              uint16_t offset, uint16_t end, MonotonicNs now) const;

  void sweep_run(uint32_t run, MonotonicNs now);
  bool has_dead_span(const BlockRun& run) const;
  void enforce_cap(MonotonicNs now);
  void evict_run(uint32_t run);

  IndexOptions options_;
  RunStore store_;
  std::vector<Slot> slots_;
  std::vector<SlotFace> faces_;  // one per slot
  std::vector<Replica> replicas_;
  uint32_t replica_count_ = 0;
  uint32_t sweep_cursor_ = 0;
  uint64_t sweep_pass_ = 1;
  uint64_t victim_seed_ = 1;
  uint64_t evicted_blocks_ = 0;
};

}  // namespace warmpath
