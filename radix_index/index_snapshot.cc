#include "radix_index/index_snapshot.h"

#include <algorithm>
#include <string>
#include <unordered_set>

#include "base/check.h"
#include "radix_index/index_walk.h"
#include "radix_index/snapshot_bytes.h"

namespace warmpath {

namespace {

using snapshot::PieceKind;

// A piece takes the writer's turn for about a millisecond.
constexpr size_t kPieceBytes = size_t{1} << 20;
constexpr double kLongestPlacementS = 7 * 24 * 3600;

Status damaged(const std::string& what) { return invalid_argument("the snapshot is damaged: " + what); }

Status read_replicas(std::string_view payload, std::vector<IndexSnapshot::Replica>& replicas) {
  snapshot::In in(payload);
  const auto count = in.number<uint32_t>();
  if (in.failed() || count > snapshot::kMaxReplicas) return damaged("its list of replicas is too long");
  std::unordered_set<std::string_view> names;
  for (uint32_t n = 0; n < count; ++n) {
    IndexSnapshot::Replica replica;
    replica.name = in.text();
    replica.boot_epoch = in.number<uint64_t>();
    if (in.failed() || replica.name.empty() || !names.insert(replica.name).second) {
      return damaged("its list of replicas is broken");
    }
    replicas.push_back(replica);
  }
  return in.at_end() ? Status() : damaged("something follows its list of replicas");
}

}  // namespace

Result<IndexSnapshot> IndexSnapshot::parse(std::string_view bytes) {
  snapshot::In in(bytes);
  if (in.take(snapshot::kMagic.size()) != snapshot::kMagic) {
    return invalid_argument("this is not a snapshot of an index");
  }
  if (const auto version = in.number<uint32_t>(); in.failed() || version != snapshot::kVersion) {
    return failed_precondition("the snapshot is of version " + std::to_string(version) +
                               "; this program reads version " + std::to_string(snapshot::kVersion));
  }
  IndexSnapshot parsed;
  uint64_t runs = 0;
  uint64_t blocks = 0;
  snapshot::Run run;
  for (uint32_t number = 0;; ++number) {
    const std::string where = "piece " + std::to_string(number);
    const auto kind = static_cast<PieceKind>(in.number<uint32_t>());
    const auto size = in.number<uint32_t>();
    const auto checksum = in.number<uint64_t>();
    const std::string_view payload = in.take(size);
    if (in.failed()) return damaged("it ends in the middle (" + where + ")");
    if (checksum != snapshot::piece_checksum(payload, kind, number)) {
      return damaged("the checksum of " + where + " does not fit");
    }
    if ((number == 0) != (kind == PieceKind::kReplicas)) return damaged(where + " is not what belongs there");
    if (kind == PieceKind::kReplicas) {
      WARMPATH_RETURN_IF_ERROR(read_replicas(payload, parsed.replicas_));
    } else if (kind == PieceKind::kRuns) {
      for (snapshot::In in_piece(payload); !in_piece.at_end();) {
        if (!snapshot::read_run(in_piece, parsed.replicas_.size(), run)) {
          return damaged("a run in " + where + " is not valid");
        }
        ++runs;
        blocks += run.blocks.size();
      }
      parsed.run_pieces_.push_back(payload);
    } else if (kind == PieceKind::kEnd) {
      snapshot::In end(payload);
      parsed.saved_at_ns_ = end.number<int64_t>();
      parsed.runs_ = end.number<uint64_t>();
      parsed.blocks_ = end.number<uint64_t>();
      // A replica that restarted while the snapshot was written: its blocks may be of either life.
      for (Replica& replica : parsed.replicas_) {
        if (end.number<uint64_t>() != replica.boot_epoch) replica.boot_epoch = 0;
      }
      if (end.failed() || !end.at_end()) return damaged("its end is broken");
      if (parsed.runs_ != runs || parsed.blocks_ != blocks) return damaged("runs are missing");
      if (!in.at_end()) return damaged("something follows its end");
      return parsed;
    } else {
      return damaged(where + " is of an unknown kind");
    }
  }
}

bool RadixIndex::Impl::save_piece(SnapshotProgress& progress, MonotonicNs now, std::string& out) const {
  const auto epoch_of = [&](const SnapshotReplica& replica) -> uint64_t {
    return has_replica(replica.id) && replicas_[replica.id].epoch_known ? replicas_[replica.id].boot_epoch : 0;
  };
  const bool first = progress.pieces == 0;
  if (first) {
    out.append(snapshot::kMagic);
    snapshot::Out(out).number(snapshot::kVersion);
  }
  const size_t head_at = out.size();
  out.append(snapshot::kPieceHeadBytes, '\0');
  const size_t payload_at = out.size();
  snapshot::Out piece(out);
  PieceKind kind = PieceKind::kRuns;
  if (first) {
    kind = PieceKind::kReplicas;
    piece.number(static_cast<uint32_t>(progress.replicas.size()));
    for (const SnapshotReplica& replica : progress.replicas) {
      progress.epochs.push_back(epoch_of(replica));
      piece.text(std::string_view(replica.name).substr(0, snapshot::kMaxNameBytes));
      piece.number(progress.epochs.back());
    }
  } else if (progress.next_run < store_.id_end()) {
    std::vector<uint16_t> position_of_replica(replicas_.size(), UINT16_MAX);
    for (size_t n = 0; n < progress.replicas.size(); ++n) {
      if (progress.replicas[n].id < replicas_.size()) {
        position_of_replica[progress.replicas[n].id] = static_cast<uint16_t>(n);
      }
    }
    snapshot::Run run;
    for (; progress.next_run < store_.id_end() && out.size() - head_at < kPieceBytes; ++progress.next_run) {
      if (!store_.in_use(progress.next_run)) continue;
      describe_run(*store_.view(progress.next_run), position_of_replica, now, run);
      if (run.held.empty() && run.placed.empty()) continue;
      snapshot::write_run(piece, run);
      ++progress.runs;
      progress.blocks += run.blocks.size();
    }
  } else {
    kind = PieceKind::kEnd;
    piece.number(progress.saved_at_ns);
    piece.number(progress.runs);
    piece.number(progress.blocks);
    for (const SnapshotReplica& replica : progress.replicas) piece.number(epoch_of(replica));
  }
  snapshot::seal_piece(out, payload_at, kind, progress.pieces++);
  return kind != PieceKind::kEnd;
}

void RadixIndex::Impl::describe_run(const RunView& view, std::span<const uint16_t> position_of_replica, MonotonicNs now,
                                    snapshot::Run& run) const {
  const uint16_t begin = view.begin();
  run.parent = view.parent();
  run.blocks.assign(view.ids() + begin, view.ids() + view.end());
  run.held.clear();
  run.placed.clear();
  run.copies.clear();
  const auto position_of = [&](SlotId slot) {
    const SlotFace face = faces_[slot].load(std::memory_order_relaxed);
    return face.visible() ? position_of_replica[face.replica] : UINT16_MAX;
  };
  for (const HeldSpan& span : view.held()) {
    const Slot& owner = slots_[slot_of(span.key)];
    const uint16_t replica = position_of(slot_of(span.key));
    if (replica == UINT16_MAX) continue;
    const auto tier = static_cast<uint8_t>(tier_of(span.key));
    run.held.push_back(
        {replica, tier, static_cast<uint16_t>(span.begin - begin), static_cast<uint16_t>(span.end - begin)});
    if (owner.extra_copies.empty()) continue;
    for (uint16_t offset = span.begin; offset < span.end; ++offset) {
      const auto extra = owner.extra_copies.find({view.ids()[offset], tier_of(span.key)});
      if (extra == owner.extra_copies.end()) continue;
      run.copies.push_back({replica, tier, static_cast<uint16_t>(offset - begin), extra->second});
    }
  }
  for (const PlacedSpan& span : view.placed()) {
    const uint16_t replica = position_of(span.key);
    if (replica == UINT16_MAX || span.expires_ns <= now) continue;
    const auto left_ms = std::min<int64_t>((span.expires_ns - now) / 1'000'000, UINT32_MAX);
    run.placed.push_back({replica, static_cast<uint16_t>(span.begin - begin), static_cast<uint16_t>(span.end - begin),
                          static_cast<uint32_t>(left_ms)});
  }
}

uint64_t RadixIndex::Impl::restore(const IndexSnapshot& from, std::span<const SnapshotReplica> replicas, double age_s,
                                   MonotonicNs now) {
  // By position in the snapshot; kNoReplica for those that are not wanted.
  constexpr ReplicaId kNoReplica = UINT32_MAX;
  std::vector<ReplicaId> restored(from.replicas().size(), kNoReplica);
  for (size_t n = 0; n < restored.size(); ++n) {
    const IndexSnapshot::Replica& known = from.replicas()[n];
    const auto wanted = std::find_if(replicas.begin(), replicas.end(),
                                     [&](const SnapshotReplica& replica) { return replica.name == known.name; });
    if (wanted == replicas.end() || known.boot_epoch == 0 || !has_replica(wanted->id)) continue;
    Replica& replica = replicas_[wanted->id];
    if (replica.epoch_known) continue;  // it has spoken for itself already
    replica.boot_epoch = known.boot_epoch;
    replica.epoch_known = true;
    restored[n] = wanted->id;
  }
  uint64_t blocks = 0;
  snapshot::Run run;
  for (const std::string_view piece : from.run_pieces()) {
    for (snapshot::In in(piece); !in.at_end() && snapshot::read_run(in, restored.size(), run);) {
      blocks += restore_run(run, restored, age_s, now);
      enforce_cap(now);
    }
  }
  for (const ReplicaId id : restored) {
    if (id == kNoReplica) continue;
    const auto& resident = slots_[replicas_[id].holds].resident;
    if (resident[0] + resident[1] + resident[2] > 0) replicas_[id].trust = Trust::kDegraded;
  }
  return blocks;
}

uint64_t RadixIndex::Impl::restore_run(const snapshot::Run& run, std::span<const ReplicaId> restored, double age_s,
                                       MonotonicNs now) {
  const auto wanted = [&](const auto& item) { return has_replica(restored[item.replica]); };
  if (std::none_of(run.held.begin(), run.held.end(), wanted) &&
      std::none_of(run.placed.begin(), run.placed.end(), wanted)) {
    return 0;
  }
  uint64_t blocks = 0;
  uint32_t first = 0;  // of the run's blocks, in this stretch
  walk(run.parent, run.blocks, now, [&](uint32_t id, uint16_t begin, uint16_t end) {
    const uint32_t last = first + end - begin;
    // The part of [from, to) that lies in this stretch, as offsets there.
    const auto in_stretch = [&](uint16_t from, uint16_t to, uint16_t& begin_out, uint16_t& end_out) {
      const uint32_t most_first = std::max<uint32_t>(from, first);
      const uint32_t least_last = std::min<uint32_t>(to, last);
      begin_out = static_cast<uint16_t>(begin + (most_first - first));
      end_out = static_cast<uint16_t>(begin + (std::max(most_first, least_last) - first));
      return most_first < least_last;
    };
    const Hash128* ids = store_.ids(id);
    store_.edit(id, [&](RunDraft& draft) {
      uint16_t from, to;
      for (const snapshot::Held& held : run.held) {
        if (!wanted(held) || !in_stretch(held.begin, held.end, from, to)) continue;
        const SlotId slot = replicas_[restored[held.replica]].holds;
        const Tier tier = static_cast<Tier>(held.tier);
        const uint16_t key = holder_of(slot, tier);
        // Runs that changed while the snapshot was written may be in it twice: nothing counts twice.
        for (uint16_t offset = from; offset < to; ++offset) {
          if (find_span(draft.held.spans(), key, offset) != nullptr) continue;
          slots_[slot].checksum ^= residency_term(ids[offset], tier);
          ++slots_[slot].resident[held.tier];
          ++blocks;
        }
        draft.held.cover(key, from, to);
      }
      for (const snapshot::Copies& copies : run.copies) {
        if (!wanted(copies) || copies.offset < first || copies.offset >= last) continue;
        const auto offset = static_cast<uint16_t>(begin + copies.offset - first);
        Slot& owner = slots_[replicas_[restored[copies.replica]].holds];
        const Tier tier = static_cast<Tier>(copies.tier);
        if (find_span(draft.held.spans(), holder_of(replicas_[restored[copies.replica]].holds, tier), offset) ==
            nullptr) {
          continue;
        }
        if (!owner.extra_copies.emplace(CopyKey{ids[offset], tier}, copies.extra).second) continue;
        owner.resident[copies.tier] += copies.extra;
        if (copies.extra % 2 == 1) owner.checksum ^= residency_term(ids[offset], tier);
      }
      for (const snapshot::Placed& placed : run.placed) {
        if (!wanted(placed) || !in_stretch(placed.begin, placed.end, from, to)) continue;
        const double left_s = std::min(placed.left_ms * 1e-3 - age_s, kLongestPlacementS);
        if (left_s <= 0) continue;
        draft.placed.cover(replicas_[restored[placed.replica]].placed, from, to,
                           now + static_cast<MonotonicNs>(left_s * 1e9));
      }
    });
    first = last;
  });
  return blocks;
}

bool RadixIndex::Impl::confirm_epoch(ReplicaId id, uint64_t boot_epoch) {
  WARMPATH_CHECK(has_replica(id), "confirm_epoch() of an unknown replica");
  Replica& replica = replicas_[id];
  const bool same = !replica.epoch_known || replica.boot_epoch == boot_epoch;
  if (!same) {
    kill_slot(replica.loads);
    replica.loads = kNoSlot;
    replica.phase = Replica::Phase::kNoStream;
    replica.trust = Trust::kPredicted;
    renew_held(replica, id);
  }
  replica.boot_epoch = boot_epoch;
  replica.epoch_known = true;
  return same;
}

}  // namespace warmpath
