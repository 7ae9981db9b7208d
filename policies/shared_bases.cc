#include "policies/shared_bases.h"

#include <algorithm>
#include <cmath>

namespace warmpath {

SharedBases::Share SharedBases::note(Hash128 base, Hash128 session) {
  const std::lock_guard lock(mutex_);
  const auto found = by_base_.find(base);
  if (found == by_base_.end()) {
    if (entries_.size() == kMaxBases) {
      by_base_.erase(entries_.back().base);
      entries_.pop_back();
    }
    entries_.push_front({base, {}});
    by_base_[base] = entries_.begin();
  } else {
    entries_.splice(entries_.begin(), entries_, found->second);
  }
  std::bitset<kBits>& sessions = entries_.front().sessions;
  const bool fresh = !sessions.test(session.lo % kBits);
  sessions.set(session.lo % kBits);
  const auto empty = static_cast<double>(std::max<size_t>(kBits - sessions.count(), 1));
  return {std::max(1.0, kBits * std::log(kBits / empty)), fresh};
}

}  // namespace warmpath
