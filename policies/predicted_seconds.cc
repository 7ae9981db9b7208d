#include "policies/predicted_seconds.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "policies/eligible.h"

namespace warmpath {

namespace {

double queue_seconds(const RequestView& request, const Candidate& candidate) {
  const Rates& rates = candidate.rates;
  const double token_s =
      rates.prefill_token_s + static_cast<double>(request.prompt_tokens) / 2 * rates.prefill_context_s;
  const bool predicted = candidate.queued_prefill_s >= 0;
  const int64_t tokens = predicted ? candidate.unpredicted_tokens : candidate.queued_uncached_tokens;
  double seconds = (predicted ? candidate.queued_prefill_s : 0) + static_cast<double>(tokens) * token_s;
  if (candidate.max_running > 0 && candidate.requests() >= candidate.max_running) {
    // A slot comes free about every (answer's length in steps) / slots.
    const double answers_s = request.expected_output_tokens * rates.decode_step(candidate.max_running);
    seconds += (candidate.requests() - candidate.max_running + 1) * answers_s / candidate.max_running;
  }
  return seconds;
}

double own_prefill_seconds(const RequestView& request, const Candidate& candidate, int64_t cached) {
  const int64_t uncached = std::max<int64_t>(request.prompt_tokens - cached, 1);
  return candidate.rates.prefill_s(static_cast<double>(uncached), static_cast<double>(cached));
}

double fetch_seconds(const Candidate& candidate) {
  return static_cast<double>(candidate.host_tokens) * candidate.rates.host_token_s +
         static_cast<double>(candidate.disk_tokens) * candidate.rates.disk_token_s;
}

double decode_seconds(const RequestView& request, const Candidate& candidate) {
  const double others = candidate.requests();
  return request.expected_output_tokens *
         (candidate.rates.decode_step(others + 1) + others * candidate.rates.decode_sequence_s);
}

}  // namespace

Decision PredictedSecondsPolicy::decide(const RequestView& request, std::span<const Candidate> candidates, Rng& rng,
                                        MonotonicNs now) {
  Decision decision = start_decision(candidates);
  if (decision.verdict == Verdict::kNobody) return decision;

  int64_t most_cached = 0;
  size_t eligible = 0;
  for (size_t n = 0; n < candidates.size(); ++n) {
    if (!decision.costs[n].eligible) continue;
    ++eligible;
    most_cached = std::max(most_cached, candidates[n].cached_tokens());
  }
  // Nobody holds anything past the base: as far as caches go, this session is new.
  const bool is_new = most_cached <= request.base_tokens + kBlockTokens;
  double base_share = 0;  // of the base's cost that is not charged
  if (!request.base_key.is_zero()) {
    const double sessions = bases_.note(request.base_key, request.session());
    if (is_new) base_share = std::clamp((sessions - 1) / static_cast<double>(eligible), 0.0, 1.0);
  }
  const int64_t base_cached = std::min(most_cached, request.base_tokens);

  double lowest = 0;
  double lowest_band = 0;
  bool any = false;
  for (size_t n = 0; n < candidates.size(); ++n) {
    const Candidate& candidate = candidates[n];
    CandidateCost& cost = decision.costs[n];
    cost.queue_s = queue_seconds(request, candidate);
    cost.prefill_s = own_prefill_seconds(request, candidate, candidate.cached_tokens());
    cost.fetch_s = fetch_seconds(candidate);
    cost.price_s = options_.price * cost.prefill_s;
    cost.decode_s = options_.decode_weight * decode_seconds(request, candidate);
    if (candidate.cached_tokens() < base_cached) {
      const double with_base_s = own_prefill_seconds(request, candidate, base_cached);
      cost.base_credit_s = base_share * (1 + options_.price) * std::max(cost.prefill_s - with_base_s, 0.0);
    }
    const double prompt_s = cost.queue_s + cost.prefill_s + cost.fetch_s + cost.price_s - cost.base_credit_s;
    cost.total = prompt_s + cost.decode_s;
    if (cost.eligible && (!any || cost.total < lowest)) {
      any = true;
      lowest = cost.total;
      lowest_band = options_.tie_s + options_.tie_fraction * prompt_s;
    }
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
