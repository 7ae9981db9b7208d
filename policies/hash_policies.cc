#include "policies/hash_policies.h"

#include <algorithm>
#include <unordered_map>

#include "policies/eligible.h"

namespace warmpath {

Decision PowerOfTwoPolicy::decide(const RequestView&, std::span<const Candidate> candidates, Rng& rng, MonotonicNs) {
  Decision decision = start_decision(candidates);
  if (decision.verdict == Verdict::kNobody) return decision;
  std::vector<size_t> eligible;
  for (size_t n = 0; n < candidates.size(); ++n) {
    decision.costs[n].total = candidates[n].requests();
    if (decision.costs[n].eligible) eligible.push_back(n);
  }
  std::swap(eligible[0], eligible[rng.below(eligible.size())]);
  if (eligible.size() > 1) std::swap(eligible[1], eligible[1 + rng.below(eligible.size() - 1)]);
  decision.candidate = eligible[0];
  if (eligible.size() > 1 && candidates[eligible[1]].requests() < candidates[eligible[0]].requests()) {
    decision.candidate = eligible[1];
  }
  decision.reason = "chance";
  return decision;
}

void BoundedHashPolicy::rebuild(std::span<const Candidate> candidates) {
  std::vector<ReplicaId> members;
  for (const Candidate& candidate : candidates) members.push_back(candidate.replica);
  std::sort(members.begin(), members.end());
  if (members == members_) return;
  members_ = std::move(members);
  ring_.clear();
  for (const ReplicaId replica : members_) {
    for (int node = 0; node < options_.virtual_nodes; ++node) {
      const uint32_t words[2] = {replica, static_cast<uint32_t>(node)};
      ring_.push_back({hash128(words, sizeof words).lo, replica});
    }
  }
  std::sort(ring_.begin(), ring_.end());
}

Decision BoundedHashPolicy::decide(const RequestView& request, std::span<const Candidate> candidates, Rng& rng,
                                   MonotonicNs) {
  Decision decision = start_decision(candidates);
  if (decision.verdict == Verdict::kNobody) return decision;
  std::unordered_map<ReplicaId, size_t> by_replica;
  int64_t total = 0;
  int64_t eligible = 0;
  for (size_t n = 0; n < candidates.size(); ++n) {
    decision.costs[n].total = candidates[n].requests();
    by_replica[candidates[n].replica] = n;
    if (!decision.costs[n].eligible) continue;
    ++eligible;
    total += candidates[n].requests();
  }
  // The new request counts, on both sides.
  const double bound = options_.load_factor * static_cast<double>(total + 1) / static_cast<double>(eligible);
  const Hash128 key = request.head_key.is_zero() ? request.session() : request.head_key;

  const std::lock_guard lock(mutex_);
  rebuild(candidates);
  const auto start = std::lower_bound(ring_.begin(), ring_.end(), Node{key.lo, 0}) - ring_.begin();
  for (size_t step = 0; step < ring_.size(); ++step) {
    const size_t n = by_replica.at(ring_[(static_cast<size_t>(start) + step) % ring_.size()].replica);
    if (!decision.costs[n].eligible) continue;
    if (total > 0 && candidates[n].requests() + 1 > bound) continue;
    decision.candidate = n;
    decision.reason = step == 0 ? "hash" : "bound";
    return decision;
  }
  decision.candidate = pick_lowest(decision, rng, [&](size_t n) { return candidates[n].requests(); });
  decision.reason = "load";
  return decision;
}

}  // namespace warmpath
