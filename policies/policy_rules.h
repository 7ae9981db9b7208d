// Policy rules: which policy decides for which requests of a model.
//
//   policy: predicted_seconds
//   policy_rules:
//     - match: {tenants: [nightly], headers: {x-priority: batch}}
//       policy: least_requests
//     - match: {min_prompt_tokens: 100000}
//       policy: {name: pipeline, filters: [{name: label, key: memory, values: [large]}]}
//
// The first rule that a request matches decides; without one, `policy` does. A match holds when all that it names does.
// Thread safety: as Policy says.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "policies/policy_config.h"

namespace warmpath {

struct PolicyMatch {
  std::vector<std::string> tenants;
  std::vector<std::string> models;             // as the client wrote it: the model's name, or an alias
  std::map<std::string, std::string> headers;  // name to value; "*": any
  std::optional<int64_t> min_prompt_tokens;
  std::optional<int64_t> max_prompt_tokens;

  bool holds(const RequestView& request) const;
  bool operator==(const PolicyMatch&) const = default;
};

struct PolicyRule {
  PolicyMatch match;
  PolicyConfig policy;

  bool operator==(const PolicyRule&) const = default;
};

StructSchema<PolicyRule> policy_rule_schema();

// `config` alone when there are no rules. REQUIRES configs that their schemas accepted.
std::unique_ptr<Policy> make_policy(const PolicyConfig& config, const std::vector<PolicyRule>& rules);

}  // namespace warmpath
