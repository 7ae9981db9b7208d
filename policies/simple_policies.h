// The policies that look at no cache: what everybody else's gateway does by default, here to compare with.
//
//   round_robin      the eligible replicas in turn, in the candidates' order
//   random           any eligible replica, each as likely
//   least_requests   the fewest requests running or queued; ties at random
//
// Known failures: all three split a session over replicas, so every turn pays for tokens that another replica holds.
// Thread safety: as Policy says.
#pragma once

#include <atomic>

#include "policies/policy.h"

namespace warmpath {

class RoundRobinPolicy final : public Policy {
 public:
  std::string_view name() const override { return "round_robin"; }
  Decision decide(const RequestView& request, std::span<const Candidate> candidates, Rng& rng,
                  MonotonicNs now) override;

 private:
  std::atomic<uint64_t> turn_{0};
};

class RandomPolicy final : public Policy {
 public:
  std::string_view name() const override { return "random"; }
  Decision decide(const RequestView& request, std::span<const Candidate> candidates, Rng& rng,
                  MonotonicNs now) override;
};

class LeastRequestsPolicy final : public Policy {
 public:
  std::string_view name() const override { return "least_requests"; }
  Decision decide(const RequestView& request, std::span<const Candidate> candidates, Rng& rng,
                  MonotonicNs now) override;
};

}  // namespace warmpath
