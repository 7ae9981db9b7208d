// RadixIndex::Impl: replicas, their storage slots, and the operations that radix_index.h promises. Private to this
// room.
//
// A storage slot is a number under which spans are written. A replica owns one slot for what it holds and one for what
// is placed on it; a snapshot is loaded into a third, and takes the first one's place when it is complete. Clearing,
// restarting or removing a replica only declares its slots dead: lookups skip them at once, maintain() sweeps them
// away, and a full sweep later, when no reader from before its end is left, the number is used again.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "radix_index/radix_index.h"
#include "radix_index/run_store.h"
#include "radix_index/snapshot_bytes.h"

namespace warmpath {

class RadixIndex::Impl {
 public:
  explicit Impl(IndexOptions options);

  Result<ReplicaId> add_replica();
  void remove_replica(ReplicaId replica);
  bool has_replica(ReplicaId replica) const { return replica < replicas_.size() && replicas_[replica].in_use; }
  FeedOutcome apply(ReplicaId replica, const KvEventBatch& batch, MonotonicNs now);
  void feed_lost(ReplicaId replica);
  void place(ReplicaId replica, std::span<const Hash128> chain, MonotonicNs now, double ttl_s, size_t held);
  void query(std::span<const Hash128> chain, MonotonicNs now, IndexMatches& matches) const;
  void maintain(MonotonicNs now, size_t max_runs);
  bool confirm_epoch(ReplicaId replica, uint64_t boot_epoch);
  bool save_piece(SnapshotProgress& progress, MonotonicNs now, std::string& out) const;
  uint64_t restore(const IndexSnapshot& from, std::span<const SnapshotReplica> replicas, double age_s, MonotonicNs now);
  IndexReplicaView replica_view(ReplicaId replica) const;
  IndexStats stats() const;
  Status check_integrity() const;

 private:
  using SlotId = uint16_t;
  static constexpr SlotId kNoSlot = UINT16_MAX;
  // A holder key is slot * 4 + tier, in 16 bits. Three slots for each of 4,096 replicas, and a quarter for the dead.
  static constexpr size_t kMaxSlots = size_t{1} << 14;

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
    enum class State : uint8_t { kFree, kHolds, kLoads, kPlaced, kDead, kSwept };
    State state = State::kFree;
    ReplicaId owner = 0;
    std::array<uint64_t, kTiers> resident{};  // copies
    uint64_t checksum = 0;
    uint64_t blocks_dropped = 0;
    std::unordered_map<CopyKey, uint32_t, CopyKeyHash> extra_copies;
    uint64_t reusable_after_pass = 0;  // kDead
    uint64_t ticket = 0;               // kSwept: free once the readers of that time have left
  };

  // What a lookup needs to know of a slot, in one word: whose holdings or placements lookups see here (kHidden while
  // loading, free or dead), and the replica's other visible slot.
  struct SlotFace {
    static constexpr uint16_t kHidden = UINT16_MAX;
    uint16_t replica = kHidden;
    SlotId partner = kNoSlot;
    bool visible() const { return replica != kHidden; }
    bool operator==(const SlotFace&) const = default;
  };
  static_assert(std::atomic<SlotFace>::is_always_lock_free);
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
    return static_cast<uint16_t>(slot << 2 | static_cast<int>(tier));
  }
  static SlotId slot_of(uint16_t holder) { return static_cast<SlotId>(holder >> 2); }
  static Tier tier_of(uint16_t holder) { return static_cast<Tier>(holder & 3); }

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
  // Covers blocks [begin, end) of a run for a holder; where it already does, counts another copy.
  void hold(SlotId slot, Tier tier, uint32_t run, uint16_t begin, uint16_t end);
  // The runs above were used no longer than a second before: eviction must not take them first.
  void touch_ancestors(uint32_t run, uint32_t mark);
  // Walks `blocks` along the chain, adding what is missing, and calls cover(run, begin, end) for each stretch of a run.
  template <typename Cover>
  void walk(Hash128 parent, std::span<const Hash128> blocks, MonotonicNs now, Cover cover);

  FeedOutcome degrade(Replica& replica, std::string reason);
  FeedOutcome apply_live(Replica& replica, ReplicaId id, const KvEventBatch& batch, MonotonicNs now);
  FeedOutcome apply_snapshot(Replica& replica, ReplicaId id, const KvEventBatch& batch, MonotonicNs now);
  std::optional<std::string> audit(const Replica& replica, const Heartbeat& heartbeat) const;

  // --- a lookup's steps ---
  SlotFace face_of(SlotId slot, const IndexMatches& out) const;
  // Calls serve(replica, its held spans, its slot for placements) once for each replica that has something in the run.
  template <typename Serve>
  void for_each_holder(const RunView& view, const IndexMatches& out, Serve serve) const;
  // Two misses for each of many holders, if they come one after another: these let them come together. Where most of
  // the fleet holds the run, everybody's (true then); else those of the run's holders.
  bool prefetch_all_holders(const RunView& view, const IndexMatches& out) const;
  void prefetch_holders(const RunView& view, const IndexMatches& out) const;
  // The matches of a chain's first run, of which blocks [begin, end) are asked for. Returns how many hold all of them.
  size_t begin_matches(IndexMatches& out, const RunView& view, uint16_t end, MonotonicNs now) const;
  // What [offset, end) of another run adds to the matches that reach block `depth`. Returns how many hold all of it.
  size_t extend_matches(IndexMatches& out, const RunView& view, uint32_t depth, uint16_t offset, uint16_t end,
                        MonotonicNs now) const;
  // How far a replica's leading blocks reach inside [offset, end), adding to `match` by nearest tier.
  static void extend(IndexMatch& match, const RunView& view, std::span<const HeldSpan> held, SlotId placed,
                     uint16_t offset, uint16_t end, MonotonicNs now);

  // `run` as a snapshot tells it; spans of replicas without a position are left out.
  void describe_run(const RunView& view, std::span<const uint16_t> position_of_replica, MonotonicNs now,
                    snapshot::Run& run) const;
  // Returns the blocks that became resident, counted once per holder.
  uint64_t restore_run(const snapshot::Run& run, std::span<const ReplicaId> restored, double age_s, MonotonicNs now);

  bool is_dead(SlotId slot) const { return slots_[slot].state == Slot::State::kDead; }
  // Dead spans are about, somewhere.
  bool dead_may_be_there() const { return sweep_pass_ <= dead_until_pass_; }
  void drop_dead(RunDraft& draft) const;
  bool has_dead_span(const RunView& view) const;
  void sweep_run(uint32_t run, MonotonicNs now);
  void enforce_cap(MonotonicNs now);
  void evict_run(uint32_t run);
  size_t bytes() const;

  IndexOptions options_;
  RunStore store_;
  std::vector<Slot> slots_;
  std::unique_ptr<std::atomic<SlotFace>[]> faces_;  // one per slot
  std::vector<Replica> replicas_;
  uint32_t replica_count_ = 0;
  std::atomic<uint32_t> replicas_ever_{0};  // ids are below
  uint32_t sweep_cursor_ = 0;
  uint64_t sweep_pass_ = 1;
  uint64_t dead_until_pass_ = 0;
  uint64_t victim_seed_ = 1;
  uint64_t evicted_blocks_ = 0;
};

}  // namespace warmpath
