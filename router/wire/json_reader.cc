#include "router/wire/json_reader.h"

#include <fmt/format.h>

#include <memory>

namespace warmpath {

namespace {

// A parser keeps about six bytes per byte of the largest body it has seen. Beyond this size a body gets a parser of its
// own, so that one huge request does not leave every I/O thread fat.
constexpr size_t kKeptParserBytes = size_t{4} << 20;

std::string_view trim_right(std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n' || text.back() == '\r' || text.back() == '\t')) {
    text.remove_suffix(1);
  }
  return text;
}

bool walk_body(simdjson::ondemand::parser& parser, std::string_view body, WireError& error,
               const std::function<bool(const JsonField&)>& each) {
  JsonFailure failure;
  simdjson::ondemand::document document;
  bool iterating = false;  // only then does the document have a place
  const auto not_json = [&](simdjson::error_code code) {
    std::string place;
    const char* location = nullptr;
    if (iterating && code != simdjson::UTF8_ERROR && code != simdjson::EMPTY &&
        document.current_location().get(location) == simdjson::SUCCESS && location >= body.data() &&
        location <= body.data() + body.size()) {
      place = fmt::format(" near byte {}", location - body.data());
    }
    error =
        bad_request("", fmt::format("The request body is not valid JSON{}: {}", place, simdjson::error_message(code)));
    error.code = "invalid_json";
    return false;
  };
  const simdjson::padded_string_view padded(body.data(), body.size(), body.size() + simdjson::SIMDJSON_PADDING);
  if (const auto code = parser.iterate(padded).get(document)) return not_json(code);
  iterating = true;
  JsonType type{};
  if (const auto code = document.type().get(type)) return not_json(code);
  if (type != JsonType::object) {
    error = bad_request("", "The request body must be a JSON object");
    return false;
  }
  simdjson::ondemand::object object;
  if (const auto code = document.get_object().get(object)) return not_json(code);
  for (auto member : object) {
    simdjson::ondemand::field field;
    if (const auto code = std::move(member).get(field)) return not_json(code);
    std::string_view key;
    if (const auto code = field.unescaped_key().get(key)) return not_json(code);
    JsonValue value = field.value();
    JsonType value_type{};
    if (const auto code = value.type().get(value_type)) return not_json(code);
    const JsonField read{value, key, failure};
    if (value_type == JsonType::null) {
      bool is_null = false;
      if (const auto code = value.is_null().get(is_null)) return not_json(code);
      if (!is_null) return not_json(simdjson::N_ATOM_ERROR);
      continue;
    }
    if (!each(read)) {
      if (failure.syntax != simdjson::SUCCESS) return not_json(failure.syntax);
      error = std::move(failure.error);
      return false;
    }
  }
  const char* location = nullptr;
  if (document.current_location().get(location) == simdjson::SUCCESS) return not_json(simdjson::TRAILING_CONTENT);
  return true;
}

}  // namespace

bool JsonField::refuse(std::string_view what) const {
  return refuse(bad_request(name, fmt::format("'{}' {}", name, what)));
}

bool JsonField::refuse(WireError error) const {
  failure.error = std::move(error);
  return false;
}

bool JsonField::malformed(simdjson::error_code code) const {
  failure.syntax = code;
  return false;
}

bool JsonField::type(JsonType& out) const {
  if (const auto code = value.type().get(out)) return malformed(code);
  return true;
}

bool JsonField::boolean(bool& out) const {
  JsonType found{};
  if (!type(found)) return false;
  if (found != JsonType::boolean) return refuse("must be true or false");
  if (const auto code = value.get_bool().get(out)) return malformed(code);
  return true;
}

