#include "policies/eligible.h"

namespace warmpath {

Decision start_decision(std::span<const Candidate> candidates) {
  Decision decision;
  decision.costs.reserve(candidates.size());
  for (const Candidate& candidate : candidates) {
    CandidateCost cost;
    cost.replica = candidate.replica;
    cost.eligible = candidate.healthy && !candidate.draining;
    if (cost.eligible) decision.verdict = Verdict::kRoute;
    decision.costs.push_back(cost);
  }
  return decision;
}

}  // namespace warmpath
