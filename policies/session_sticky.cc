#include "policies/session_sticky.h"

#include <utility>

#include "policies/eligible.h"

namespace warmpath {

Decision SessionStickyPolicy::decide(const RequestView& request, std::span<const Candidate> candidates, Rng& rng,
                                     MonotonicNs now) {
  Decision decision = start_decision(candidates);
  if (decision.verdict == Verdict::kNobody) return decision;
  for (size_t n = 0; n < candidates.size(); ++n) decision.costs[n].total = candidates[n].requests();

  const Hash128 session = request.session();
  const std::optional<ReplicaId> bound = session.is_zero() ? std::nullopt : sessions_.find(session, now);
  if (bound) {
    for (size_t n = 0; n < candidates.size(); ++n) {
      if (candidates[n].replica != *bound || !decision.costs[n].eligible) continue;
      sessions_.assign(session, *bound, now);
      decision.candidate = n;
      decision.reason = "sticky";
      return decision;
    }
  }
  std::vector<std::pair<int32_t, size_t>> loads;
  for (const Candidate& candidate : candidates) {
    loads.emplace_back(candidate.requests(), sessions_.bound_to(candidate.replica));
  }
  decision.candidate = pick_lowest(decision, rng, [&](size_t n) { return loads[n]; });
  decision.reason = bound ? "moved" : "new";
  if (!session.is_zero()) sessions_.assign(session, candidates[decision.candidate].replica, now);
  return decision;
}

}  // namespace warmpath
