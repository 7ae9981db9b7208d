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
    : name_(config.name), index_(std::move(index)), placement_s_(placement_s), clock_(clock) {
  use_policies(config);
  admission_ = std::make_shared<AdmissionDesk>(config.admission, clock_);
  config_ = std::move(config);
}

// What stays the same keeps what it remembers.
void ServedModel::use_policies(const ModelConfig& config) {
  if (!policy_ || config.policy != config_.policy || config.policy_rules != config_.policy_rules) {
    policy_ = make_policy(config.policy, config.policy_rules);
  }
  std::vector<Shadow> shadows;
  for (const PolicyConfig& shadow : config.shadow_policies) {
    std::shared_ptr<Policy> policy;
    for (const Shadow& known : shadows_ ? *shadows_ : std::vector<Shadow>()) {
      if (known.config == shadow) policy = known.policy;
    }
    shadows.push_back({shadow, policy ? std::move(policy) : std::shared_ptr<Policy>(make_policy(shadow))});
  }
  shadows_ = std::make_shared<const std::vector<Shadow>>(std::move(shadows));
}

std::shared_ptr<AdmissionDesk> ServedModel::admission() const {
  const std::lock_guard lock(mutex_);
  return admission_;
}

std::vector<AdmissionCapacity> ServedModel::survey(AdmissionTurn& turn) const {
  thread_local IndexMatches matches;
  index_->query(turn.chain, clock_.now_ns(), matches);
  for (const IndexMatch& match : matches.matches) {
    turn.cached_tokens = std::max(turn.cached_tokens, int64_t{match.held_blocks()} * turn.block_tokens);
  }
  std::vector<AdmissionCapacity> capacities;
  for (const auto& replica : replicas()) {
    Candidate candidate;
    replica->fill(candidate);
    if (candidate.healthy && !candidate.draining) {
      capacities.push_back({candidate.replica, candidate.capacity_tokens});
    }
  }
  return capacities;
}

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

bool ServedModel::constrains() const {
  const ReplicaList all = replicas();
  return std::any_of(all.begin(), all.end(),
                     [](const auto& replica) { return replica->description().structured_output; });
}

std::shared_ptr<const ModelIdentity> ServedModel::identity() const {
  const std::lock_guard lock(mutex_);
  return identity_;
}

Route ServedModel::route(const RouteQuery& query) {
  const MonotonicNs begun = clock_.now_ns();
  Route route;
  std::shared_ptr<Policy> policy;
  std::shared_ptr<const std::vector<Shadow>> shadows;
  std::shared_ptr<AdmissionDesk> admission;
  {
    const std::lock_guard lock(mutex_);
    route.replicas = replicas_;
    policy = policy_;
    shadows = shadows_;
    route.policy = config_.policy.shown_name();
    if (!query.admitted.is_zero()) admission = admission_;
  }
  thread_local IndexMatches matches;
  index_->query(query.chain, begun, matches);
  route.candidates.resize(route.replicas.size());
  std::optional<int64_t> everywhere;
  for (size_t n = 0; n < route.replicas.size(); ++n) {
    Candidate& candidate = route.candidates[n];
    route.replicas[n]->fill(candidate);
    if (contains(query.avoid, route.replicas[n])) candidate.healthy = false;
    // A failover takes what there is.
    if (admission && query.avoid.empty() && !admission->has_room(query.admitted, candidate.replica)) {
      candidate.healthy = false;
    }
    candidate.rates = rates_.rates_of(candidate.replica, begun);
    set_cached_tokens(candidate, matches.find(candidate.replica), query.view.prompt_tokens);
    route.best_tokens = std::max(route.best_tokens, candidate.cached_tokens());
    if (candidate.healthy && !candidate.draining) {
      everywhere = std::min(everywhere.value_or(candidate.cached_tokens()), candidate.cached_tokens());
    }
  }
  route.base_tokens = everywhere.value_or(0);
  route.decision = policy->decide(query.view, route.candidates, thread_rng(), begun);
  if (!route.decision.policy.empty()) route.policy = route.decision.policy;
  if (!shadows->empty() && query.avoid.empty()) route.shadows = ask_shadows(*shadows, query.view, route, begun);
  if (route.decision.verdict == Verdict::kRoute) {
    const Candidate& chosen = route.candidates[route.decision.candidate];
    route.replica = route.replicas[route.decision.candidate];
    route.predicted_tokens = chosen.cached_tokens();
    if (admission) admission->routed(query.admitted, chosen.replica);
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

std::vector<ShadowChoice> ServedModel::ask_shadows(const std::vector<Shadow>& shadows, const RequestView& view,
                                                   const Route& route, MonotonicNs now) {
  std::vector<ShadowChoice> choices;
  for (const Shadow& shadow : shadows) {
    ShadowChoice& choice = choices.emplace_back();
    choice.policy = shadow.config.shown_name();
    const Decision decision = shadow.policy->decide(view, route.candidates, thread_rng(), now);
    if (decision.verdict != Verdict::kRoute) continue;
    choice.candidate = decision.candidate;
    if (route.decision.verdict != Verdict::kRoute || decision.candidate == route.decision.candidate) continue;
    const PredictedSecondsOptions yardstick;
    choice.regret_s = seconds_cost(view, route.candidates[route.decision.candidate], yardstick).total -
                      seconds_cost(view, route.candidates[decision.candidate], yardstick).total;
  }
  return choices;
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
  use_policies(config);
  // Turns that wait at the old desk, or came through it, stay with it.
  if (config.admission != config_.admission) admission_ = std::make_shared<AdmissionDesk>(config.admission, clock_);
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
  std::shared_ptr<const std::vector<Shadow>> shadows;
  {
    const std::lock_guard lock(mutex_);
    policy = policy_;
    shadows = shadows_;
  }
  policy->forget(replica);
  for (const Shadow& shadow : *shadows) shadow.policy->forget(replica);
  rates_.forget(replica);
}

}  // namespace warmpath
