#include "text/schema/json_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "text/answer/json_scanner.h"
#include "text/jinja/python_text.h"
#include "text/json_value.h"
#include "text/schema/json_schema_proof.h"

namespace warmpath {

namespace {

// A refusal on its way out of the recursion; caught in prepare_json_schema().
struct Refusal {
  std::string message;
};

[[noreturn]] void refuse(std::string_view keyword, const std::string& place, std::string_view why) {
  throw Refusal{fmt::format("'{}' at {} {}", keyword, place, why)};
}

constexpr std::string_view kNotSupported = "is not supported in structured output: leave it out";

// Keywords that decide what is valid and are not kept wherever they stand.
constexpr std::string_view kRefused[] = {
    "not",          "if",           "then",        "else",        "dependentRequired",     "dependentSchemas",
    "dependencies", "contains",     "minContains", "maxContains", "unevaluatedProperties", "unevaluatedItems",
    "$dynamicRef",  "$recursiveRef"};
constexpr std::string_view kObjectWords[] = {"properties",        "required",      "additionalProperties",
                                             "patternProperties", "minProperties", "maxProperties",
                                             "propertyNames"};
constexpr std::string_view kArrayWords[] = {"items",    "prefixItems", "additionalItems",
                                            "minItems", "maxItems",    "uniqueItems"};
constexpr std::string_view kStringWords[] = {"minLength", "maxLength", "pattern"};
constexpr std::string_view kNumberWords[] = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
                                             "multipleOf"};
// Formats whose grammar the compiler has (draft 2020-12, 7.3).
constexpr std::string_view kFormats[] = {"date", "time", "date-time", "ipv4", "ipv6", "uuid"};

std::string quoted(std::string_view text) {
  std::string json = "\"";
  append_json_text(text, json);
  return json + '"';
}

std::string json_of(const Value& value) {
  jinja::JsonStyle style;
  style.item_separator = ",";
  style.key_separator = ":";
  return jinja::to_json(value, style).to_string();
}

class Preparer {
 public:
  explicit Preparer(const Value& root) : root_(root) {}

  std::string run() {
    std::string body = schema(root_, "#", kAllTypes, 0);
    // The definitions that are referred to, which may refer to more.
    std::string definitions;
    for (size_t next = 0; next < targets_.size(); ++next) {
      const std::string pointer = targets_[next];
      if (next > 0) definitions += ',';
      definitions += fmt::format("\"d{}\":{}", next, schema(find_target(pointer), pointer, kAllTypes, 0));
    }
    if (definitions.empty()) return body;
    return fmt::format("{{\"$defs\":{{{}}},{}", definitions, body == "{}" ? "\"x\":0}" : body.substr(1));
  }

 private:
  // `types`: the types that the schema's surroundings leave.
  std::string schema(const Value& value, const std::string& place, TypeSet types, int depth) {
    if (depth > kMaxSchemaDepth) {
      refuse("schema", place, fmt::format("is nested deeper than {} levels", kMaxSchemaDepth));
    }
    if (++steps_ > kMaxSchemaValues) refuse("schema", "#", "is too large once its references are followed");
    if (value.is_bool()) {
      if (!value.as_bool()) refuse("false", place, "accepts no value, so nothing can be generated");
      return of_types(Value::dict(), place, types, depth);
    }
    if (!value.is_dict()) refuse("schema", place, "must be an object or a boolean");
    for (const std::string_view word : kRefused) {
      if (value.find(word) != nullptr) refuse(word, place, kNotSupported);
    }
    if (const Value* type = value.find("type")) {
      types &= type_set(*type, place);
      if (types == 0) refuse("type", place, "leaves no type that a value could have");
    }
    if (const Value* reference = value.find("$ref")) return of_reference(value, *reference, place, types, depth);
    if (value.find("const") != nullptr || value.find("enum") != nullptr) return of_values(value, place, types);
    for (const std::string_view word : {"anyOf", "oneOf", "allOf"}) {
      if (value.find(word) != nullptr) return of_branches(value, word, place, types, depth);
    }
    return of_types(value, place, types, depth);
  }

