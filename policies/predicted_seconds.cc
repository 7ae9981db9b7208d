#include "policies/predicted_seconds.h"

#include <cmath>
#include <tuple>

#include "policies/eligible.h"

namespace warmpath {

Decision PredictedSecondsPolicy::decide(const RequestView& request, std::span<const Candidate> candidates, Rng& rng,
                                        MonotonicNs now) {
  Decision decision = start_decision(candidates);
  if (decision.verdict == Verdict::kNobody) return decision;
  const bool is_new = costs_.fill(request, candidates, decision);

  // The decode time, which hardly depends on the choice, does not widen the tie.
  double lowest = 0;
  double lowest_band = 0;
  bool any = false;
  for (const CandidateCost& cost : decision.costs) {
    if (!cost.eligible || (any && cost.total >= lowest)) continue;
    any = true;
    lowest = cost.total;
    lowest_band = options_.tie_s + options_.tie_fraction * (cost.total - cost.decode_s);
  }

  const std::lock_guard lock(mutex_);
  using Order = std::tuple<bool, int32_t, double, int64_t>;
  std::vector<Order> orders(candidates.size());
  size_t ties = 0;
  for (size_t n = 0; n < candidates.size(); ++n) {
    const bool beyond = decision.costs[n].total > lowest + lowest_band;
    ties += decision.costs[n].eligible && !beyond;
    const auto begun = begun_.find(candidates[n].replica);
    orders[n] = {beyond, candidates[n].requests(), begun == begun_.end() ? 0.0 : begun_at(begun->second, now),
                 candidates[n].resident_tokens};
  }
  decision.candidate = pick_lowest(decision, rng, [&](size_t n) -> const Order& { return orders[n]; });
  decision.reason = ties > 1 ? "tie" : "cost";
  if (is_new) {
    Begun& begun = begun_[candidates[decision.candidate].replica];
    begun = {begun_at(begun, now) + 1, now};
  }
  return decision;
}

void PredictedSecondsPolicy::forget(ReplicaId replica) {
  const std::lock_guard lock(mutex_);
  begun_.erase(replica);
}

double PredictedSecondsPolicy::begun_at(const Begun& begun, MonotonicNs now) {
  return begun.count * std::exp2(-static_cast<double>(now - begun.at_ns) * 1e-9 / kBegunHalfLifeS);
}

}  // namespace warmpath
