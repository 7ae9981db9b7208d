// The policy's part of the configuration, and making the policy it names.
//
//   policy: predicted_seconds
//   policy: {name: predicted_seconds, price: 2}
//
// The owner of the model's section binds it with schema.section("policy", &Model::policy, policy_schema()).
// Thread safety: pure functions.
#pragma once

#include <memory>
#include <string>

#include "config/schema.h"
#include "policies/policy.h"

namespace warmpath {

struct PredictedSecondsOptions {
  double price = 2;            // L: what each second of own prefill costs the others
  double tie_fraction = 0.05;  // costs this near to the lowest are a tie
  double tie_s = 0.002;
};

struct SessionStickyOptions {
  int64_t max_sessions = 100'000;
  double idle_s = 3600;  // a session unheard of for so long is forgotten
};

struct PolicyConfig {
  std::string name = "predicted_seconds";
  PredictedSecondsOptions predicted_seconds;
  SessionStickyOptions session_sticky;
};

StructSchema<PolicyConfig> policy_schema();

// REQUIRES a config that policy_schema() accepted (or whose name is one of policy_names()).
std::unique_ptr<Policy> make_policy(const PolicyConfig& config);

// Every policy's name, the default first.
const std::vector<std::string>& policy_names();

}  // namespace warmpath
