#include "text/json_value.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <charconv>
#include <cstdlib>
#include <optional>

#include "text/unicode.h"

namespace warmpath {
namespace {

namespace ondemand = simdjson::ondemand;

// JSON's escapes undone. `raw` is the text between the quotes; simdjson has checked that quotes and UTF-8 are sound.
Status unescape(std::string_view raw, std::string& out) {
  const auto hex4 = [&raw](size_t at, uint32_t& code) {
    if (at + 4 > raw.size()) return false;
    const auto [stop, error] = std::from_chars(raw.data() + at, raw.data() + at + 4, code, 16);
    return error == std::errc() && stop == raw.data() + at + 4;
  };
  out.reserve(raw.size());
  for (size_t at = 0; at < raw.size();) {
    const size_t plain = raw.find('\\', at);
    out.append(raw.substr(at, plain - at));
    if (plain == std::string_view::npos) break;
    if (plain + 1 >= raw.size()) return invalid_argument("JSON string ends inside an escape");
    at = plain + 2;
    switch (raw[plain + 1]) {
      case '"':
      case '\\':
      case '/':
        out.push_back(raw[plain + 1]);
        break;
      case 'b':
        out.push_back('\b');
        break;
      case 'f':
        out.push_back('\f');
        break;
      case 'n':
        out.push_back('\n');
        break;
      case 'r':
        out.push_back('\r');
        break;
      case 't':
        out.push_back('\t');
        break;
      case 'u': {
        uint32_t code = 0;
        if (!hex4(at, code)) return invalid_argument("JSON string holds \\u without four hexadecimal digits");
        at += 4;
        uint32_t low = 0;
        if (code >= 0xD800 && code < 0xDC00 && raw.substr(at, 2) == "\\u" && hex4(at + 2, low) && low >= 0xDC00 &&
            low < 0xE000) {
          code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
          at += 6;
        } else if (code >= 0xD800 && code < 0xE000) {
          code = 0xFFFD;
        }
        append_utf8(code, out);
        break;
      }
      default:
        return invalid_argument(fmt::format("JSON string holds the unknown escape \\{}", raw[plain + 1]));
    }
  }
  return {};
}

// One JSON number as Python reads it: an int of any size, or a float.
Result<Value> number(std::string_view token) {
  while (!token.empty() &&
         (token.back() == ' ' || token.back() == '\n' || token.back() == '\r' || token.back() == '\t')) {
    token.remove_suffix(1);
  }
  const auto bad = [&] { return invalid_argument(fmt::format("'{}' is not a JSON number", token.substr(0, 40))); };
  size_t at = token.starts_with('-') ? 1 : 0;
  const auto digits = [&] {
    const size_t first = at;
    while (at < token.size() && token[at] >= '0' && token[at] <= '9') ++at;
    return at - first;
  };
  const size_t whole_at = at;
  const size_t whole = digits();
  if (whole == 0 || (whole > 1 && token[whole_at] == '0')) return bad();
  bool real = false;
  if (at < token.size() && token[at] == '.') {
    ++at;
    real = true;
    if (digits() == 0) return bad();
  }
  if (at < token.size() && (token[at] == 'e' || token[at] == 'E')) {
    ++at;
    real = true;
    if (at < token.size() && (token[at] == '+' || token[at] == '-')) ++at;
    if (digits() == 0) return bad();
  }
  if (at != token.size()) return bad();
  if (real) {
    double parsed = 0;
    const auto [stop, error] = std::from_chars(token.data(), token.data() + token.size(), parsed);
    // Out of range: strtod gives the infinity or zero that Python gives.
    if (error == std::errc::result_out_of_range) parsed = std::strtod(std::string(token).c_str(), nullptr);
    return Value::real(parsed);
  }
  int64_t parsed = 0;
  const auto [stop, error] = std::from_chars(token.data(), token.data() + token.size(), parsed);
  return error == std::errc() ? Value::integer(parsed) : Value::big_integer(std::string(token));
}

class Reader {
 public:
  Reader(Origin origin, size_t max_values) : origin_(origin), left_(max_values) {}

