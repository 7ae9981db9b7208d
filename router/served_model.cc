#include "router/served_model.h"

#include <algorithm>
#include <optional>
#include <random>

namespace warmpath {

namespace {

Rng& thread_rng() {
  thread_local Rng rng([] {
    std::random_device device;
    return (static_cast<uint64_t>(device()) << 32) | device();
  }());
  return rng;
}

bool contains(std::span<const std::shared_ptr<Replica>> list, const std::shared_ptr<Replica>& replica) {
  return std::find(list.begin(), list.end(), replica) != list.end();
}

}  // namespace

ServedModel::ServedModel(ModelConfig config, std::shared_ptr<SharedIndex> index, double placement_s, const Clock& clock)
    : name_(config.name),
      index_(std::move(index)),
      placement_s_(placement_s),
      clock_(clock),
      config_(std::move(config)),
      policy_(make_policy(config_.policy)) {}

ModelConfig ServedModel::config() const {
  const std::lock_guard lock(mutex_);
  return config_;
}

ReplicaList ServedModel::replicas() const {
  const std::lock_guard lock(mutex_);
  return replicas_;
}

bool ServedModel::usable() const {
  const ReplicaList all = replicas();
  return std::any_of(all.begin(), all.end(), [](const auto& replica) { return replica->usable(); });
}

std::shared_ptr<const ModelIdentity> ServedModel::identity() const {
  const std::lock_guard lock(mutex_);
  return identity_;
}

Route ServedModel::route(const RouteQuery& query) {
  const MonotonicNs begun = clock_.now_ns();
  Route route;
  std::shared_ptr<Policy> policy;
  {
    const std::lock_guard lock(mutex_);
    route.replicas = replicas_;
    policy = policy_;
  }
  thread_local IndexMatches matches;
  index_->query(query.chain, begun, matches);
  route.policy = policy->name();
  route.candidates.resize(route.replicas.size());
  std::optional<int64_t> everywhere;
  for (size_t n = 0; n < route.replicas.size(); ++n) {
    Candidate& candidate = route.candidates[n];
    route.replicas[n]->fill(candidate);
    if (contains(query.avoid, route.replicas[n])) candidate.healthy = false;
    candidate.rates = rates_.rates_of(candidate.replica, begun);
    set_cached_tokens(candidate, matches.find(candidate.replica), query.view.prompt_tokens);
    route.best_tokens = std::max(route.best_tokens, candidate.cached_tokens());
    if (candidate.healthy && !candidate.draining) {
      everywhere = std::min(everywhere.value_or(candidate.cached_tokens()), candidate.cached_tokens());
    }
  }
  route.base_tokens = everywhere.value_or(0);
  route.decision = policy->decide(query.view, route.candidates, thread_rng(), begun);
  if (route.decision.verdict == Verdict::kRoute) {
    const Candidate& chosen = route.candidates[route.decision.candidate];
    route.replica = route.replicas[route.decision.candidate];
    route.predicted_tokens = chosen.cached_tokens();
    // Placed at once, so that siblings of a burst are steered by it too.
    if (placement_s_ > 0) {
      const IndexMatch* match = matches.find(chosen.replica);
      const uint32_t held = match == nullptr || match->placed_blocks > 0 ? 0 : match->held_blocks();
      index_->place(chosen.replica, query.chain, begun, placement_s_, held);
    }
  }
  route.decide_s = static_cast<double>(clock_.now_ns() - begun) * 1e-9;
  return route;
}

void ServedModel::learn(ReplicaId replica, const RequestTimings& timings, int64_t cached_tokens,
                        int64_t completion_tokens) {
  rates_.observe(replica, timings, cached_tokens, clock_.now_ns());
  // A moving mean over about 100 requests; a lost update between two threads does no harm.
  const double mean = mean_output_tokens();
  mean_output_tokens_.store(mean + (static_cast<double>(completion_tokens) - mean) * 0.01, std::memory_order_relaxed);
}

void ServedModel::set_config(const ModelConfig& config) {
  const std::lock_guard lock(mutex_);
  // A reload that leaves the policy alone must not make it forget its sessions.
  if (config.policy != config_.policy) policy_ = make_policy(config.policy);
  config_ = config;
}

void ServedModel::set_replicas(ReplicaList replicas) {
  const std::lock_guard lock(mutex_);
  replicas_ = std::move(replicas);
}

void ServedModel::set_identity(std::shared_ptr<const ModelIdentity> identity) {
  const std::lock_guard lock(mutex_);
  identity_ = std::move(identity);
}

void ServedModel::forget(ReplicaId replica) {
  std::shared_ptr<Policy> policy;
  {
    const std::lock_guard lock(mutex_);
    policy = policy_;
  }
  policy->forget(replica);
  rates_.forget(replica);
}

}  // namespace warmpath
