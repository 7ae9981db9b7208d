#include "policies/score_policies.h"

#include <algorithm>

#include "policies/eligible.h"

namespace warmpath {

namespace {

// Fills every total with `score(n)` and picks the lowest.
template <typename Score>
Decision decide_by(std::span<const Candidate> candidates, Rng& rng, Score score) {
  Decision decision = start_decision(candidates);
  if (decision.verdict == Verdict::kNobody) return decision;
  for (size_t n = 0; n < candidates.size(); ++n) decision.costs[n].total = score(n);
  decision.candidate = pick_lowest(decision, rng, [&](size_t n) { return decision.costs[n].total; });
  decision.reason = "score";
  return decision;
}

}  // namespace

Decision LinearBlocksPolicy::decide(const RequestView& request, std::span<const Candidate> candidates, Rng& rng,
                                    MonotonicNs) {
  return decide_by(candidates, rng, [&](size_t n) {
    const Candidate& candidate = candidates[n];
    const auto blocks = [](int64_t tokens) { return static_cast<double>(tokens) / kBlockTokens; };
    const double credit = options_.overlap_credit * blocks(candidate.device_tokens + candidate.placed_tokens) +
                          options_.host_credit * blocks(candidate.host_tokens) +
                          options_.disk_credit * blocks(candidate.disk_tokens);
    const double prefill = blocks(candidate.queued_uncached_tokens) + blocks(request.prompt_tokens) - credit;
    return std::max(prefill, 0.0) + blocks(candidate.active_tokens);
  });
}

Decision LoadProductPolicy::decide(const RequestView& request, std::span<const Candidate> candidates, Rng& rng,
                                   MonotonicNs) {
  return decide_by(candidates, rng, [&](size_t n) {
    const Candidate& candidate = candidates[n];
    const int64_t own = std::max<int64_t>(request.prompt_tokens - candidate.cached_tokens(), 0);
    return static_cast<double>(candidate.queued_uncached_tokens + own) * (candidate.running + 1);
  });
}

Decision WeightedScoresPolicy::decide(const RequestView& request, std::span<const Candidate> candidates, Rng& rng,
                                      MonotonicNs) {
  int32_t shortest = INT32_MAX;
  int32_t longest = 0;
  for (const Candidate& candidate : candidates) {
    if (!candidate.healthy || candidate.draining) continue;
    shortest = std::min(shortest, candidate.queued);
    longest = std::max(longest, candidate.queued);
  }
  return decide_by(candidates, rng, [&](size_t n) {
    const Candidate& candidate = candidates[n];
    const double prefix = request.prompt_tokens <= 0 ? 0.0
                                                     : static_cast<double>(candidate.cached_tokens()) /
                                                           static_cast<double>(request.prompt_tokens);
    const double used = candidate.capacity_tokens <= 0 ? 0.0
                                                       : static_cast<double>(candidate.active_tokens) /
                                                             static_cast<double>(candidate.capacity_tokens);
    const double queue =
        longest <= shortest ? 1.0 : static_cast<double>(longest - candidate.queued) / (longest - shortest);
    return -(options_.prefix * prefix + options_.kv_utilization * (1 - used) + options_.queue * queue);
  });
}

}  // namespace warmpath
