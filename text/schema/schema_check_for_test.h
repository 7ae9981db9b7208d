// A slow, obvious validator of JSON schemas (draft 2020-12, the keywords that json_schema.h keeps), for tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "text/json_value.h"
#include "text/regex.h"
#include "text/schema/json_schema_proof.h"
#include "text/unicode.h"
#include "text/value.h"

namespace warmpath {

class SchemaCheck {
 public:
  explicit SchemaCheck(const Value& root) : root_(root) {}

  // Whether `json` is JSON that the schema accepts.
  static bool accepts(std::string_view schema, std::string_view json) {
    const auto root = value_from_json(schema);
    const auto value = value_from_json(json);
    return root.ok() && value.ok() && SchemaCheck(*root).valid(*root, *value);
  }

  bool valid(const Value& schema, const Value& value) const {
    if (schema.is_bool()) return schema.as_bool();
    if (const Value* reference = schema.find("$ref")) {
      const Value* target = &root_;
      const std::string pointer = reference->string_or_empty();
      for (size_t at = 1; at < pointer.size();) {
        const size_t end = std::min(pointer.find('/', at + 1), pointer.size());
        target = target->find(pointer.substr(at + 1, end - at - 1));
        at = end;
      }
      return valid(*target, value);
    }
    if (const Value* type = schema.find("type"); type != nullptr && !has_type(value, *parse_types(*type))) return false;
    if (const Value* constant = schema.find("const"); constant != nullptr && !values_equal(*constant, value))
      return false;
    const auto fits = [&](const Value& branch) { return valid(branch, value); };
    const auto fitting = [&](std::string_view word) {
      const auto& items = schema.find(word)->as_list().items;
      return std::count_if(items.begin(), items.end(), fits);
    };
    if (const Value* list = schema.find("enum")) {
      const auto& items = list->as_list().items;
      if (std::none_of(items.begin(), items.end(), [&](const Value& item) { return values_equal(item, value); }))
        return false;
    }
    if (schema.find("anyOf") != nullptr && fitting("anyOf") == 0) return false;
    if (schema.find("oneOf") != nullptr && fitting("oneOf") != 1) return false;
    if (value.is_string()) return string(schema, value.string_or_empty());
    if (value.is_list()) return array(schema, value);
    if (value.is_dict()) return object(schema, value);
    return !value.is_number() || value.is_bool() || number(schema, value);
  }

 private:
  static double real(const Value& value) {
    if (value.kind() == Value::Kind::kBigInt) return std::stod(value.as_digits());
    return value.is_int() ? static_cast<double>(value.as_int()) : value.as_real();
  }
  static bool within(const Value& schema, std::string_view least, std::string_view most, double amount) {
    const Value* low = schema.find(least);
    const Value* high = schema.find(most);
    return (low == nullptr || amount >= real(*low)) && (high == nullptr || amount <= real(*high));
  }
  static bool matches(const std::string& pattern, const std::string& text) {
    const auto regex = Regex::compile(pattern);
    if (!regex.ok()) return false;
    Regex::Search search(**regex, text);
    const auto match = search.next();
    return match.ok() && match->found;
  }
  static bool string(const Value& schema, const std::string& text) {
    if (!within(schema, "minLength", "maxLength", static_cast<double>(utf8_length(text)))) return false;
    const Value* pattern = schema.find("pattern");
    return pattern == nullptr || matches(pattern->string_or_empty(), text);
  }
  static bool number(const Value& schema, const Value& value) {
    const double amount = real(value);
    if (!within(schema, "minimum", "maximum", amount)) return false;
    if (const Value* above = schema.find("exclusiveMinimum"); above != nullptr && amount <= real(*above)) return false;
    if (const Value* below = schema.find("exclusiveMaximum"); below != nullptr && amount >= real(*below)) return false;
    const Value* step = schema.find("multipleOf");
    return step == nullptr || std::fmod(amount, real(*step)) == 0;
  }
  bool array(const Value& schema, const Value& value) const {
    const auto& items = value.as_list().items;
    if (!within(schema, "minItems", "maxItems", static_cast<double>(items.size()))) return false;
    const Value* prefix = schema.find("prefixItems");
    const size_t first = prefix == nullptr ? 0 : prefix->as_list().items.size();
    const Value* rest = schema.find("items");
    for (size_t index = 0; index < items.size(); ++index) {
      if (index < first && !valid(prefix->as_list().items[index], items[index])) return false;
      if (index >= first && rest != nullptr && !valid(*rest, items[index])) return false;
    }
    return true;
  }
  bool object(const Value& schema, const Value& value) const {
    const auto& entries = value.as_dict().entries;
    if (!within(schema, "minProperties", "maxProperties", static_cast<double>(entries.size()))) return false;
    if (const Value* required = schema.find("required")) {
      for (const Value& name : required->as_list().items) {
        if (value.find(name.string_or_empty()) == nullptr) return false;
      }
    }
    const Value* properties = schema.find("properties");
    const Value* patterns = schema.find("patternProperties");
    const Value* others = schema.find("additionalProperties");
    for (const auto& [key, member] : entries) {
      const std::string name = key.string_or_empty();
      bool named = false;
      if (const Value* property = properties == nullptr ? nullptr : properties->find(name)) {
        named = true;
        if (!valid(*property, member)) return false;
      }
      if (patterns != nullptr) {
        for (const auto& [pattern, inner] : patterns->as_dict().entries) {
          if (!matches(pattern.string_or_empty(), name)) continue;
          named = true;
          if (!valid(inner, member)) return false;
        }
      }
      if (!named && others != nullptr && !valid(*others, member)) return false;
    }
    return true;
  }

  const Value& root_;
};

}  // namespace warmpath