  // REQUIRES a valid `value`. Parser errors come back as a Status.
  Result<Value> read(ondemand::value value, int depth) {
    WARMPATH_RETURN_IF_ERROR(count());
    if (depth >= Value::kMaxDepth) return invalid_argument(fmt::format("JSON nested deeper than {}", Value::kMaxDepth));
    ondemand::json_type type;
    if (const auto error = value.type().get(type)) return failed(error);
    switch (type) {
      case ondemand::json_type::string: {
        ondemand::raw_json_string raw;
        if (const auto error = value.get_raw_json_string().get(raw)) return failed(error);
        return text(raw);
      }
      case ondemand::json_type::array:
        return array(value, depth);
      case ondemand::json_type::object:
        return object(value, depth);
      default:
        return scalar(value.raw_json_token());
    }
  }
  Result<Value> scalar(std::string_view token) {
    // A token reaches to the next structural character.
    const std::string_view word = token.substr(0, token.find_last_not_of(" \t\r\n") + 1);
    if (word == "null") return Value::none();
    if (word == "true" || word == "false") return Value::boolean(word == "true");
    return number(word);
  }
  Result<Value> text(ondemand::raw_json_string raw) {
    const char* first = raw.raw();
    const char* end = first;
    while (*end != '"') end += *end == '\\' ? 2 : 1;
    const std::string_view bytes(first, static_cast<size_t>(end - first));
    std::string unescaped;
    WARMPATH_RETURN_IF_ERROR(unescape(bytes, unescaped));
    return Value::string(std::move(unescaped), origin_);
  }
  static Status failed(simdjson::error_code error) {
    return invalid_argument(fmt::format("not valid JSON: {}", simdjson::error_message(error)));
  }

  template <typename Source>
  Result<Value> array(Source&& source, int depth) {
    ondemand::array items;
    if (const auto error = source.get_array().get(items)) return failed(error);
    std::vector<Value> values;
    for (auto item : items) {
      ondemand::value inner;
      if (const auto error = item.get(inner)) return failed(error);
      Result<Value> read_item = read(inner, depth + 1);
      if (!read_item.ok()) return read_item.status();
      values.push_back(*std::move(read_item));
    }
    Value list = Value::list(std::move(values));
    list.as_list().frozen = true;
    return list;
  }
  template <typename Source>
  Result<Value> object(Source&& source, int depth) {
    ondemand::object fields;
    if (const auto error = source.get_object().get(fields)) return failed(error);
    Value dict = Value::dict();
    for (auto field : fields) {
      ondemand::raw_json_string raw;
      if (const auto error = field.key().get(raw)) return failed(error);
      ondemand::value inner;
      if (const auto error = field.value().get(inner)) return failed(error);
      WARMPATH_RETURN_IF_ERROR(count());
      Result<Value> key = text(raw);
      if (!key.ok()) return key.status();
      Result<Value> item = read(inner, depth + 1);
      if (!item.ok()) return item.status();
      dict.as_dict().set(*std::move(key), *std::move(item));
    }
    dict.as_dict().frozen = true;
    return dict;
  }

 private:
  Status count() {
    if (left_ == 0) return resource_exhausted("too many JSON values");
    --left_;
    return {};
  }

  const Origin origin_;
  size_t left_;
};

}  // namespace

Result<Value> value_from_json(std::string_view json, Origin origin, size_t max_values) {
  // A parser keeps about six bytes per byte of the largest text it has seen: a large one gets a parser of its own.
  constexpr size_t kKeptBytes = 1 << 20;
  thread_local ondemand::parser kept;
  std::optional<ondemand::parser> own;
  ondemand::parser& parser = json.size() <= kKeptBytes ? kept : own.emplace();
  const simdjson::padded_string padded(json);
  ondemand::document document;
  if (const auto error = parser.iterate(padded).get(document)) return Reader::failed(error);
  ondemand::json_type type;
  if (const auto error = document.type().get(type)) return Reader::failed(error);
  const Status more = invalid_argument("not valid JSON: more text after the value");
  Reader reader(origin, max_values);
  Result<Value> result = Value::none();
  if (type == ondemand::json_type::array) {
    result = reader.array(document, 0);
  } else if (type == ondemand::json_type::object) {
    result = reader.object(document, 0);
  } else if (type == ondemand::json_type::string) {
    ondemand::raw_json_string raw;
    if (const auto error = document.get_raw_json_string().get(raw)) return Reader::failed(error);
    result = reader.text(raw);
  } else {
    std::string_view token;
    if (const auto error = document.raw_json_token().get(token)) return Reader::failed(error);
    result = reader.scalar(token);
    const std::string_view all = json.substr(0, json.find_last_not_of(" \t\r\n") + 1);
    if (result.ok() && !all.ends_with(token.substr(0, token.find_last_not_of(" \t\r\n") + 1))) return more;
    return result;
  }
  if (result.ok() && document.current_location().error() != simdjson::OUT_OF_BOUNDS) return more;
  return result;
}

}  // namespace warmpath
