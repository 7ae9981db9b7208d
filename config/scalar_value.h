// ScalarValue<M>: how one C++ type is read from a YAML scalar and written back as text. Specialised for bool, integers,
// double and std::string; vectors, optionals and maps of those are built on top in config/schema.h.
// Thread safety: pure functions.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <string>

#include "config/schema_node.h"

namespace warmpath {

// The untemplated readers. Each reports its own error and returns false when the node is not such a value.
bool read_bool(const YamlNode& node, ParseContext& context, bool& value);
bool read_number(const YamlNode& node, const FieldOptions& options, ParseContext& context, double& value);
bool read_text(const YamlNode& node, const FieldOptions& options, ParseContext& context, std::string& value);
// [lowest, highest] is what the C++ type holds; options.min and .max narrow it.
bool read_integer(const YamlNode& node, const FieldOptions& options, int64_t lowest, uint64_t highest,
                  ParseContext& context, int64_t& negative, uint64_t& positive);

std::string print_number(double value);
// 67108864 → "64MiB" when the unit is bytes and the value is a whole number of KiB or more; else plain digits.
std::string print_integer(int64_t negative, uint64_t positive, const std::string& unit);
std::string integer_type_name(const FieldOptions& options);
std::string number_type_name(const FieldOptions& options);
std::string text_type_name(const FieldOptions& options);

template <typename M>
struct ScalarValue;

template <typename M>
concept Scalar = requires {
  typename ScalarValue<M>::Marker;
};

template <>
struct ScalarValue<bool> {
  using Marker = void;
  static std::string type(const FieldOptions&) { return "true or false"; }
  static bool read(const YamlNode& node, const FieldOptions&, ParseContext& context, bool& value) {
    return read_bool(node, context, value);
  }
  static std::string print(bool value, const FieldOptions&) { return value ? "true" : "false"; }
};

template <std::integral M>
requires(!std::same_as<M, bool>) struct ScalarValue<M> {
  using Marker = void;
  static std::string type(const FieldOptions& options) { return integer_type_name(options); }
  static bool read(const YamlNode& node, const FieldOptions& options, ParseContext& context, M& value) {
    int64_t negative = 0;
    uint64_t positive = 0;
    if (!read_integer(node, options, static_cast<int64_t>(std::numeric_limits<M>::min()),
                      static_cast<uint64_t>(std::numeric_limits<M>::max()), context, negative, positive)) {
      return false;
    }
    value = negative < 0 ? static_cast<M>(negative) : static_cast<M>(positive);
    return true;
  }
  static std::string print(M value, const FieldOptions& options) {
    if constexpr (std::signed_integral<M>) {
      if (value < 0) return print_integer(value, 0, options.unit);
    }
    return print_integer(0, static_cast<uint64_t>(value), options.unit);
  }
};

template <std::floating_point M>
struct ScalarValue<M> {
  using Marker = void;
  static std::string type(const FieldOptions& options) { return number_type_name(options); }
  static bool read(const YamlNode& node, const FieldOptions& options, ParseContext& context, M& value) {
    double number = 0;
    if (!read_number(node, options, context, number)) return false;
    value = static_cast<M>(number);
    return true;
  }
  static std::string print(M value, const FieldOptions&) { return print_number(value); }
};

template <>
struct ScalarValue<std::string> {
  using Marker = void;
  static std::string type(const FieldOptions& options) { return text_type_name(options); }
  static bool read(const YamlNode& node, const FieldOptions& options, ParseContext& context, std::string& value) {
    return read_text(node, options, context, value);
  }
  static std::string print(const std::string& value, const FieldOptions&) { return value; }
};

}  // namespace warmpath
