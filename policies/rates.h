// Rates: how fast one replica works, in seconds, as a policy uses them. Learnt by rate_model.h; the members' defaults
// are the documented prior for a fleet nobody has measured yet. Thread safety: plain values and pure functions.
#pragma once

#include <algorithm>
#include <cstdint>

namespace warmpath {

struct Rates {
  // Prefill of n tokens that follow c cached ones takes
  //   prefill_start_s + n * prefill_token_s + n * (c + n / 2) * prefill_context_s
  // The last term is attention: each token reads the KV of all tokens before it. Prior: 2,000 tokens/s (SMG's default
  // throughput), attention doubling the time per token at 50,000 tokens of context.
  double prefill_start_s = 0.005;
  double prefill_token_s = 1.0 / 2000;
  double prefill_context_s = 1.0 / 2000 / 50'000;

  // One decode step of b sequences takes decode_step_s + b * decode_sequence_s. Prior: the shape of SMG's mock worker.
  double decode_step_s = 0.006;
  double decode_sequence_s = 0.00035;

  // Bringing one token's KV back to the device. Prior: a twentieth and a fifth of computing it.
  double host_token_s = 1.0 / 2000 / 20;
  double disk_token_s = 1.0 / 2000 / 5;

  double prefill_s(double tokens, double context_before) const {
    if (tokens <= 0) return 0;
    return prefill_start_s + tokens * (prefill_token_s + (context_before + tokens / 2) * prefill_context_s);
  }
  double decode_step(double sequences) const { return decode_step_s + std::max(sequences, 0.0) * decode_sequence_s; }

  bool operator==(const Rates&) const = default;
};

}  // namespace warmpath