bool JsonField::integer(int64_t low, int64_t high, int64_t& out) const {
  JsonType found{};
  if (!type(found)) return false;
  if (found != JsonType::number) return refuse("must be an integer");
  if (value.get_int64().get(out)) {
    // Some clients write whole numbers as 256.0.
    double real = 0;
    if (const auto code = value.get_double().get(real)) return malformed(code);
    if (!(real >= -9e15 && real <= 9e15) || real != static_cast<double>(static_cast<int64_t>(real))) {
      return refuse(fmt::format("must be an integer between {} and {}", low, high));
    }
    out = static_cast<int64_t>(real);
  }
  if (out < low || out > high) return refuse(fmt::format("is {}; it must be between {} and {}", out, low, high));
  return true;
}

bool JsonField::number(double low, double high, double& out) const {
  JsonType found{};
  if (!type(found)) return false;
  if (found != JsonType::number) return refuse("must be a number");
  if (const auto code = value.get_double().get(out)) return malformed(code);
  if (!(out >= low && out <= high)) return refuse(fmt::format("is {}; it must be between {} and {}", out, low, high));
  return true;
}

bool JsonField::text(std::string_view& out) const {
  JsonType found{};
  if (!type(found)) return false;
  if (found != JsonType::string) return refuse("must be a string");
  if (const auto code = value.get_string().get(out)) return malformed(code);
  return true;
}

bool JsonField::text(std::string& out) const {
  std::string_view view;
  if (!text(view)) return false;
  out.assign(view);
  return true;
}

bool JsonField::raw(std::string_view& out) const {
  JsonType found{};
  if (!type(found)) return false;
  std::string_view bytes;
  simdjson::error_code code = simdjson::SUCCESS;
  if (found == JsonType::object) {
    simdjson::ondemand::object object;
    code = value.get_object().get(object);
    if (code == simdjson::SUCCESS) code = object.raw_json().get(bytes);
  } else if (found == JsonType::array) {
    simdjson::ondemand::array array;
    code = value.get_array().get(array);
    if (code == simdjson::SUCCESS) code = array.raw_json().get(bytes);
  } else {
    return refuse("must be an object or an array");
  }
  if (code) return malformed(code);
  out = trim_right(bytes);
  return true;
}

bool JsonField::objects(size_t most, std::vector<std::string_view>& out) const {
  out.clear();
  return elements([&](JsonValue& element, size_t position) {
    if (position == most) return refuse(fmt::format("has more than {} entries", most));
    JsonType found{};
    const JsonField object = item(element);
    if (!object.type(found)) return false;
    if (found != JsonType::object) return refuse(fmt::format("must hold objects; entry {} is none", position));
    return object.raw(out.emplace_back());
  });
}

bool JsonField::elements(const std::function<bool(JsonValue&, size_t)>& each) const {
  JsonType found{};
  if (!type(found)) return false;
  if (found != JsonType::array) return refuse("must be an array");
  simdjson::ondemand::array array;
  if (const auto code = value.get_array().get(array)) return malformed(code);
  size_t position = 0;
  for (auto item : array) {
    JsonValue element;
    if (const auto code = std::move(item).get(element)) return malformed(code);
    if (!each(element, position++)) return false;
  }
  return true;
}

bool JsonField::members(const std::function<bool(std::string_view, JsonValue&)>& each) const {
  JsonType found{};
  if (!type(found)) return false;
  if (found != JsonType::object) return refuse("must be an object");
  simdjson::ondemand::object object;
  if (const auto code = value.get_object().get(object)) return malformed(code);
  for (auto item : object) {
    simdjson::ondemand::field field;
    if (const auto code = std::move(item).get(field)) return malformed(code);
    std::string_view key;
    if (const auto code = field.unescaped_key().get(key)) return malformed(code);
    JsonValue member = field.value();
    if (!each(key, member)) return false;
  }
  return true;
}

bool parse_body(std::string_view body, WireError& error, const std::function<bool(const JsonField&)>& each) {
  if (body.size() > kKeptParserBytes) {
    simdjson::ondemand::parser parser;
    return walk_body(parser, body, error, each);
  }
  thread_local simdjson::ondemand::parser parser;
  return walk_body(parser, body, error, each);
}

}  // namespace warmpath
