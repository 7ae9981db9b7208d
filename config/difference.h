// What changed between two configurations, leaf by leaf: what a reload logs. Secrets are never shown.
// Thread safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "config/schema.h"

namespace warmpath {

struct ConfigChange {
  std::string path;    // "models[smollm].policy.price"; list items are named by their item_key
  std::string before;  // "" when the leaf is new; "***" for secrets
  std::string after;   // "" when it is gone

  bool operator==(const ConfigChange&) const = default;
};

// "path: before -> after"
std::string format_config_change(const ConfigChange& change);

std::vector<ConfigChange> config_difference(const StructSpec& spec, const void* before, const void* after);

template <typename T>
std::vector<ConfigChange> config_difference(const StructSchema<T>& schema, const T& before, const T& after) {
  return config_difference(*schema.spec(), &before, &after);
}

}  // namespace warmpath
