// What a request would cost on one replica, in seconds, part by part: the yardstick in which predicted_seconds decides
// and shadow policies are compared. From figures of that replica alone. Thread safety: pure functions.
#pragma once

#include "policies/candidate.h"
#include "policies/policy.h"

namespace warmpath {

struct PredictedSecondsOptions {
  double price = 2;             // L: what each second of own prefill costs the others
  double decode_weight = 0.05;  // of a second of decoding beside a second of waiting for the first token
  double tie_fraction = 0.05;   // costs this near to the lowest are a tie
  double tie_s = 0.002;
  double patience = 1;   // of long prompts, while every replica is busy (predicted_costs.h)
  double replicate = 0;  // of a hot prefix past the base, as of a base (predicted_costs.h)

  bool operator==(const PredictedSecondsOptions&) const = default;
};

// Prefill that lies ahead of a new request, in seconds: predicted, where it could be (prefill_book.h).
double queued_prefill_seconds(const Candidate& candidate, double context_tokens = 0);
// The same for this request, and the wait for a slot when all are taken.
double queue_seconds(const RequestView& request, const Candidate& candidate);
// Its own prompt, if `cached` tokens of it are held.
double prefill_seconds(const RequestView& request, const Candidate& candidate, int64_t cached);
// Bringing back what lies on host and disk.
double fetch_seconds(const Candidate& candidate);
// Its answer beside the running sequences, and what it slows them down.
double decode_seconds(const RequestView& request, const Candidate& candidate);

// All of it but the credits, which depend on the rest of the fleet; the total as the options weigh the parts.
CandidateCost seconds_cost(const RequestView& request, const Candidate& candidate,
                           const PredictedSecondsOptions& options);

}  // namespace warmpath
