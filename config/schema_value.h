// FieldValue<M>: a field's value when it is a scalar, or an optional, a list or a map of scalars; and the checks that
// lists and maps share. Used by config/schema.h only. Thread safety: pure functions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/scalar_value.h"

namespace warmpath {

// The node is a list (a map) with a permitted number of items; reports and returns false otherwise. Null is refused.
bool check_list(const YamlNode& node, const FieldOptions& options, ParseContext& context);
bool check_map(const YamlNode& node, const FieldOptions& options, ParseContext& context);
// No two items of the list of structs `node` share the value of options.item_key (defaults to nothing to check).
void check_item_keys(const YamlNode& node, const StructSpec& spec, const FieldOptions& options, ParseContext& context);
// "[NAME]" by options.item_key, else "[3]".
std::string item_label(const StructSpec& spec, const void* item, const FieldOptions& options, size_t position);
void check_exactly_one(const std::vector<std::string>& keys, CheckContext& context);

template <typename M>
struct FieldValue {
  static constexpr bool kIsField = false;
};

template <Scalar M>
struct FieldValue<M> {
  static constexpr bool kIsField = true;
  static std::string type(const FieldOptions& options) { return ScalarValue<M>::type(options); }
  static void read(const YamlNode& node, const FieldOptions& options, ParseContext& context, M& value) {
    ScalarValue<M>::read(node, options, context, value);
  }
  static std::string print(const M& value, const FieldOptions& options) {
    return ScalarValue<M>::print(value, options);
  }
};

template <Scalar M>
struct FieldValue<std::optional<M>> {
  static constexpr bool kIsField = true;
  static std::string type(const FieldOptions& options) { return ScalarValue<M>::type(options); }
  static void read(const YamlNode& node, const FieldOptions& options, ParseContext& context, std::optional<M>& value) {
    M read_value{};
    if (ScalarValue<M>::read(node, options, context, read_value)) value = std::move(read_value);
  }
  static std::string print(const std::optional<M>& value, const FieldOptions& options) {
    return value ? ScalarValue<M>::print(*value, options) : "";
  }
};

template <Scalar M>
struct FieldValue<std::vector<M>> {
  static constexpr bool kIsField = true;
  static std::string type(const FieldOptions& options) { return "list of " + ScalarValue<M>::type(options); }
  static void read(const YamlNode& node, const FieldOptions& options, ParseContext& context, std::vector<M>& value) {
    value.clear();
    if (!check_list(node, options, context)) return;
    for (size_t n = 0; n < node.values.size() && !context.full(); ++n) {
      const ParseContext::Scope scope(context, n);
      M item{};
      if (ScalarValue<M>::read(node.values[n], options, context, item)) value.push_back(std::move(item));
    }
  }
  static std::string print(const std::vector<M>& value, const FieldOptions& options) {
    std::string text = "[";
    for (size_t n = 0; n < value.size(); ++n) text += (n > 0 ? ", " : "") + ScalarValue<M>::print(value[n], options);
    return text + "]";
  }
};

template <Scalar M>
struct FieldValue<std::map<std::string, M>> {
  using Map = std::map<std::string, M>;
  static constexpr bool kIsField = true;
  static std::string type(const FieldOptions& options) {
    return "mapping of names to " + ScalarValue<M>::type(options);
  }
  static void read(const YamlNode& node, const FieldOptions& options, ParseContext& context, Map& value) {
    value.clear();
    if (!check_map(node, options, context)) return;
    for (size_t n = 0; n < node.keys.size() && !context.full(); ++n) {
      const ParseContext::Scope scope(context, node.keys[n].text);
      M item{};
      if (ScalarValue<M>::read(node.values[n], options, context, item)) value[node.keys[n].text] = std::move(item);
    }
  }
  static std::string print(const Map& value, const FieldOptions& options) {
    std::string text = "{";
    for (const auto& [name, item] : value) {
      text += (text.size() > 1 ? ", " : "") + name + ": " + ScalarValue<M>::print(item, options);
    }
    return text + "}";
  }
};

template <typename M>
inline constexpr bool kIsOptional = false;
template <typename S>
inline constexpr bool kIsOptional<std::optional<S>> = true;

template <typename M>
struct StructOfHelper {
  using Type = M;
};
template <typename S>
struct StructOfHelper<std::optional<S>> {
  using Type = S;
};
template <typename M>
using StructOf = typename StructOfHelper<M>::Type;

}  // namespace warmpath
