// threshold_tree: the cache-aware policy of SGLang's router and SMG, with SMG's command-line defaults, over the exact
// index:
//
//   imbalanced (most - fewest requests > 64 and most > 1.5 * fewest)  -> the fewest requests
//   best match / prompt > 0.3                                         -> the best match; of equals the fewest requests
//   otherwise                                                         -> the fewest requests
//
// Known failures: one hot replica turns affinity off for everybody (vllm-project/router #238, sglang #32195); a shared
// system prompt longer than the threshold ties all sessions to the replica that had it first (sglang #34513). Thread
// safety: as Policy says; no state.
#pragma once

#include "policies/policy.h"
#include "policies/policy_config.h"

namespace warmpath {

class ThresholdTreePolicy final : public Policy {
 public:
  explicit ThresholdTreePolicy(const ThresholdTreeOptions& options) : options_(options) {}
  std::string_view name() const override { return "threshold_tree"; }
  Decision decide(const RequestView& request, std::span<const Candidate> candidates, Rng& rng,
                  MonotonicNs now) override;

 private:
  const ThresholdTreeOptions options_;
};

}  // namespace warmpath