  static TypeSet type_set(const Value& type, const std::string& place) {
    const std::optional<TypeSet> types = parse_types(type);
    if (!types) refuse("type", place, "must name JSON's types: null, boolean, object, array, number, integer, string");
    return *types;
  }

  // Nothing beside `word` may decide what is valid.
  static void check_alone(const Value& value, std::string_view word, const std::string& place) {
    for (const auto& [key, unused] : value.as_dict().entries) {
      const std::string name = key.string_or_empty();
      if (name == word || name == "type" || !decides(name)) continue;
      refuse(name, place,
             fmt::format("beside '{}' is not supported in structured output: write one or the other", word));
    }
  }
  static bool decides(std::string_view name) {
    const auto in = [&](const auto& words) {
      return std::find(std::begin(words), std::end(words), name) != std::end(words);
    };
    constexpr std::string_view kOthers[] = {"$ref", "const", "enum", "anyOf", "oneOf", "allOf"};
    return in(kObjectWords) || in(kArrayWords) || in(kStringWords) || in(kNumberWords) || in(kOthers);
  }

  std::string of_reference(const Value& value, const Value& reference, const std::string& place, TypeSet types,
                           int depth) {
    check_alone(value, "$ref", place);
    if (!reference.is_string()) refuse("$ref", place, "must be a string");
    const std::string pointer = reference.string_or_empty();
    // Its surroundings leave fewer types than the definition does: a copy of its own.
    if (types != kAllTypes) return schema(find_target(pointer, place), pointer, types, depth + 1);
    const auto known = std::find(targets_.begin(), targets_.end(), pointer);
    const auto number = known - targets_.begin();
    if (known == targets_.end()) {
      find_target(pointer, place);
      targets_.push_back(pointer);
    }
    return fmt::format("{{\"$ref\":\"#/$defs/d{}\"}}", number);
  }

  const Value& find_target(const std::string& pointer, const std::string& place = "#") {
    if (pointer != "#" && !pointer.starts_with("#/")) {
      refuse("$ref", place, "must point into the schema itself, as \"#/$defs/name\" does");
    }
    const Value* target = &root_;
    for (size_t at = 1; at < pointer.size();) {
      const size_t end = std::min(pointer.find('/', at + 1), pointer.size());
      const std::string key = unescaped(std::string_view(pointer).substr(at + 1, end - at - 1));
      at = end;
      const Value* next = target->find(key);
      if (next == nullptr && target->is_list() && !key.empty() && key.size() < 9 &&
          key.find_first_not_of("0123456789") == std::string::npos) {
        const auto& items = target->as_list().items;
        const size_t index = std::stoul(key);
        if (index < items.size()) next = &items[index];
      }
      if (next == nullptr) refuse("$ref", place, fmt::format("points to {}, which is not there", pointer));
      target = next;
    }
    return *target;
  }

  // A JSON pointer's ~0, ~1 and, in a URI, %XX.
  static std::string unescaped(std::string_view text) {
    std::string out;
    for (size_t at = 0; at < text.size(); ++at) {
      if (text[at] == '~' && at + 1 < text.size() && (text[at + 1] == '0' || text[at + 1] == '1')) {
        out += text[++at] == '0' ? '~' : '/';
      } else if (text[at] == '%' && at + 2 < text.size() && std::isxdigit(static_cast<unsigned char>(text[at + 1])) &&
                 std::isxdigit(static_cast<unsigned char>(text[at + 2]))) {
        out += static_cast<char>(std::stoi(std::string(text.substr(at + 1, 2)), nullptr, 16));
        at += 2;
      } else {
        out += text[at];
      }
    }
    return out;
  }

