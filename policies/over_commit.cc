#include "policies/over_commit.h"

#include <algorithm>

namespace warmpath {

namespace {

// Fewer say nothing yet.
constexpr int kFewReturns = 8;

}  // namespace

void OverCommit::came_back(double expected, double found) {
  if (expected <= 0) return;
  expected_ += expected;
  found_ += std::clamp(found, 0.0, expected);
  ++returns_;
}

void OverCommit::adjust(bool waiting, MonotonicNs now) {
  if (static_cast<double>(now - changed_ns_) * 1e-9 < options_.settle_s || returns_ < kFewReturns) return;
  lost_share_ = 1 - found_ / expected_;
  if (lost_share_ > options_.most_lost) {
    factor_ = std::max(options_.least, factor_ * 0.9);
  } else if (lost_share_ < options_.few_lost && waiting) {
    factor_ = std::min(options_.most, factor_ * 1.05);
  }
  changed_ns_ = now;
  // Half of what was seen before still counts.
  expected_ /= 2;
  found_ /= 2;
  returns_ = 0;
}

}  // namespace warmpath
