// What the tests of decisions share: a fleet with round figures. For tests only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "policies/policy_config.h"

namespace warmpath {

inline constexpr MonotonicNs kSecond = 1'000'000'000;

// Round figures: 1,000 tokens/s at any context, 10 ms per step for any batch.
inline Rates plain_rates() {
  Rates rates;
  rates.prefill_start_s = 0;
  rates.prefill_token_s = 0.001;
  rates.prefill_context_s = 0;
  rates.decode_step_s = 0.01;
  rates.decode_sequence_s = 0;
  rates.host_token_s = 0.0001;
  rates.disk_token_s = 0.0005;
  return rates;
}

inline Candidate plain_candidate(ReplicaId replica) {
  Candidate candidate;
  candidate.replica = replica;
  candidate.trust = Trust::kExact;
  candidate.rates = plain_rates();
  return candidate;
}

inline std::vector<Candidate> plain_fleet(size_t size) {
  std::vector<Candidate> fleet;
  for (size_t n = 0; n < size; ++n) fleet.push_back(plain_candidate(static_cast<ReplicaId>(n)));
  return fleet;
}

inline std::unique_ptr<Policy> policy(const std::string& name) {
  PolicyConfig config;
  config.name = name;
  return make_policy(config);
}

inline RequestView prompt(int64_t tokens, int session, int64_t base_tokens = 0) {
  RequestView request;
  request.prompt_tokens = tokens;
  request.content_key = hash128("session " + std::to_string(session));
  request.base_tokens = base_tokens;
  if (base_tokens > 0) request.base_key = hash128("base");
  request.expected_output_tokens = 100;
  return request;
}

}  // namespace warmpath
