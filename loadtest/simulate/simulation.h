// simulate(): a trace through simulated gateways and replicas, as discrete events. The policies, the index and the rate
// model are the product's own; what replicas do is a model (simulated_replica.h). Equal options are equal outcomes.
// Thread safety: pure functions; run as many at once as there are threads.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "loadtest/measures.h"
#include "loadtest/simulate/simulated_gateway.h"
#include "loadtest/simulate/simulated_replica.h"
#include "loadtest/trace/trace.h"
#include "policies/policy_config.h"

namespace warmpath {

struct SimulationOptions {
  size_t replicas = 8;
  ReplicaProfile profile;
  std::vector<double> paces;   // per replica; 1 where there is none
  std::vector<Labels> labels;  // replica n has those of n % size; none when empty
  // A fresh policy for each gateway.
  std::function<std::unique_ptr<Policy>()> policy = [] { return make_policy({}); };
  // One cache of all replicas' blocks together: a bound, not a policy.
  bool pooled = false;

  // New sessions wait while the live ones fill the fleet's KV.
  std::optional<SessionAdmissionOptions> admission;

  // Load. rho, when above 0, sets the rate: timed traces: work without any cache / capacity; sessions: work with ideal
  // reuse / capacity, starting at random (Poisson). Else timed traces run `rate_scale` times as fast as recorded, and
  // sessions start `session_rate` a second.
  double rho = 0;
  double rate_scale = 1;
  double session_rate = 0.1;
  double jitter_s = 0;  // added to each arrival, uniform: spreads traces whose times are rounded

  size_t gateways = 1;
  LoadView load = LoadView::kBooks;
  bool session_ids = true;
  bool events = true;
  double event_delay_s = 0;
  double event_loss = 0;  // share of event messages that never arrive
  double placement_s = 30;
  double report_every_s = 0.5;  // with several gateways
  double restart_every_s = 0;   // one replica after the other loses its cache and its requests; 0: never

  Slo slo;
  uint64_t seed = 1;
};

// The rate that `rho` stands for: times as fast as recorded, or sessions a second. REQUIRES rho > 0.
double rate_for_rho(const Trace& trace, const SimulationOptions& options);

Outcome simulate(const Trace& trace, const SimulationOptions& options);

}  // namespace warmpath
