// RadixIndex::check_integrity: everything is walked, everything that is counted is counted again.
#include <map>

#include "radix_index/index_impl.h"

namespace warmpath {

Status RadixIndex::Impl::check_integrity() const {
  if (const Status status = store_.check_integrity(); !status.ok()) return status;

  struct Recount {
    std::array<uint64_t, kTiers> resident{};
    uint64_t checksum = 0;
    size_t extra_used = 0;
  };
  std::map<SlotId, Recount> recounts;
  for (uint32_t id = 0; id < store_.id_end(); ++id) {
    if (!store_.in_use(id)) continue;
    const RunView& run = *store_.view(id);
    const std::string where = "run " + std::to_string(id) + ": ";
    for (uint16_t offset = run.begin(); offset < run.end(); ++offset) {
      if (!run.covers(offset)) return internal_error(where + "block " + std::to_string(offset) + " has no holder");
    }
    for (const HeldSpan& span : run.held()) {
      const SlotId slot = slot_of(span.key);
      if (slot >= slots_.size()) return internal_error(where + "a span names a slot that was never made");
      const Slot& owner = slots_[slot];
      if (owner.state == Slot::State::kFree || owner.state == Slot::State::kSwept ||
          owner.state == Slot::State::kPlaced) {
        return internal_error(where + "a span names a slot that holds nothing");
      }
      if (owner.state == Slot::State::kDead) continue;
      Recount& recount = recounts[slot];
      const Tier tier = tier_of(span.key);
      for (uint16_t offset = span.begin; offset < span.end; ++offset) {
        uint64_t copies = 1;
        if (const auto extra = owner.extra_copies.find({run.ids()[offset], tier}); extra != owner.extra_copies.end()) {
          if (extra->second == 0) return internal_error(where + "an extra copy counts zero");
          copies += extra->second;
          ++recount.extra_used;
        }
        recount.resident[static_cast<size_t>(tier)] += copies;
        if (copies % 2 == 1) recount.checksum ^= residency_term(run.ids()[offset], tier);
      }
    }
    for (const PlacedSpan& span : run.placed()) {
      if (span.key >= slots_.size() ||
          (slots_[span.key].state != Slot::State::kPlaced && slots_[span.key].state != Slot::State::kDead)) {
        return internal_error(where + "a placement names a slot that is not one for placements");
      }
    }
  }
  for (SlotId slot = 0; slot < slots_.size(); ++slot) {
    const Slot& owner = slots_[slot];
    const bool visible = owner.state == Slot::State::kHolds || owner.state == Slot::State::kPlaced;
    const SlotFace face = faces_[slot].load(std::memory_order_relaxed);
    if (face.visible() != visible || (visible && face.replica != owner.owner)) {
      return internal_error("slot " + std::to_string(slot) + ": lookups see it wrong");
    }
    if (!visible && owner.state != Slot::State::kLoads) continue;
    const std::string where = "slot " + std::to_string(slot) + ": ";
    const Recount& recount = recounts[slot];
    if (recount.resident != owner.resident) return internal_error(where + "resident copies are not what was counted");
    if (recount.checksum != owner.checksum) return internal_error(where + "the checksum is not that of its blocks");
    if (recount.extra_used != owner.extra_copies.size()) return internal_error(where + "copies of blocks nobody holds");
    if (owner.owner >= replicas_.size() || !replicas_[owner.owner].in_use) {
      return internal_error(where + "is alive, but its replica is not");
    }
    const Replica& replica = replicas_[owner.owner];
    const SlotId expected = owner.state == Slot::State::kHolds   ? replica.holds
                            : owner.state == Slot::State::kLoads ? replica.loads
                                                                 : replica.placed;
    if (expected != slot) return internal_error(where + "its replica does not know it");
    if (visible && face.partner != (owner.state == Slot::State::kHolds ? replica.placed : replica.holds)) {
      return internal_error(where + "lookups see another partner");
    }
  }
  return {};
}

}  // namespace warmpath
