// What is wrong with a configuration that no single field can tell: every problem at once, each with the path that
// leads to its place in the file. Thread safety: pure functions; the second one looks at this machine's files.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "config/schema_node.h"
#include "router/config.h"

namespace warmpath {

struct ConfigProblem {
  std::string path;  // "models[0].aliases[1]"
  std::string message;
};

// Addresses, names that collide, listening to strangers without keys.
std::vector<ConfigProblem> find_config_problems(const GatewayConfig& config);
// Whether what it points at can be there: addresses of replicas; files of keys, tokens and tokenizers.
std::vector<ConfigProblem> find_reference_problems(const GatewayConfig& config);

// Reports those that are not known already.
void report_config_problems(const std::vector<ConfigProblem>& problems, CheckContext& context);
// For configurations that come from no file: the first of them.
Status check_gateway_config(const GatewayConfig& config);

}  // namespace warmpath
