// Two policies that know no cache, but are cheap and better than turns:
//
//   power_of_two             two different replicas by chance, of those the one with fewer requests (Mitzenmacher 2001)
//   consistent_hash_bounded  KubeAI's PrefixHash: the prompt's head (its first 256 tokens; sessions by their key when
//   there is
//                            no head) on a hash ring with 256 virtual nodes per replica; walk on past replicas whose
//                            load would exceed 1.25 times the mean (Mirrokni, Thorup & Zadimoghaddam 2018)
//
// Known failures: the first splits sessions like chance does; the second sends all sessions that share a head to one
// replica until the bound pushes them on, and then at random as far as their caches go (prime-rl #3255: hit rate 98 %
// -> 5 %). Thread safety: as Policy says; the ring is rebuilt under a mutex when the fleet changes.
#pragma once

#include <map>
#include <mutex>
#include <vector>

#include "policies/policy.h"
#include "policies/policy_config.h"

namespace warmpath {

class PowerOfTwoPolicy final : public Policy {
 public:
  std::string_view name() const override { return "power_of_two"; }
  Decision decide(const RequestView& request, std::span<const Candidate> candidates, Rng& rng,
                  MonotonicNs now) override;
};

class BoundedHashPolicy final : public Policy {
 public:
  explicit BoundedHashPolicy(const BoundedHashOptions& options) : options_(options) {}
  std::string_view name() const override { return "consistent_hash_bounded"; }
  Decision decide(const RequestView& request, std::span<const Candidate> candidates, Rng& rng,
                  MonotonicNs now) override;

 private:
  struct Node {
    uint64_t place;
    ReplicaId replica;
    bool operator<(const Node& other) const { return place < other.place; }
  };

  void rebuild(std::span<const Candidate> candidates);

  const BoundedHashOptions options_;
  std::mutex mutex_;
  std::vector<ReplicaId> members_;  // sorted
  std::vector<Node> ring_;          // sorted by place
};

}  // namespace warmpath