  std::string of_values(const Value& value, const std::string& place, TypeSet types) {
    const std::string_view word = value.find("const") != nullptr ? "const" : "enum";
    check_alone(value, word, place);
    const Value& given = *value.find(word);
    if (word == "const") {
      if (!has_type(given, types)) refuse("const", place, "is of another type than 'type' says");
      return fmt::format("{{\"const\":{}}}", json_of(given));
    }
    if (!given.is_list()) refuse("enum", place, "must be an array");
    std::string list;
    for (const Value& item : given.as_list().items) {
      if (!has_type(item, types)) continue;
      if (!list.empty()) list += ',';
      list += json_of(item);
    }
    if (list.empty()) refuse("enum", place, "has no value of the type that is asked for");
    return fmt::format("{{\"enum\":[{}]}}", list);
  }

  std::string of_branches(const Value& value, std::string_view word, const std::string& place, TypeSet types,
                          int depth) {
    check_alone(value, word, place);
    const Value& branches = *value.find(word);
    if (!branches.is_list() || branches.as_list().items.empty()) {
      refuse(word, place, "must be an array with at least one schema");
    }
    const auto& items = branches.as_list().items;
    if (word == "allOf" && items.size() > 1) {
      refuse(word, place, "of several schemas is not supported in structured output: write them as one");
    }
    if (word == "oneOf" && !told_apart(items, [this](const std::string& pointer) { return &find_target(pointer); })) {
      refuse(word, place,
             "is not supported in structured output where a value might fit two of its schemas: tell them apart by "
             "type, constants or a required constant property, or use anyOf");
    }
    std::string list;
    std::string first_refusal;
    for (size_t index = 0; index < items.size(); ++index) {
      const TypeSet left = types & (items[index].is_dict() ? types_of(items[index], place) : kAllTypes);
      if (left == 0 || (items[index].is_bool() && !items[index].as_bool())) continue;  // it accepts nothing here
      if (!list.empty()) list += ',';
      list += schema(items[index], fmt::format("{}/{}/{}", place, word, index), types, depth + 1);
    }
    if (list.empty()) refuse(word, place, "has no schema that a value could fit");
    return fmt::format("{{\"anyOf\":[{}]}}", list);
  }
  static TypeSet types_of(const Value& branch, const std::string& place) {
    const Value* type = branch.find("type");
    return type == nullptr ? kAllTypes : type_set(*type, place);
  }

  std::string of_types(const Value& value, const std::string& place, TypeSet types, int depth) {
    const auto any = [&](const auto& words) {
      return std::any_of(std::begin(words), std::end(words), [&](auto word) { return value.find(word) != nullptr; });
    };
    if (types == kAllTypes) {
      // Of what the keywords speak of; other types would be valid too.
      if (any(kObjectWords)) {
        types = kObject;
      } else if (any(kArrayWords)) {
        types = kArray;
      } else if (any(kStringWords)) {
        types = kString;
      } else if (any(kNumberWords)) {
        types = kNumber | kInteger;
      } else {
        return "{}";
      }
    }
    std::vector<std::string> each;
    if (types & kObject) each.push_back(object(value, place, depth));
    if (types & kArray) each.push_back(array(value, place, depth));
    if (types & kString) each.push_back(string(value, place));
    if (types & kNumber) {
      each.push_back(number(value, place));
    } else if (types & kInteger) {
      each.push_back(integer(value, place));
    }
    if (types & kBoolean) each.push_back("{\"type\":\"boolean\"}");
    if (types & kNull) each.push_back("{\"type\":\"null\"}");
    if (each.size() == 1) return each.front();
    return fmt::format("{{\"anyOf\":[{}]}}", fmt::join(each, ","));
  }

  // A non-negative integer; nullopt: not there.
  static std::optional<int64_t> count(const Value& value, std::string_view word, const std::string& place) {
    const Value* given = value.find(word);
    if (given == nullptr) return std::nullopt;
    double number = -1;
    if (given->kind() == Value::Kind::kInt) number = static_cast<double>(given->as_int());
    if (given->kind() == Value::Kind::kFloat) number = given->as_real();
    if (number < 0 || number != std::floor(number)) refuse(word, place, "must be an integer of at least 0");
    // An upper bound that large is no bound; a lower one could not be kept.
    if (number > static_cast<double>(kMaxRepetition)) {
      if (word.starts_with("max")) return std::nullopt;
      refuse(word, place, fmt::format("is more than {}, which is not supported in structured output", kMaxRepetition));
    }
    return static_cast<int64_t>(number);
  }
  static void add_count(std::string& out, const Value& value, std::string_view word, const std::string& place) {
    if (const auto given = count(value, word, place)) out += fmt::format(",\"{}\":{}", word, *given);
  }

