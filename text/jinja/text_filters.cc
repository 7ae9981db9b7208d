// Filters that make text: Jinja2's own and transformers' tojson.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "text/jinja/builtins.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/operators.h"
#include "text/jinja/python_text.h"
#include "text/jinja/string_format.h"
#include "text/jinja/text_ops.h"
#include "text/unicode.h"

namespace warmpath::jinja {
namespace {

Value cased(const Value& input, CaseChange change) { return Value::string(change_case(to_text(input), change)); }

Value upper(Interpreter&, const Value& input, const Arguments&) { return cased(input, CaseChange::kUpper); }
Value lower(Interpreter&, const Value& input, const Arguments&) { return cased(input, CaseChange::kLower); }
Value capitalize(Interpreter&, const Value& input, const Arguments&) { return cased(input, CaseChange::kCapitalize); }
Value title(Interpreter&, const Value& input, const Arguments&) { return cased(input, CaseChange::kJinjaTitle); }
Value string(Interpreter&, const Value& input, const Arguments&) { return Value::string(to_text(input)); }

Value trim(Interpreter&, const Value& input, const Arguments& arguments) {
  const Value* chars = arguments.bind("trim", {"chars"})[0];
  const std::string wanted = chars != nullptr ? chars->string_or_empty() : "";
  const bool given = chars != nullptr && !chars->is_none();
  return Value::string(
      strip(to_text(input), given ? std::optional<std::string_view>(wanted) : std::nullopt, Side::kBoth));
}

Value escape(Interpreter&, const Value& input, const Arguments&) {
  MarkedText text = to_text(input);
  static constexpr std::pair<std::string_view, std::string_view> kEntities[] = {
      {"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"'", "&#39;"}, {"\"", "&#34;"}};
  for (const auto& [character, entity] : kEntities) {
    text = replace(text, character, MarkedText::from_static(entity, text.origin()), -1);
  }
  return Value::string(std::move(text));
}

Value replace_filter(Interpreter&, const Value& input, const Arguments& arguments) {
  const auto bound = arguments.bind("replace", {"old", "new", "count"});
  if (bound[0] == nullptr || bound[1] == nullptr) throw TemplateError("replace needs what to replace and with what");
  const int64_t limit = bound[2] != nullptr && !bound[2]->is_none() ? to_integer(*bound[2], "replace: count") : -1;
  return Value::string(replace(to_text(input), to_text(*bound[0]).to_string(), to_text(*bound[1]), limit));
}

Value indent(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const auto bound = arguments.bind("indent", {"width", "first", "blank"});
  std::string filler(4, ' ');
  if (bound[0] != nullptr) {
    filler = bound[0]->is_string()
                 ? bound[0]->string_or_empty()
                 : std::string(
                       static_cast<size_t>(std::clamp<int64_t>(to_integer(*bound[0], "indent: width"), 0, 1024)), ' ');
  }
  const bool first = bound[1] != nullptr && truthy(*bound[1]);
  const bool blank = bound[2] != nullptr && truthy(*bound[2]);
  MarkedText text = to_text(input);
  text.append(MarkedText("\n", Origin::kTemplate));  // as Jinja2 does, so that a last empty line counts
  const std::vector<Value> lines = split_lines(text, false);
  interpreter.charge(lines.size() + lines.size() * filler.size() / 256);
  const MarkedText prefix(filler, Origin::kTemplate);
  MarkedText result;
  if (first) result.append(prefix);
  for (size_t index = 0; index < lines.size(); ++index) {
    const MarkedText& line = lines[index].as_text();
    if (index > 0) {
      result.append(MarkedText("\n", Origin::kTemplate));
      if (blank || !line.empty()) result.append(prefix);
    }
    result.append(line);
  }
  return Value::string(std::move(result));
}

Value center(Interpreter&, const Value& input, const Arguments& arguments) {
  const Value* width = arguments.bind("center", {"width"})[0];
  return Value::string(
      pad(to_text(input), width != nullptr ? to_integer(*width, "center: width") : 80, " ", Align::kCenter));
}

Value truncate(Interpreter&, const Value& input, const Arguments& arguments) {
  const auto bound = arguments.bind("truncate", {"length", "killwords", "end", "leeway"});
  const MarkedText text = to_text(input);
  const int64_t length = bound[0] != nullptr ? to_integer(*bound[0], "truncate: length") : 255;
  const MarkedText end = bound[2] != nullptr ? to_text(*bound[2]) : MarkedText("...", Origin::kTemplate);
  const int64_t leeway = bound[3] != nullptr && !bound[3]->is_none() ? to_integer(*bound[3], "truncate: leeway") : 5;
  const int64_t end_length = static_cast<int64_t>(char_count(end));
  if (length < end_length || leeway < 0)
    throw TemplateError("truncate: the length must hold the end, and leeway be >= 0");
  if (static_cast<int64_t>(char_count(text)) <= length + leeway) return Value::string(text);
  MarkedText kept = char_slice(text, 0, static_cast<size_t>(length - end_length));
  if (bound[1] == nullptr || !truthy(*bound[1])) {
    std::string scratch;
    const size_t space = kept.view(scratch).rfind(' ');
    if (space != std::string_view::npos) kept = kept.substr(0, space);
  }
  kept.append(end);
  return Value::string(std::move(kept));
}

Value wordcount(Interpreter&, const Value& input, const Arguments&) {
  // Runs of \w: letters, digits, marks and underscores.
  std::string scratch;
  const MarkedText text = to_text(input);
  const std::string_view all = text.view(scratch);
  const auto* at = reinterpret_cast<const uint8_t*>(all.data());
  const uint8_t* end = at + all.size();
  int64_t count = 0;
  bool in_word = false;
  while (at < end) {
    const DecodedChar decoded = decode_utf8(at, end);
    const bool valid = decoded.code_point != kInvalidCodePoint;
    const bool word =
        decoded.code_point == '_' ||
        (valid && (properties_of(decoded.code_point).is_letter() || properties_of(decoded.code_point).is_number()));
    count += word && !in_word ? 1 : 0;
    in_word = word;
    at += decoded.size;
  }
  return Value::integer(count);
}

Value format(Interpreter&, const Value& input, const Arguments& arguments) {
  if (!arguments.keywords.empty()) {
    if (!arguments.positional.empty())
      throw TemplateError("can't handle positional and keyword arguments at the same time");
    Value named = Value::dict();
    for (const auto& [key, value] : arguments.keywords) named.as_dict().set(key, value);
    return percent_format(Value::string(to_text(input)), named);
  }
  return percent_format(Value::string(to_text(input)),
                        Value::tuple({arguments.positional.begin(), arguments.positional.end()}));
}

Value urlencode(Interpreter&, const Value& input, const Arguments&) {
  const auto quote = [](const MarkedText& text) {
    std::string quoted;
    for (const char c : text.to_string()) {
      const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                         std::string_view("_.-~/").find(c) != std::string_view::npos;
      quoted += plain && (c & 0x80) == 0 ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
    return quoted;
  };
  if (!input.is_dict()) return Value::string(quote(to_text(input)), origin_of(input));
  std::string query;
  for (const auto& [key, value] : input.as_dict().entries) {
    query += fmt::format("{}{}={}", query.empty() ? "" : "&", quote(to_text(key)), quote(to_text(value)));
  }
  return Value::string(std::move(query), origin_of(input));
}

Value tojson(Interpreter&, const Value& input, const Arguments& arguments) {
  const auto bound = arguments.bind("tojson", {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ensure_ascii = bound[0] != nullptr && truthy(*bound[0]);
  if (bound[1] != nullptr && !bound[1]->is_none()) {
    style.indent =
        bound[1]->is_string()
            ? bound[1]->string_or_empty()
            : std::string(static_cast<size_t>(std::clamp<int64_t>(to_integer(*bound[1], "tojson: indent"), 0, 64)),
                          ' ');
    style.item_separator = ",";
  }
  if (bound[2] != nullptr && !bound[2]->is_none()) {
    if (!bound[2]->is_list() || bound[2]->as_list().items.size() != 2) {
      throw TemplateError("tojson: separators must be a pair of strings");
    }
    style.item_separator = bound[2]->as_list().items[0].string_or_empty();
    style.key_separator = bound[2]->as_list().items[1].string_or_empty();
  }
  style.sort_keys = bound[3] != nullptr && truthy(*bound[3]);
  return Value::string(to_json(input, style));
}

// int(value, default, base): the number a text holds, else the default.
Value to_int(Interpreter&, const Value& input, const Arguments& arguments) {
  const auto bound = arguments.bind("int", {"default", "base"});
  const Value fallback = bound[0] != nullptr ? *bound[0] : Value::integer(0);
  if (input.is_int() || input.kind() == Value::Kind::kBigInt) return input;
  if (input.is_bool()) return Value::integer(input.as_bool() ? 1 : 0);
  const auto truncated = [&fallback](double real) {
    return std::isfinite(real) && std::abs(real) < 9.2e18 ? Value::integer(static_cast<int64_t>(real)) : fallback;
  };
  if (input.kind() == Value::Kind::kFloat) return truncated(input.as_real());
  if (!input.is_string()) return fallback;
  const std::string text = strip(input.as_text(), std::nullopt, Side::kBoth).to_string();
  const int base =
      bound[1] != nullptr ? static_cast<int>(std::clamp<int64_t>(to_integer(*bound[1], "int: base"), 2, 36)) : 10;
  std::string_view digits(text);
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.remove_prefix(1);
  if (digits.size() > 2 && digits[0] == '0' &&
      ((base == 16 && (digits[1] | 32) == 'x') || (base == 8 && (digits[1] | 32) == 'o') ||
       (base == 2 && (digits[1] | 32) == 'b'))) {
    digits.remove_prefix(2);
  }
  int64_t whole = 0;
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), whole, base);
  if (error == std::errc() && stop == digits.data() + digits.size()) return Value::integer(negative ? -whole : whole);
  double real = 0;
  const auto [real_stop, real_error] = std::from_chars(text.data(), text.data() + text.size(), real);
  if (real_error == std::errc() && real_stop == text.data() + text.size()) return truncated(real);
  return fallback;
}

Value to_float(Interpreter&, const Value& input, const Arguments& arguments) {
  const Value* fallback = arguments.bind("float", {"default"})[0];
  if (input.kind() == Value::Kind::kFloat) return input;
  if (input.is_int()) return Value::real(static_cast<double>(input.as_int()));
  if (input.is_bool()) return Value::real(input.as_bool() ? 1 : 0);
  if (input.is_string()) {
    const std::string text = strip(input.as_text(), std::nullopt, Side::kBoth).to_string();
    const char* first = text.starts_with('+') ? text.data() + 1 : text.data();
    double real = 0;
    const auto [stop, error] = std::from_chars(first, text.data() + text.size(), real);
    if (error == std::errc() && stop == text.data() + text.size()) return Value::real(real);
  }
  return fallback != nullptr ? *fallback : Value::real(0);
}

Value absolute(Interpreter&, const Value& input, const Arguments&) {
  require_defined(input);
  if (input.kind() == Value::Kind::kFloat) return Value::real(std::abs(input.as_real()));
  return less_than(input, Value::integer(0)) ? negate(input) : input;
}

// An integer to a multiple of 10^digits, halves to even.
Value round_to_tens(int64_t number, int64_t digits) {
  if (digits > 18) return Value::integer(0);
  int64_t unit = 1;
  for (int64_t digit = 0; digit < digits; ++digit) unit *= 10;
  const Value below = apply_binary(BinaryOp::kFloorDivide, Value::integer(number), Value::integer(unit));
  const int64_t rest = number - below.as_int() * unit;
  const bool up = rest > unit - rest || (rest == unit - rest && below.as_int() % 2 != 0);
  return apply_binary(BinaryOp::kMultiply, Value::integer(below.as_int() + (up ? 1 : 0)), Value::integer(unit));
}

Value round(Interpreter&, const Value& input, const Arguments& arguments) {
  const auto bound = arguments.bind("round", {"precision", "method"});
  require_defined(input);
  const int64_t precision =
      bound[0] != nullptr ? std::clamp<int64_t>(to_integer(*bound[0], "round: precision"), -300, 300) : 0;
  const std::string method = bound[1] != nullptr ? bound[1]->string_or_empty() : "common";
  if (!input.is_number()) throw TemplateError(fmt::format("round: a number is required, not {}", type_name(input)));
  if (input.is_int() && method == "common" && precision >= 0) return input;
  if (input.is_int() && method == "common") return round_to_tens(input.as_int(), -precision);
  const double number = input.is_int()    ? static_cast<double>(input.as_int())
                        : input.is_bool() ? (input.as_bool() ? 1.0 : 0.0)
                                          : input.as_real();
  const double scale = std::pow(10.0, static_cast<double>(precision));
  if (method == "ceil") return Value::real(std::ceil(number * scale) / scale);
  if (method == "floor") return Value::real(std::floor(number * scale) / scale);
  if (method != "common") throw TemplateError("round: method must be common, ceil or floor");
  if (!std::isfinite(number)) return Value::real(number);
  if (precision < 0) return Value::real(std::nearbyint(number * scale) / scale);
  // Correctly rounded in decimal, ties to even, as Python's round() is: printf rounds the exact binary value.
  return Value::real(std::strtod(fmt::format("{:.{}f}", number, precision).c_str(), nullptr));
}

}  // namespace

std::vector<NamedFilter> text_filters() {
  return {{"abs", absolute},       {"capitalize", capitalize}, {"center", center},
          {"e", escape},           {"escape", escape},         {"float", to_float},
          {"forceescape", escape}, {"format", format},         {"indent", indent},
          {"int", to_int},         {"lower", lower},           {"replace", replace_filter},
          {"round", round},        {"safe", string},           {"string", string},
          {"title", title},        {"tojson", tojson},         {"trim", trim},
          {"truncate", truncate},  {"upper", upper},           {"urlencode", urlencode},
          {"wordcount", wordcount}};
}

}  // namespace warmpath::jinja
