// pipeline: a policy put together in the configuration: filters leave replicas out, scorers add up, a picker chooses.
//
//   policy:
//     name: pipeline
//     filters:
//       - {name: label, key: pool, values: [interactive]}
//       - {name: within_load, max_queue_s: 5}
//     scorers:
//       - predicted_seconds
//       - {name: running, weight: 0.2}
//     picker: {name: softmax, temperature: 0.05}
//
// That a replica serves the model, is healthy and not draining is asked for before anything else. A filter that nobody
// passes is passed over (the decision's reason is "unfiltered"), unless it is strict: then nobody takes the request
// ("filtered"). A scorer is a cost in its own unit (seconds, requests, tokens, shares), so that weights mean something:
// beside predicted_seconds, {name: running, weight: 0.2} says that a running request is as bad as 0.2 s.
//
// With predicted_seconds as the only scorer and no filter it has that policy's costs; only ties go another way.
// Thread safety: as Policy says.
#pragma once

#include "policies/pipeline_config.h"
#include "policies/policy.h"
#include "policies/predicted_costs.h"

namespace warmpath {

class PipelinePolicy final : public Policy {
 public:
  explicit PipelinePolicy(const PipelineOptions& options);
  std::string_view name() const override { return "pipeline"; }
  Decision decide(const RequestView& request, std::span<const Candidate> candidates, Rng& rng,
                  MonotonicNs now) override;

 private:
  // False if a strict filter is passed by nobody.
  bool filter(std::span<const Candidate> candidates, Decision& decision) const;
  void score(const RequestView& request, std::span<const Candidate> candidates, Decision& decision) const;
  size_t pick(std::span<const Candidate> candidates, const Decision& decision, Rng& rng) const;

  const PipelineOptions options_;
  const bool in_seconds_;  // some scorer needs costs in seconds
  PredictedCosts seconds_;
};

}  // namespace warmpath