  std::string object(const Value& value, const std::string& place, int depth) {
    if (const Value* names = value.find("propertyNames")) {
      // Every name is a string, which is all that some schema generators say.
      const bool says_nothing =
          (names->is_bool() && names->as_bool()) ||
          (names->is_dict() &&
           std::all_of(names->as_dict().entries.begin(), names->as_dict().entries.end(), [](const auto& entry) {
             const std::string key = entry.first.string_or_empty();
             return key == "type" ? is_text_value(entry.second, "string") : !decides(key);
           }));
      if (!says_nothing) refuse("propertyNames", place, kNotSupported);
    }
    const Value* additional = value.find("additionalProperties");
    const bool closed = additional != nullptr && additional->is_bool() && !additional->as_bool();
    const std::string others = additional == nullptr || closed
                                   ? "{}"
                                   : schema(*additional, place + "/additionalProperties", kAllTypes, depth + 1);
    std::vector<std::pair<std::string, std::string>> properties;
    std::vector<std::string> impossible;
    if (const Value* given = value.find("properties")) {
      if (!given->is_dict()) refuse("properties", place, "must be an object");
      for (const auto& [key, property] : given->as_dict().entries) {
        const std::string name = key.string_or_empty();
        if (property.is_bool() && !property.as_bool()) {
          impossible.push_back(name);
          continue;
        }
        properties.emplace_back(name,
                                schema(property, fmt::format("{}/properties/{}", place, name), kAllTypes, depth + 1));
      }
    }
    std::string required;
    if (const Value* given = value.find("required")) {
      if (!given->is_list()) refuse("required", place, "must be an array of names");
      std::vector<std::string> names;
      for (const Value& item : given->as_list().items) {
        if (!item.is_string()) refuse("required", place, "must be an array of names");
        const std::string name = item.string_or_empty();
        if (std::find(names.begin(), names.end(), name) != names.end()) continue;
        names.push_back(name);
        const bool listed =
            std::any_of(properties.begin(), properties.end(), [&](const auto& entry) { return entry.first == name; });
        if (!listed && (closed || value.find("patternProperties") != nullptr ||
                        std::find(impossible.begin(), impossible.end(), name) != impossible.end())) {
          refuse("required", place, fmt::format("names \"{}\", which no property may be called", name));
        }
        if (!listed) properties.emplace_back(name, others);
        if (!required.empty()) required += ',';
        required += quoted(name);
      }
    }
    std::string out = "{\"type\":\"object\"";
    bool open = additional == nullptr ? properties.empty() && value.find("properties") == nullptr : !closed;
    if (const Value* patterns = value.find("patternProperties")) {
      if (!patterns->is_dict()) refuse("patternProperties", place, "must be an object");
      const auto& entries = patterns->as_dict().entries;
      if (!properties.empty() || entries.size() != 1 || !impossible.empty()) {
        refuse("patternProperties", place,
               "is supported in structured output only without 'properties', and with one pattern");
      }
      const std::string pattern = entries.front().first.string_or_empty();
      out += fmt::format(",\"patternProperties\":{{{}:{}}}", quoted(pattern),
                         schema(entries.front().second, place + "/patternProperties", kAllTypes, depth + 1));
      open = false;  // a name that fits the pattern must not get another kind of value
    }
    if (!impossible.empty()) open = false;
    if (!properties.empty()) {
      out += ",\"properties\":{";
      for (size_t index = 0; index < properties.size(); ++index) {
        if (index > 0) out += ',';
        out += quoted(properties[index].first) + ':' + properties[index].second;
      }
      out += '}';
    }
    if (!required.empty()) out += ",\"required\":[" + required + ']';
    out += fmt::format(",\"additionalProperties\":{}", open ? (others == "{}" ? "true" : others) : "false");
    add_count(out, value, "minProperties", place);
    add_count(out, value, "maxProperties", place);
    grow(out);
    return out + '}';
  }

