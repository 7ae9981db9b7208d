// LogitRow: the passes over one row of logits that sampling is made of, as fast as the memory allows.
// NaN counts as minus infinity everywhere. Results depend on the values alone. Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/token.h"

namespace warmpath {

struct LogitPeak {
  TokenId token = -1;  // the lowest id among equals; -1 when no logit is above minus infinity
  float logit = 0;
};
LogitPeak logit_peak(std::span<const float> logits);

// out[i] = exp((logits[i] - peak) * scale), each within 2e-7 of it relatively; 0 for NaN and below exp's float range.
// Returns the sum in double, in a fixed order. `out` may be null when only the sum is wanted.
// REQUIRES peak to be finite and >= every logit, scale > 0.
double exp_logits(std::span<const float> logits, float peak, float scale, float* out);

// The `count` likeliest tokens with their logits: higher logits first, lower ids first among equals. Fewer when fewer
// are above minus infinity.
void top_logits(std::span<const float> logits, int32_t count, std::vector<std::pair<TokenId, float>>& out);

}  // namespace warmpath
