#include "policies/predicted_costs.h"

#include <algorithm>
#include <limits>

namespace warmpath {

double PredictedCosts::note_prefill(double seconds) {
  const std::lock_guard lock(mutex_);
  seen_ = std::min(seen_ + 1, kRemembered);
  mean_prefill_s_ += (seconds - mean_prefill_s_) / seen_;
  return mean_prefill_s_;
}

namespace {

// How much of a shared prefix is not charged: all of it once more sessions than replicas share it.
double share_of(double sessions, size_t replicas) {
  return std::clamp((sessions - 1) / static_cast<double>(replicas), 0.0, 1.0);
}

}  // namespace

bool PredictedCosts::fill(const RequestView& request, std::span<const Candidate> candidates, Decision& decision) {
  int64_t most_cached = 0;
  size_t eligible = 0;
  double cheapest_s = std::numeric_limits<double>::infinity();
  double shortest_s = std::numeric_limits<double>::infinity();
  for (size_t n = 0; n < candidates.size(); ++n) {
    CandidateCost& cost = decision.costs[n];
    const bool is_eligible = cost.eligible;
    cost = seconds_cost(request, candidates[n], options_);
    cost.eligible = is_eligible;
    if (!is_eligible) continue;
    ++eligible;
    most_cached = std::max(most_cached, candidates[n].cached_tokens());
    cheapest_s = std::min(cheapest_s, cost.prefill_s);
    shortest_s = std::min(shortest_s, cost.queue_s);
  }
  if (eligible == 0) return false;

  const bool is_new = most_cached <= request.base_tokens + kBlockTokens;
  double base_share = 0;  // of the base's cost that is not charged
  if (!request.base_key.is_zero()) {
    const double sessions = bases_.note(request.base_key, request.session()).sessions;
    if (is_new) base_share = share_of(sessions, eligible);
  }
  int64_t base_cached = std::min(most_cached, request.base_tokens);
  if (options_.replicate > 0 && !request.session_key.is_zero() && !request.content_key.is_zero()) {
    // What others hold of a session's first prompt is not its own: it is theirs, and shared.
    const SharedBases::Share share = documents_.note(request.content_key, request.session_key);
    if (share.fresh && !is_new) {
      base_cached = most_cached;
      base_share = options_.replicate * share_of(share.sessions, eligible);
    }
  }
  const double mean_s = std::max(note_prefill(cheapest_s), 1e-9);
  const double patience = options_.patience * std::min(1.0, shortest_s / mean_s) * cheapest_s / (cheapest_s + mean_s);

  for (size_t n = 0; n < candidates.size(); ++n) {
    CandidateCost& cost = decision.costs[n];
    if (candidates[n].cached_tokens() < base_cached) {
      const double with_base_s = prefill_seconds(request, candidates[n], base_cached);
      cost.base_credit_s = base_share * (1 + options_.price) * std::max(cost.prefill_s - with_base_s, 0.0);
    }
    cost.patience_credit_s = patience * cost.queue_s;
    cost.total -= cost.base_credit_s + cost.patience_credit_s;
  }
  return is_new;
}

}  // namespace warmpath
