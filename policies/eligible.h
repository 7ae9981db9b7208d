// Who may take a request, and the least loaded of them: shared by the policies. Private to this room.
// Thread safety: pure functions.
#pragma once

#include <span>
#include <vector>

#include "policies/policy.h"

namespace warmpath {

// A decision with one cost per candidate, `eligible` filled in, and the verdict kRoute if there is anyone, else
// kNobody.
Decision start_decision(std::span<const Candidate> candidates);

// Of the candidates for which costs[n].eligible and `key(n)` is lowest, one at random.
template <typename Key>
size_t pick_lowest(const Decision& decision, Rng& rng, Key key) {
  size_t best = 0;
  uint64_t ties = 0;
  for (size_t n = 0; n < decision.costs.size(); ++n) {
    if (!decision.costs[n].eligible) continue;
    if (ties == 0 || key(n) < key(best)) {
      best = n;
      ties = 1;
    } else if (!(key(best) < key(n)) && rng.below(++ties) == 0) {
      best = n;
    }
  }
  return best;
}

}  // namespace warmpath
