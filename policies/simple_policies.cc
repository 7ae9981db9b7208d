#include "policies/simple_policies.h"

#include "policies/eligible.h"

namespace warmpath {

Decision RoundRobinPolicy::decide(const RequestView&, std::span<const Candidate> candidates, Rng&, MonotonicNs) {
  Decision decision = start_decision(candidates);
  if (decision.verdict == Verdict::kNobody) return decision;
  decision.reason = "turn";
  size_t eligible = 0;
  for (const CandidateCost& cost : decision.costs) eligible += cost.eligible;
  size_t skip = turn_.fetch_add(1, std::memory_order_relaxed) % eligible;
  for (size_t n = 0; n < candidates.size(); ++n) {
    if (!decision.costs[n].eligible || skip-- > 0) continue;
    decision.candidate = n;
    break;
  }
  return decision;
}

Decision RandomPolicy::decide(const RequestView&, std::span<const Candidate> candidates, Rng& rng, MonotonicNs) {
  Decision decision = start_decision(candidates);
  if (decision.verdict == Verdict::kNobody) return decision;
  decision.reason = "chance";
  decision.candidate = pick_lowest(decision, rng, [](size_t) { return 0; });
  return decision;
}

Decision LeastRequestsPolicy::decide(const RequestView&, std::span<const Candidate> candidates, Rng& rng, MonotonicNs) {
  Decision decision = start_decision(candidates);
  if (decision.verdict == Verdict::kNobody) return decision;
  decision.reason = "load";
  for (size_t n = 0; n < candidates.size(); ++n) decision.costs[n].total = candidates[n].requests();
  decision.candidate = pick_lowest(decision, rng, [&](size_t n) { return candidates[n].requests(); });
  return decision;
}

}  // namespace warmpath