  std::string array(const Value& value, const std::string& place, int depth) {
    const std::optional<int64_t> most = count(value, "maxItems", place);
    if (const Value* unique = value.find("uniqueItems")) {
      if (!unique->is_bool()) refuse("uniqueItems", place, "must be a boolean");
      if (unique->as_bool() && !(most && *most <= 1)) refuse("uniqueItems", place, kNotSupported);
    }
    std::string out = "{\"type\":\"array\"";
    if (const Value* prefix = value.find("prefixItems")) {
      if (!prefix->is_list()) refuse("prefixItems", place, "must be an array of schemas");
      std::string list;
      for (const Value& item : prefix->as_list().items) {
        if (!list.empty()) list += ',';
        list += schema(item, place + "/prefixItems", kAllTypes, depth + 1);
      }
      if (!list.empty()) out += ",\"prefixItems\":[" + list + ']';
    }
    const Value* items = value.find("items");
    if (items != nullptr && items->is_list()) {
      refuse("items", place, "as an array is not supported in structured output: use 'prefixItems'");
    }
    if (items != nullptr && items->is_bool() && !items->as_bool()) {
      out += ",\"items\":false";
    } else {
      out += ",\"items\":" + (items == nullptr ? "{}" : schema(*items, place + "/items", kAllTypes, depth + 1));
    }
    add_count(out, value, "minItems", place);
    add_count(out, value, "maxItems", place);
    grow(out);
    return out + '}';
  }

  std::string string(const Value& value, const std::string& place) {
    const std::optional<int64_t> least = count(value, "minLength", place);
    const std::optional<int64_t> most = count(value, "maxLength", place);
    if (const Value* pattern = value.find("pattern")) {
      if (!pattern->is_string()) refuse("pattern", place, "must be a string");
      if (least || most) {
        refuse("pattern", place,
               "beside 'minLength' or 'maxLength' is not supported in structured output: say it all in the pattern");
      }
      const std::string text = pattern->string_or_empty();
      // Quotes and backslashes would have to be escaped in JSON; the rest the compiler reads as something else.
      const bool plain = std::all_of(text.begin(), text.end(), [](char byte) { return byte >= ' ' && byte <= '~'; });
      if (!plain || text.find('"') != std::string::npos || text.find("\\\\") != std::string::npos) {
        refuse(
            "pattern", place,
            "with quotes, backslashes or characters beyond ASCII is not supported in structured output: leave it out");
      }
      for (size_t at = 0; at + 1 < text.size(); ++at) {
        constexpr std::string_view kNotRegular = "123456789bBAZpPkK";
        const char next = text[at + 1];
        if ((text[at] == '(' && next == '?' && (at + 2 >= text.size() || text[at + 2] != ':')) ||
            (text[at] == '\\' && kNotRegular.find(next) != std::string_view::npos)) {
          refuse("pattern", place,
                 "with assertions, references, properties or named groups is not supported in structured output");
        }
        if (text[at] == '\\') ++at;
      }
      return "{\"type\":\"string\",\"pattern\":" + quoted(text) + '}';
    }
    if (least || most) {
      if (least && most && *least > *most)
        refuse("minLength", place, "is above 'maxLength': no string is between them");
      // The compiler's own lengths let control characters through. What needs escapes is left out, so that each
      // character counts as one.
      const std::string pattern =
          fmt::format(R"(^[^"\\\x00-\x1f]{{{},{}}}$)", least.value_or(0), most ? std::to_string(*most) : "");
      return "{\"type\":\"string\",\"pattern\":" + quoted(pattern) + '}';
    }
    const Value* format = value.find("format");
    if (format != nullptr &&
        std::find(std::begin(kFormats), std::end(kFormats), format->string_or_empty()) != std::end(kFormats)) {
      return "{\"type\":\"string\",\"format\":" + quoted(format->string_or_empty()) + '}';
    }
    return "{\"type\":\"string\"}";
  }

