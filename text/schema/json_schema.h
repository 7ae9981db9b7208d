// JSON schemas of clients, made into what the grammar compiler honours.
//
// The result accepts only values that the schema accepts, often fewer: an object whose schema lists properties gets no
// others unless `additionalProperties` says so, a type that follows from the keywords alone is taken for granted. What
// cannot be kept is refused by keyword and place, never ignored:
//
//   kept      type, enum, const, properties, required, additionalProperties, patternProperties (alone, one pattern),
//             minProperties, maxProperties, items, prefixItems, minItems, maxItems, minLength, maxLength, pattern,
//             minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf (integers), anyOf, allOf (of one),
//             oneOf (whose branches are told apart by type, constants or a constant property), $ref inside the schema
//   ignored   what does not decide whether a value is valid: title, description, default, examples, format (known ones
//             are kept), $schema, $id, unknown keywords, ...
//   refused   not, if, then, else, dependentRequired, dependentSchemas, dependencies, contains, uniqueItems,
//             propertyNames, unevaluatedProperties, unevaluatedItems, $dynamicRef, and combinations of the above that
//             would have to be solved together, such as pattern beside maxLength or properties beside anyOf
//
// Bounds: kMaxSchemaDepth levels, kMaxSchemaValues values, kMaxSchemaBytes before and after, kMaxRepetition for lengths
// and counts. Keywords: JSON Schema draft 2020-12. Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace warmpath {

inline constexpr int kMaxSchemaDepth = 48;
inline constexpr size_t kMaxSchemaValues = 100'000;
inline constexpr size_t kMaxSchemaBytes = 1 << 20;
inline constexpr int64_t kMaxRepetition = 100'000;

// Errors (kInvalidArgument) say "'KEYWORD' at #/place ...".
Result<std::string> prepare_json_schema(std::string_view schema);

}  // namespace warmpath
