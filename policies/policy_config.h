// The policy's part of the configuration, and making the policy it names.
//
//   policy: predicted_seconds
//   policy: {name: predicted_seconds, price: 2}
//
// The owner of the model's section binds it with schema.section("policy", &Model::policy, policy_schema()). Equal
// configs make equal policies, so a reload that changes nothing here can keep the policy and what it remembers. Thread
// safety: pure functions.
#pragma once

#include <memory>
#include <string>

#include "config/schema.h"
#include "policies/pipeline_config.h"
#include "policies/policy.h"

namespace warmpath {

struct SessionStickyOptions {
  int64_t max_sessions = 100'000;
  double idle_s = 3600;  // a session unheard of for so long is forgotten

  bool operator==(const SessionStickyOptions&) const = default;
};

// The defaults below are each peer's own.

struct BoundedHashOptions {
  double load_factor = 1.25;
  int virtual_nodes = 256;

  bool operator==(const BoundedHashOptions&) const = default;
};

struct ThresholdTreeOptions {
  double cache_threshold = 0.3;
  int balance_abs = 64;
  double balance_rel = 1.5;

  bool operator==(const ThresholdTreeOptions&) const = default;
};

struct LinearBlocksOptions {
  double overlap_credit = 1.0;  // of a cached block, by tier
  double host_credit = 0.75;
  double disk_credit = 0.25;

  bool operator==(const LinearBlocksOptions&) const = default;
};

struct WeightedScoresOptions {
  double prefix = 2;
  double kv_utilization = 1;
  double queue = 1;

  bool operator==(const WeightedScoresOptions&) const = default;
};

struct PolicyConfig {
  std::string name = "predicted_seconds";
  std::string label;
  PredictedSecondsOptions predicted_seconds;
  SessionStickyOptions session_sticky;
  BoundedHashOptions consistent_hash_bounded;
  ThresholdTreeOptions threshold_tree;
  LinearBlocksOptions linear_blocks;
  WeightedScoresOptions weighted_scores;
  PipelineOptions pipeline;

  // What receipts, metrics and tables call it.
  const std::string& shown_name() const { return label.empty() ? name : label; }
  bool operator==(const PolicyConfig&) const = default;
};

const StructSchema<PolicyConfig>& policy_schema();

// REQUIRES a config that policy_schema() accepted (or whose name is one of policy_names()).
std::unique_ptr<Policy> make_policy(const PolicyConfig& config);

// Every policy's name, the default first.
const std::vector<std::string>& policy_names();

}  // namespace warmpath
