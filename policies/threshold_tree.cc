#include "policies/threshold_tree.h"

#include <algorithm>
#include <utility>

#include "policies/eligible.h"

namespace warmpath {

Decision ThresholdTreePolicy::decide(const RequestView& request, std::span<const Candidate> candidates, Rng& rng,
                                     MonotonicNs) {
  Decision decision = start_decision(candidates);
  if (decision.verdict == Verdict::kNobody) return decision;
  int32_t fewest = INT32_MAX;
  int32_t most = 0;
  int64_t best_match = 0;
  for (size_t n = 0; n < candidates.size(); ++n) {
    decision.costs[n].total = candidates[n].requests();
    if (!decision.costs[n].eligible) continue;
    fewest = std::min(fewest, candidates[n].requests());
    most = std::max(most, candidates[n].requests());
    best_match = std::max(best_match, candidates[n].cached_tokens());
  }
  const bool imbalanced = most - fewest > options_.balance_abs && most > options_.balance_rel * fewest;
  const bool matches =
      static_cast<double>(best_match) > options_.cache_threshold * static_cast<double>(request.prompt_tokens);
  if (!imbalanced && matches) {
    decision.candidate = pick_lowest(
        decision, rng, [&](size_t n) { return std::pair(-candidates[n].cached_tokens(), candidates[n].requests()); });
    decision.reason = "match";
  } else {
    decision.candidate = pick_lowest(decision, rng, [&](size_t n) { return candidates[n].requests(); });
    decision.reason = imbalanced ? "imbalanced" : "load";
  }
  return decision;
}

}  // namespace warmpath
