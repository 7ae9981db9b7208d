#include "text/schema/json_schema_proof.h"

#include <algorithm>

#include "text/regex.h"
#include "text/unicode.h"

namespace warmpath {

namespace {

constexpr int kMostSteps = 8;  // through references and alternatives

std::optional<TypeSet> type_named(std::string_view name) {
  if (name == "null") return kNull;
  if (name == "boolean") return kBoolean;
  if (name == "object") return kObject;
  if (name == "array") return kArray;
  if (name == "string") return kString;
  if (name == "integer") return kInteger;
  if (name == "number") return static_cast<TypeSet>(kNumber | kInteger);
  return std::nullopt;
}

// Follows references that stand alone.
const Value* resolve(const Value* schema, const FindTarget& find) {
  for (int step = 0; step < kMostSteps && schema != nullptr; ++step) {
    const Value* reference = schema->find("$ref");
    if (reference == nullptr) return schema;
    schema = find(reference->string_or_empty());
  }
  return nullptr;
}

// The schemas of which a value must fit one: alternatives flattened. False: too many to follow.
bool alternatives(const Value* schema, const FindTarget& find, int depth, std::vector<const Value*>& out) {
  constexpr size_t kMost = 64;
  schema = resolve(schema, find);
  if (schema == nullptr || depth > kMostSteps || out.size() > kMost) return false;
  const Value* branches = schema->find("anyOf");
  if (branches == nullptr) branches = schema->find("oneOf");
  if (branches == nullptr || !branches->is_list()) {
    out.push_back(schema);
    return true;
  }
  return std::all_of(branches->as_list().items.begin(), branches->as_list().items.end(),
                     [&](const Value& branch) { return alternatives(&branch, find, depth + 1, out); });
}

std::optional<std::vector<Value>> finite_values(const Value& schema) {
  if (const Value* constant = schema.find("const")) return std::vector<Value>{*constant};
  const Value* list = schema.find("enum");
  if (list == nullptr || !list->is_list()) return std::nullopt;
  return list->as_list().items;
}

TypeSet types_of(const Value& schema) {
  const Value* type = schema.find("type");
  return type == nullptr ? kAllTypes : parse_types(*type).value_or(kAllTypes);
}

bool breaks_pattern(const std::string& text, const Value& pattern) {
  const auto regex = Regex::compile(pattern.string_or_empty());
  if (!regex.ok()) return false;
  Regex::Search search(**regex, text);
  const auto match = search.next();
  return match.ok() && !match->found;
}

// Whether `schema` surely refuses `value`.
bool refuses(const Value& schema, const Value& value) {
  if (schema.is_bool()) return !schema.as_bool();
  if (!schema.is_dict()) return false;
  if (!has_type(value, types_of(schema))) return true;
  if (const auto values = finite_values(schema)) {
    return std::none_of(values->begin(), values->end(), [&](const Value& item) { return values_equal(item, value); });
  }
  if (value.is_string()) {
    const std::string text = value.string_or_empty();
    const auto length = static_cast<int64_t>(utf8_length(text));
    const Value* least = schema.find("minLength");
    const Value* most = schema.find("maxLength");
    const Value* pattern = schema.find("pattern");
    return (least != nullptr && least->is_int() && length < least->as_int()) ||
           (most != nullptr && most->is_int() && length > most->as_int()) ||
           (pattern != nullptr && pattern->is_string() && breaks_pattern(text, *pattern));
  }
  return false;
}

bool requires_property(const Value& schema, const Value& name) {
  const Value* required = schema.find("required");
  return required != nullptr && required->is_list() &&
         std::any_of(required->as_list().items.begin(), required->as_list().items.end(),
                     [&](const Value& item) { return values_equal(item, name); });
}

bool disjoint(const Value& left, const Value& right);

// Both want some property to be there, and no value of it suits both.
bool told_apart_by_property(const Value& left, const Value& right) {
  const Value* properties = left.find("properties");
  if (properties == nullptr || !properties->is_dict()) return false;
  for (const auto& [name, schema] : properties->as_dict().entries) {
    if (!requires_property(left, name) || !requires_property(right, name)) continue;
    const Value* others = right.find("properties");
    const Value* other = others == nullptr ? nullptr : others->find(name.string_or_empty());
    if (other != nullptr && schema.is_dict() && other->is_dict() && finite_values(schema) && disjoint(schema, *other)) {
      return true;
    }
  }
  return false;
}

bool disjoint(const Value& left, const Value& right) {
  if (!left.is_dict() || !right.is_dict()) return false;
  for (const auto& [one, other] : {std::pair(&left, &right), std::pair(&right, &left)}) {
    if (const auto values = finite_values(*one)) {
      if (std::all_of(values->begin(), values->end(),
                      [&](const Value& value) { return refuses(*one, value) || refuses(*other, value); })) {
        return true;
      }
    }
  }
  const TypeSet common = types_of(left) & types_of(right);
  if (common == 0) return true;
  return common == kObject && told_apart_by_property(left, right);
}

}  // namespace

std::optional<TypeSet> parse_types(const Value& type) {
  if (type.is_string()) return type_named(type.string_or_empty());
  if (!type.is_list()) return std::nullopt;
  TypeSet types = 0;
  for (const Value& name : type.as_list().items) {
    const auto one = name.is_string() ? type_named(name.string_or_empty()) : std::nullopt;
    if (!one) return std::nullopt;
    types |= *one;
  }
  return types;
}

bool has_type(const Value& value, TypeSet types) {
  switch (value.kind()) {
    case Value::Kind::kNone:
      return (types & kNull) != 0;
    case Value::Kind::kBool:
      return (types & kBoolean) != 0;
    case Value::Kind::kInt:
    case Value::Kind::kBigInt:
      return (types & (kInteger | kNumber)) != 0;
    case Value::Kind::kFloat: {
      const double number = value.as_real();
      return (types & kNumber) != 0 ||
             ((types & kInteger) != 0 &&
              number == static_cast<double>(static_cast<int64_t>(std::clamp(number, -9e18, 9e18))));
    }
    case Value::Kind::kString:
      return (types & kString) != 0;
    case Value::Kind::kList:
      return (types & kArray) != 0;
    case Value::Kind::kDict:
      return (types & kObject) != 0;
    default:
      return false;
  }
}

bool is_text_value(const Value& value, std::string_view text) {
  return value.is_string() && value.string_or_empty() == text;
}

bool told_apart(const std::vector<Value>& schemas, const FindTarget& find) {
  std::vector<std::vector<const Value*>> branches(schemas.size());
  for (size_t index = 0; index < schemas.size(); ++index) {
    if (!alternatives(&schemas[index], find, 0, branches[index])) return false;
  }
  constexpr size_t kMostPairs = 4096;
  size_t pairs = 0;
  for (size_t one = 0; one < branches.size(); ++one) {
    for (size_t other = one + 1; other < branches.size(); ++other) {
      for (const Value* left : branches[one]) {
        for (const Value* right : branches[other]) {
          if (++pairs > kMostPairs || !disjoint(*left, *right)) return false;
        }
      }
    }
  }
  return true;
}

}  // namespace warmpath