  // nullopt: not there.
  static std::optional<double> bound(const Value& value, std::string_view word, const std::string& place) {
    const Value* given = value.find(word);
    if (given == nullptr) return std::nullopt;
    if (given->kind() == Value::Kind::kInt) return static_cast<double>(given->as_int());
    if (given->kind() == Value::Kind::kFloat && std::isfinite(given->as_real())) return given->as_real();
    refuse(word, place, "must be a number that fits 64 bits");
  }

  std::string number(const Value& value, const std::string& place) {
    if (value.find("multipleOf") != nullptr) {
      const std::optional<double> step = bound(value, "multipleOf", place);
      if (*step == std::floor(*step)) return integer(value, place);
      refuse("multipleOf", place, "with a fraction is not supported in structured output: leave it out");
    }
    std::string out = "{\"type\":\"number\"";
    for (const std::string_view word : {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}) {
      if (const auto given = bound(value, word, place))
        out += fmt::format(",\"{}\":{}", word, jinja::float_repr(*given));
    }
    return out + '}';
  }

  std::string integer(const Value& value, const std::string& place) {
    constexpr double kMost = 9.0e18;
    std::optional<double> low = bound(value, "minimum", place), high = bound(value, "maximum", place);
    if (low) low = std::ceil(*low);
    if (high) high = std::floor(*high);
    if (const auto above = bound(value, "exclusiveMinimum", place)) {
      low = std::max(low.value_or(-kMost), std::floor(*above) + 1);
    }
    if (const auto below = bound(value, "exclusiveMaximum", place)) {
      high = std::min(high.value_or(kMost), std::ceil(*below) - 1);
    }
    if (low && *low < -kMost) low.reset();
    if (high && *high > kMost) high.reset();
    if (low && high && *low > *high) refuse("minimum", place, "is above 'maximum': no number is between them");
    if ((low && *low > kMost) || (high && *high < -kMost)) refuse("minimum", place, "does not fit 64 bits");
    std::string out = "{\"type\":\"integer\"";
    if (low) out += fmt::format(",\"minimum\":{}", static_cast<int64_t>(*low));
    if (high) out += fmt::format(",\"maximum\":{}", static_cast<int64_t>(*high));
    if (const auto step = bound(value, "multipleOf", place)) {
      // What the compiler keeps: small steps, and a range that is narrow or absent.
      constexpr double kMostStep = 1000, kMostRange = 1000;
      if (*step != std::floor(*step) || *step < 1 || *step > kMostStep || low.has_value() != high.has_value() ||
          (low && *high - *low > kMostRange)) {
        refuse("multipleOf", place,
               "is supported in structured output only for integers up to 1000, without bounds or between two that are "
               "at most 1000 apart");
      }
      out += fmt::format(",\"multipleOf\":{}", static_cast<int64_t>(*step));
    }
    return out + '}';
  }

  void grow(const std::string& out) {
    if (out.size() > kMaxSchemaBytes) refuse("schema", "#", fmt::format("has more than {} bytes", kMaxSchemaBytes));
  }

  const Value& root_;
  std::vector<std::string> targets_;  // pointers referred to; their index is their name
  size_t steps_ = 0;
};

}  // namespace

Result<std::string> prepare_json_schema(std::string_view schema) {
  if (schema.size() > kMaxSchemaBytes) {
    return invalid_argument(
        fmt::format("a JSON schema has {} bytes; at most {} are allowed", schema.size(), kMaxSchemaBytes));
  }
  const Result<Value> root = value_from_json(schema, Origin::kMessage, kMaxSchemaValues);
  if (!root.ok()) return invalid_argument("a JSON schema cannot be read: " + root.status().message());
  try {
    return Preparer(*root).run();
  } catch (const Refusal& refusal) {
    return invalid_argument(refusal.message);
  }
}

}  // namespace warmpath
