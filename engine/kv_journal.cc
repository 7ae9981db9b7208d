#include "engine/kv_journal.h"

#include <unordered_map>
#include <utility>

#include "base/check.h"

namespace warmpath {

namespace {
constexpr size_t kBlocksPerSnapshotPart = 4096;
}  // namespace

void KvJournal::on_stored(Hash128 parent, Hash128 identity) {
  ++resident_;
  checksum_ ^= residency_term(identity, Tier::kDevice);
  if (!pending_.empty()) {
    auto* stored = std::get_if<BlocksStored>(&pending_.back());
    if (stored != nullptr && stored->blocks.back() == parent) {
      stored->blocks.push_back(identity);
      return;
    }
  }
  pending_.push_back(BlocksStored{Tier::kDevice, parent, {identity}});
}

void KvJournal::on_removed(Hash128 identity) {
  --resident_;
  checksum_ ^= residency_term(identity, Tier::kDevice);
  if (!pending_.empty()) {
    if (auto* removed = std::get_if<BlocksRemoved>(&pending_.back())) {
      removed->blocks.push_back(identity);
      return;
    }
  }
  pending_.push_back(BlocksRemoved{Tier::kDevice, {identity}});
}

void KvJournal::evict_soon(std::vector<Hash128> blocks) {
  pending_.push_back(EvictSoon{Tier::kDevice, std::move(blocks)});
}

void KvJournal::heartbeat() { pending_.push_back(Heartbeat{resident_, checksum_}); }

std::optional<KvEventBatch> KvJournal::flush() {
  if (pending_.empty()) return std::nullopt;
  ++sequence_;
  KvEventBatch flushed = batch(KvEventBatch::Kind::kLive);
  flushed.events = std::move(pending_);
  pending_.clear();
  return flushed;
}

std::vector<KvEventBatch> KvJournal::snapshot(const BlockPool& pool) const {
  WARMPATH_CHECK(pending_.empty(), "a snapshot stands between two batches");
  struct Copy {
    Hash128 parent, identity;
    bool sent = false;
  };
  std::vector<Copy> copies;
  pool.for_each_resident([&](Hash128 parent, Hash128 identity) { copies.push_back({parent, identity}); });
  std::unordered_multimap<Hash128, size_t> children;
  std::unordered_map<Hash128, size_t> resident;
  for (size_t index = 0; index < copies.size(); ++index) {
    children.emplace(copies[index].parent, index);
    resident.emplace(copies[index].identity, index);
  }

  std::vector<KvEventBatch> batches{batch(KvEventBatch::Kind::kSnapshotBegin)};
  size_t in_part = kBlocksPerSnapshotPart;
  const auto send_run = [&](size_t first, std::vector<size_t>& to_visit) {
    // Follows first children; the others wait for their own run.
    BlocksStored run{Tier::kDevice, copies[first].parent, {}};
    for (size_t index = first;;) {
      copies[index].sent = true;
      run.blocks.push_back(copies[index].identity);
      size_t next = copies.size();
      const auto [begin, end] = children.equal_range(copies[index].identity);
      for (auto child = begin; child != end; ++child) {
        if (copies[child->second].sent) continue;
        if (next == copies.size()) {
          next = child->second;
        } else {
          to_visit.push_back(child->second);
        }
      }
      if (next == copies.size()) break;
      index = next;
    }
    if (in_part >= kBlocksPerSnapshotPart) {
      batches.push_back(batch(KvEventBatch::Kind::kSnapshotPart));
      in_part = 0;
    }
    in_part += run.blocks.size();
    batches.back().events.emplace_back(std::move(run));
  };
  std::vector<size_t> to_visit;
  for (size_t index = 0; index < copies.size(); ++index) {
    if (copies[index].sent || resident.contains(copies[index].parent)) continue;
    to_visit.push_back(index);
    while (!to_visit.empty()) {
      const size_t first = to_visit.back();
      to_visit.pop_back();
      if (!copies[first].sent) send_run(first, to_visit);
    }
  }
  batches.push_back(batch(KvEventBatch::Kind::kSnapshotEnd));
  return batches;
}

}  // namespace warmpath
