#include "router/recent_removals.h"

#include <algorithm>
#include <variant>

namespace warmpath {

RecentRemovals::Mark RecentRemovals::mark() const {
  const std::lock_guard lock(mutex_);
  return removed_;
}

void RecentRemovals::note(const KvEventBatch& batch) {
  const std::lock_guard lock(mutex_);
  if (batch.kind == KvEventBatch::Kind::kSnapshotBegin) cleared_at_ = ++removed_;
  for (const KvEvent& event : batch.events) {
    if (std::holds_alternative<BlocksCleared>(event)) cleared_at_ = ++removed_;
    const auto* removed = std::get_if<BlocksRemoved>(&event);
    if (removed == nullptr) continue;
    if (ring_.empty()) ring_.resize(kKept);
    for (const Hash128& block : removed->blocks) ring_[removed_++ % kKept] = block.lo;
  }
}

bool RecentRemovals::may_have_gone(const Hash128& block, Mark mark) const {
  const std::lock_guard lock(mutex_);
  if (cleared_at_ > mark || removed_ - mark > kKept) return true;
  for (Mark n = mark; n < removed_; ++n) {
    if (!ring_.empty() && ring_[n % kKept] == block.lo) return true;
  }
  return false;
}

}  // namespace warmpath
