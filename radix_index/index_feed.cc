// RadixIndex::apply: one replica's event stream as a state machine.
//
//   kNoStream --SnapshotBegin--> kSnapshot --SnapshotEnd--> kLive --gap, audit failed, protocol error--> kNoStream
//
// While a snapshot loads, lookups go on with what was known before. A new boot epoch means another life of the engine:
// what it held before is void at once.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "radix_index/index_impl.h"

namespace warmpath {

FeedOutcome RadixIndex::Impl::apply(ReplicaId id, const KvEventBatch& batch, MonotonicNs now) {
  WARMPATH_CHECK(id < replicas_.size() && replicas_[id].in_use, "apply() to an unknown replica");
  Replica& replica = replicas_[id];
  replica.last_event_ns = now;
  FeedOutcome outcome = batch.kind == KvEventBatch::Kind::kLive ? apply_live(replica, id, batch, now)
                                                                : apply_snapshot(replica, id, batch, now);
  enforce_cap(now);
  return outcome;
}

void RadixIndex::Impl::feed_lost(ReplicaId id) {
  WARMPATH_CHECK(id < replicas_.size() && replicas_[id].in_use, "feed_lost() of an unknown replica");
  degrade(replicas_[id], "the event stream ended");
}

FeedOutcome RadixIndex::Impl::degrade(Replica& replica, std::string reason) {
  FeedOutcome outcome{FeedAction::kResubscribe, std::move(reason), replica.trust == Trust::kExact};
  if (replica.trust == Trust::kExact) replica.trust = Trust::kDegraded;
  kill_slot(replica.loads);
  replica.loads = kNoSlot;
  replica.phase = Replica::Phase::kNoStream;
  return outcome;
}

FeedOutcome RadixIndex::Impl::apply_snapshot(Replica& replica, ReplicaId id, const KvEventBatch& batch,
                                             MonotonicNs now) {
  FeedOutcome outcome;
  if (batch.kind == KvEventBatch::Kind::kSnapshotBegin) {
    kill_slot(replica.loads);
    replica.loads = new_slot(Slot::State::kLoads, id);
    if (replica.epoch_known && replica.boot_epoch != batch.boot_epoch) {
      renew_held(replica, id);
      if (replica.trust == Trust::kExact) {
        replica.trust = Trust::kDegraded;
        outcome.trust_changed = true;
        outcome.reason = "the engine restarted";
      }
    }
    replica.boot_epoch = batch.boot_epoch;
    replica.epoch_known = true;
    replica.phase = Replica::Phase::kSnapshot;
  } else if (replica.phase != Replica::Phase::kSnapshot || batch.boot_epoch != replica.boot_epoch) {
    return degrade(replica, "a snapshot part came without its beginning");
  }
  for (const KvEvent& event : batch.events) {
    const auto* stored = std::get_if<BlocksStored>(&event);
    if (stored == nullptr) return degrade(replica, "a snapshot held something other than stored blocks");
    store(replica.loads, *stored, now);
  }
  if (batch.kind == KvEventBatch::Kind::kSnapshotEnd) {
    kill_slot(replica.holds);
    replica.holds = std::exchange(replica.loads, kNoSlot);
    slots_[replica.holds].state = Slot::State::kHolds;
    show_slots(replica, id);
    replica.phase = Replica::Phase::kLive;
    replica.last_sequence = batch.sequence;
    outcome.trust_changed = outcome.trust_changed || replica.trust != Trust::kExact;
    replica.trust = Trust::kExact;
  }
  return outcome;
}

FeedOutcome RadixIndex::Impl::apply_live(Replica& replica, ReplicaId id, const KvEventBatch& batch, MonotonicNs now) {
  if (replica.phase != Replica::Phase::kLive) return degrade(replica, "the stream did not start with a snapshot");
  if (batch.boot_epoch != replica.boot_epoch) return degrade(replica, "the boot epoch changed within a stream");
  // A heartbeat alone may repeat the last sequence: it says that nothing came after it.
  const bool repeats = batch.sequence == replica.last_sequence;
  const bool only_heartbeats = std::all_of(batch.events.begin(), batch.events.end(), [](const KvEvent& event) {
    return std::holds_alternative<Heartbeat>(event);
  });
  if (batch.sequence < replica.last_sequence || (repeats && !only_heartbeats)) return {};  // a duplicate
  if (!repeats && batch.sequence != replica.last_sequence + 1) {
    ++replica.gaps;
    return degrade(replica, "events " + std::to_string(replica.last_sequence + 1) + " to " +
                                std::to_string(batch.sequence - 1) + " are missing");
  }
  replica.last_sequence = batch.sequence;
  for (const KvEvent& event : batch.events) {
    if (const auto* stored = std::get_if<BlocksStored>(&event)) {
      store(replica.holds, *stored, now);
    } else if (const auto* removed = std::get_if<BlocksRemoved>(&event)) {
      remove(replica.holds, *removed);
    } else if (std::holds_alternative<BlocksCleared>(event)) {
      renew_held(replica, id);
    } else if (const auto* heartbeat = std::get_if<Heartbeat>(&event)) {
      if (auto problem = audit(replica, *heartbeat)) {
        ++replica.audits_failed;
        return degrade(replica, std::move(*problem));
      }
    }
    // EvictSoon concerns those who might prefetch or replicate, not the index: the blocks are still held.
  }
  return {};
}

std::optional<std::string> RadixIndex::Impl::audit(const Replica& replica, const Heartbeat& heartbeat) const {
  const Slot& slot = slots_[replica.holds];
  if (slot.blocks_dropped > 0) return std::nullopt;  // the cap made us forget on purpose
  const uint64_t resident = slot.resident[0] + slot.resident[1] + slot.resident[2];
  if (heartbeat.resident_blocks < 0 || resident != static_cast<uint64_t>(heartbeat.resident_blocks)) {
    return "the engine holds " + std::to_string(heartbeat.resident_blocks) + " blocks, the index believes " +
           std::to_string(resident);
  }
  if (slot.checksum != heartbeat.checksum) return "the engine holds other blocks than the index believes";
  return std::nullopt;
}

}  // namespace warmpath
