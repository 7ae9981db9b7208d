// OverCommit: by how much the live sessions' KV may exceed the fleet's, learnt from what happens.
//
// What counts is how much of its cache a session finds again when it comes back within the time it was promised: the
// share of those tokens that was lost (evicted meanwhile, or left behind on another replica). Footprints are only an
// estimate: sessions share prefixes and end without a word, so a fleet may hold twice what they add up to; or it holds
// less, because running requests need room too. So the allowance falls by a tenth while more than `most_lost` of the
// tokens are lost, and rises by a twentieth while sessions wait although hardly any are (as TCP finds a link's
// capacity: Jacobson 1988).
// Thread safety: none; its owner locks.
#pragma once

#include "base/clock.h"

namespace warmpath {

class OverCommit {
 public:
  struct Options {
    double most_lost = 0.10;
    double few_lost = 0.04;
    double least = 0.25;
    double most = 8;
    double settle_s = 10;  // between two changes: what a change does shows only after some turns

    bool operator==(const Options&) const = default;
  };

  OverCommit() = default;
  explicit OverCommit(Options options) : options_(options) {}

  // A session came back: of `expected` tokens of its prompt that were cached when it left, `found` still were.
  void came_back(double expected, double found);
  // Now and then; `waiting`: some session would start if the allowance were larger.
  void adjust(bool waiting, MonotonicNs now);

  double factor() const { return factor_; }          // live tokens allowed / tokens of KV
  double lost_share() const { return lost_share_; }  // at the latest change

 private:
  Options options_;
  double factor_ = 1;
  double lost_share_ = 0;
  double expected_ = 0;  // both: since the latest change, and what fades from before
  double found_ = 0;
  int returns_ = 0;
  MonotonicNs changed_ns_ = 0;
};

}  // namespace warmpath
