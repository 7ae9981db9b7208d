#include "config/difference.h"

#include <unordered_map>
#include <utility>

namespace warmpath {

namespace {

constexpr const char* kMask = "***";

std::string shown(const ConfigLeaf& leaf) { return leaf.secret && !leaf.value.empty() ? kMask : leaf.value; }

}  // namespace

std::string format_config_change(const ConfigChange& change) {
  const auto or_unset = [](const std::string& value) { return value.empty() ? std::string("(unset)") : value; };
  return change.path + ": " + or_unset(change.before) + " -> " + or_unset(change.after);
}

std::vector<ConfigChange> config_difference(const StructSpec& spec, const void* before, const void* after) {
  ConfigLeaves old_leaves, new_leaves;
  flatten_struct(spec, before, "", old_leaves);
  flatten_struct(spec, after, "", new_leaves);
  std::unordered_map<std::string, const ConfigLeaf*> still_old;
  for (const ConfigLeaf& leaf : old_leaves) still_old.emplace(leaf.path, &leaf);

  std::vector<ConfigChange> changes;
  for (const ConfigLeaf& leaf : new_leaves) {
    const auto found = still_old.find(leaf.path);
    if (found == still_old.end()) {
      changes.push_back({leaf.path, "", shown(leaf)});
      continue;
    }
    if (found->second->value != leaf.value) changes.push_back({leaf.path, shown(*found->second), shown(leaf)});
    still_old.erase(found);
  }
  for (const ConfigLeaf& leaf : old_leaves) {
    if (still_old.contains(leaf.path)) changes.push_back({leaf.path, shown(leaf), ""});
  }
  return changes;
}

}  // namespace warmpath
