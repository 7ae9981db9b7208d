#include "config/schema_value.h"

#include <unordered_map>

namespace warmpath {

namespace {

bool check_count(const YamlNode& node, const FieldOptions& options, ParseContext& context) {
  const size_t count = node.values.size();
  if (count < options.min_items) {
    context.error(node.mark, "needs at least " + std::to_string(options.min_items) +
                                 (options.min_items == 1 ? " item" : " items"));
    return false;
  }
  if (count > options.max_items) {
    context.error(node.mark, "has " + std::to_string(count) + " items; at most " + std::to_string(options.max_items) +
                                 " are allowed");
    return false;
  }
  return true;
}

}  // namespace

bool check_list(const YamlNode& node, const FieldOptions& options, ParseContext& context) {
  if (!node.is_sequence()) {
    const std::string hint = node.is_scalar() ? "; write [" + node.text.substr(0, 40) + "]" : "";
    context.error(node.mark, "must be a list, not " + describe_yaml(node) + hint);
    return false;
  }
  return check_count(node, options, context);
}

bool check_map(const YamlNode& node, const FieldOptions& options, ParseContext& context) {
  if (!node.is_map()) {
    context.error(node.mark, "must be a mapping, not " + describe_yaml(node));
    return false;
  }
  return check_count(node, options, context);
}

void check_item_keys(const YamlNode& node, const StructSpec& spec, const FieldOptions& options, ParseContext& context) {
  if (options.item_key.empty()) return;
  std::unordered_map<std::string, YamlMark> seen;
  for (size_t n = 0; n < node.values.size(); ++n) {
    const YamlNode& item = node.values[n];
    const YamlNode* key = item.is_scalar() && spec.shorthand == options.item_key ? &item : item.find(options.item_key);
    if (key == nullptr || !key->is_scalar()) continue;
    const auto [first, is_new] = seen.emplace(key->text, key->mark);
    if (is_new) continue;
    const ParseContext::Scope scope(context, n);
    context.error_at(
        options.item_key, key->mark,
        describe_yaml(*key) + " is already taken by the item on line " + std::to_string(first->second.line));
  }
}

std::string item_label(const StructSpec& spec, const void* item, const FieldOptions& options, size_t position) {
  if (const FieldSpec* field = spec.find(options.item_key)) {
    ConfigLeaves leaves;
    field->flatten(item, "", leaves);
    if (leaves.size() == 1 && !leaves[0].secret) return "[" + leaves[0].value + "]";
  }
  return "[" + std::to_string(position) + "]";
}

void check_exactly_one(const std::vector<std::string>& keys, CheckContext& context) {
  std::string all;
  const std::string* first = nullptr;
  for (const std::string& key : keys) {
    all += (all.empty() ? "" : " or ") + key;
    if (!context.has(key)) continue;
    if (first != nullptr) {
      context.error(key, "cannot stand beside " + *first + "; keep one of them");
      return;
    }
    first = &key;
  }
  if (first == nullptr) context.error("", "needs " + all);
}

}  // namespace warmpath
