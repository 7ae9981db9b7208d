// ServedModel: one model of the configuration: its replicas, its policy, what it has learnt, and the choice of a
// replica for a prompt (locate and decide). Thread safety: any thread. What a reload changes is swapped whole; requests
// in progress keep what they began with.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "policies/policy_rules.h"
#include "policies/rate_model.h"
#include "router/admission_desk.h"
#include "router/config.h"
#include "router/conversation_history.h"
#include "router/model_identity.h"
#include "router/replica.h"
#include "router/shared_index.h"
#include "router/waiting_room.h"

namespace warmpath {

using ReplicaList = std::vector<std::shared_ptr<Replica>>;

struct RouteQuery {
  std::span<const Hash128> chain;
  RequestView view;
  std::span<const std::shared_ptr<Replica>> avoid;  // tried already
  Hash128 admitted = {};                            // the session, if it came through admission
};

// What a shadow policy would have done.
struct ShadowChoice {
  std::string policy;
  std::optional<size_t> candidate;  // unset: nobody
  // Predicted cost of what was chosen less that of this choice, by the formula of predicted_seconds (its defaults,
  // without the base credit) whatever either policy goes by: above 0, it would have been better. 0 without a choice.
  double regret_s = 0;
};

// One decision, as the receipt tells it.
struct Route {
  std::shared_ptr<Replica> replica;  // null: nobody can take it
  ReplicaList replicas;              // the candidates', in their order
  std::vector<Candidate> candidates;
  Decision decision;
  std::string policy;
  std::vector<ShadowChoice> shadows;  // of a prompt's first attempt
  int64_t predicted_tokens = 0;       // cached prompt tokens at the chosen replica
  int64_t best_tokens = 0;            // at the replica that has most of the prompt
  int64_t base_tokens = 0;            // at every replica that could take it: no reason to prefer one
  double decide_s = 0;                // locate and decide
};

class ServedModel {
 public:
  ServedModel(ModelConfig config, std::shared_ptr<SharedIndex> index, double placement_s, const Clock& clock);

  const std::string& name() const { return name_; }
  ModelConfig config() const;
  ReplicaList replicas() const;
  bool usable() const;      // some replica could take a request now
  bool constrains() const;  // some replica, usable or not, can constrain its answers

  // Null until a replica has answered.
  std::shared_ptr<const ModelIdentity> identity() const;

  Route route(const RouteQuery& query);
  WaitingRoom& waiting_room() { return waiting_room_; }
  ConversationHistory& history() { return history_; }
  std::shared_ptr<AdmissionDesk> admission() const;
  // Fills what admission must know of the fleet: capacities, and how much of the turn's prompt is cached.
  std::vector<AdmissionCapacity> survey(AdmissionTurn& turn) const;

  // What a finished prompt taught.
  void learn(ReplicaId replica, const RequestTimings& timings, int64_t cached_tokens, int64_t completion_tokens);
  double mean_output_tokens() const { return mean_output_tokens_.load(std::memory_order_relaxed); }

  // The fleet's side.
  void set_config(const ModelConfig& config);
  void set_replicas(ReplicaList replicas);
  void set_identity(std::shared_ptr<const ModelIdentity> identity);
  void forget(ReplicaId replica);

 private:
  const std::string name_;
  const std::shared_ptr<SharedIndex> index_;
  const double placement_s_;
  const Clock& clock_;
  FleetRates rates_;
  WaitingRoom waiting_room_;
  ConversationHistory history_;
  std::atomic<double> mean_output_tokens_{200};

  mutable std::mutex mutex_;
  struct Shadow {
    PolicyConfig config;
    std::shared_ptr<Policy> policy;
  };
  void use_policies(const ModelConfig& config);  // REQUIRES mutex_, or the constructor
  static std::vector<ShadowChoice> ask_shadows(const std::vector<Shadow>& shadows, const RequestView& view,
                                               const Route& route, MonotonicNs now);

  ModelConfig config_;
  std::shared_ptr<Policy> policy_;
  std::shared_ptr<const std::vector<Shadow>> shadows_;
  std::shared_ptr<AdmissionDesk> admission_;
  ReplicaList replicas_;
  std::shared_ptr<const ModelIdentity> identity_;
};

}  // namespace warmpath
