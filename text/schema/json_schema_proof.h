// What can be told of JSON schemas without solving them: the types a schema allows, and that two schemas surely have no
// value in common. Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/value.h"

namespace warmpath {

using TypeSet = uint8_t;
inline constexpr TypeSet kNull = 1, kBoolean = 2, kObject = 4, kArray = 8, kString = 16, kInteger = 32, kNumber = 64;
inline constexpr TypeSet kAllTypes = 127;

// Of the keyword `type`, whose value is a name or a list of names; a number may be an integer, so kNumber comes with
// kInteger. nullopt: it names something else.
std::optional<TypeSet> parse_types(const Value& type);
bool has_type(const Value& value, TypeSet types);
bool is_text_value(const Value& value, std::string_view text);

// Where a $ref leads; null: nowhere.
using FindTarget = std::function<const Value*(const std::string& pointer)>;

// Whether surely no value fits two of the schemas.
bool told_apart(const std::vector<Value>& schemas, const FindTarget& find);

}  // namespace warmpath
