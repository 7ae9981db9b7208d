#include "policies/seconds_cost.h"

#include <algorithm>

namespace warmpath {

double queued_prefill_seconds(const Candidate& candidate, double context_tokens) {
  const Rates& rates = candidate.rates;
  const bool predicted = candidate.queued_prefill_s >= 0;
  const int64_t tokens = predicted ? candidate.unpredicted_tokens : candidate.queued_uncached_tokens;
  const double token_s = rates.prefill_token_s + context_tokens * rates.prefill_context_s;
  return (predicted ? candidate.queued_prefill_s : 0) + static_cast<double>(tokens) * token_s;
}

double queue_seconds(const RequestView& request, const Candidate& candidate) {
  // Tokens that nobody predicted are taken to lie as deep in their contexts as this prompt's do.
  double seconds = queued_prefill_seconds(candidate, static_cast<double>(request.prompt_tokens) / 2);
  if (candidate.max_running > 0 && candidate.requests() >= candidate.max_running) {
    // A slot comes free about every (answer's length in steps) / slots.
    const double answers_s = request.expected_output_tokens * candidate.rates.decode_step(candidate.max_running);
    seconds += (candidate.requests() - candidate.max_running + 1) * answers_s / candidate.max_running;
  }
  return seconds;
}

double prefill_seconds(const RequestView& request, const Candidate& candidate, int64_t cached) {
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

CandidateCost seconds_cost(const RequestView& request, const Candidate& candidate,
                           const PredictedSecondsOptions& options) {
  CandidateCost cost;
  cost.replica = candidate.replica;
  cost.queue_s = queue_seconds(request, candidate);
  cost.prefill_s = prefill_seconds(request, candidate, candidate.cached_tokens());
  cost.fetch_s = fetch_seconds(candidate);
  cost.price_s = options.price * cost.prefill_s;
  cost.decode_s = options.decode_weight * decode_seconds(request, candidate);
  cost.total = cost.queue_s + cost.prefill_s + cost.fetch_s + cost.price_s + cost.decode_s;
  return cost;
}

}  // namespace warmpath
