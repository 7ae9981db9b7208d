// The peers' policies that are one formula: a number per replica, the lowest wins, ties at random. Constants are the
// peers' published defaults; Candidate's figures stand in for theirs.
//
//   linear_blocks    NVIDIA Dynamo's KV router, in blocks of 16 tokens:
//                    max(queued prefill + prompt - credit, 0) + active decode blocks,
//                    credit = 1.0 device + 0.75 host + 0.25 disk
//   load_product     LMetric: uncached tokens (queued and own) * (running + 1)
//   weighted_scores  llm-d's 2/1/1: - (2 * cached / prompt + 1 * (1 - KV in use) + 1 * queue score),
//                    queue score = (longest queue - queue) / (longest - shortest), 1 when all are equal
//
// Known failures: blocks weigh the same at every context length and on every replica, so slow replicas and long
// contexts are taken for fast ones; the product is zero between requests, so an idle fleet is chosen by chance (Infera
// #103); weighted scores add things of different kinds, and a full prefix hit outweighs any queue. Thread safety: as
// Policy says; no state.
#pragma once

#include "policies/policy.h"
#include "policies/policy_config.h"

namespace warmpath {

class LinearBlocksPolicy final : public Policy {
 public:
  explicit LinearBlocksPolicy(const LinearBlocksOptions& options) : options_(options) {}
  std::string_view name() const override { return "linear_blocks"; }
  Decision decide(const RequestView& request, std::span<const Candidate> candidates, Rng& rng,
                  MonotonicNs now) override;

 private:
  const LinearBlocksOptions options_;
};

class LoadProductPolicy final : public Policy {
 public:
  std::string_view name() const override { return "load_product"; }
  Decision decide(const RequestView& request, std::span<const Candidate> candidates, Rng& rng,
                  MonotonicNs now) override;
};

class WeightedScoresPolicy final : public Policy {
 public:
  explicit WeightedScoresPolicy(const WeightedScoresOptions& options) : options_(options) {}
  std::string_view name() const override { return "weighted_scores"; }
  Decision decide(const RequestView& request, std::span<const Candidate> candidates, Rng& rng,
                  MonotonicNs now) override;

 private:
  const WeightedScoresOptions options_;
};

}  // namespace warmpath
