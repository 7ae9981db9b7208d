#include "text/jinja/string_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "text/jinja/operators.h"
#include "text/jinja/python_text.h"
#include "text/jinja/text_ops.h"

namespace warmpath::jinja {
namespace {

constexpr int64_t kMaxWidth = 4096;

struct Conversion {
  bool left = false;
  bool plus = false;
  bool space = false;
  bool zero = false;
  bool alternate = false;
  int64_t width = 0;
  int64_t precision = -1;
};

double number_of(const Value& value, char conversion) {
  if (value.kind() == Value::Kind::kFloat) return value.as_real();
  if (value.is_int()) return static_cast<double>(value.as_int());
  if (value.is_bool()) return value.as_bool() ? 1 : 0;
  throw TemplateError(fmt::format("%{} format: a real number is required, not {}", conversion, type_name(value)));
}

// A number with C's printf, whose flags and conversions are Python's here.
std::string print_number(const Conversion& how, char conversion, const Value& value) {
  std::string format = "%";
  if (how.left) format += '-';
  if (how.plus) format += '+';
  if (how.space) format += ' ';
  if (how.zero) format += '0';
  if (how.alternate) format += '#';
  if (how.width > 0) format += std::to_string(how.width);
  if (how.precision >= 0) format += "." + std::to_string(how.precision);
  char buffer[2 * kMaxWidth];
  if (std::string_view("diuxXo").find(conversion) != std::string_view::npos) {
    const double real = number_of(value, conversion);
    if (value.kind() == Value::Kind::kFloat && (!std::isfinite(real) || std::abs(real) >= 9.2e18)) {
      throw TemplateError(fmt::format("%{} format: the number does not fit 64 bits", conversion));
    }
    const long long whole = value.is_int() ? value.as_int() : static_cast<long long>(real);
    format += "ll";
    format += conversion == 'u' || conversion == 'i' ? 'd' : conversion;
    std::snprintf(buffer, sizeof(buffer), format.c_str(), whole);
  } else {
    format += conversion;
    std::snprintf(buffer, sizeof(buffer), format.c_str(), number_of(value, conversion));
  }
  return buffer;
}

}  // namespace

Value percent_format(const Value& format, const Value& arguments) {
  std::string scratch;
  const MarkedText& text = format.as_text();
  const std::string_view all = text.view(scratch);
  const bool tuple = arguments.is_list() && arguments.as_list().type == SequenceKind::kTuple;
  size_t next_argument = 0;
  const auto next = [&]() -> const Value& {
    if (tuple) {
      const auto& items = arguments.as_list().items;
      if (next_argument >= items.size()) throw TemplateError("not enough arguments for format string");
      return items[next_argument++];
    }
    if (next_argument++ > 0) throw TemplateError("not enough arguments for format string");
    return arguments;
  };
  MarkedText result;
  size_t at = 0;
  while (true) {
    const size_t percent = all.find('%', at);
    result.append(text.substr(at, percent == all.npos ? all.npos : percent - at));
    if (percent == all.npos) break;
    at = percent + 1;
    const Value* named = nullptr;
    if (at < all.size() && all[at] == '(') {
      const size_t close = all.find(')', at);
      if (close == all.npos) throw TemplateError("incomplete format key");
      named = arguments.find(all.substr(at + 1, close - at - 1));
      if (named == nullptr)
        throw TemplateError(fmt::format("format key '{}' is missing", all.substr(at + 1, close - at - 1)));
      at = close + 1;
    }
    Conversion how;
    for (; at < all.size(); ++at) {
      if (all[at] == '-')
        how.left = true;
      else if (all[at] == '+')
        how.plus = true;
      else if (all[at] == ' ')
        how.space = true;
      else if (all[at] == '0')
        how.zero = true;
      else if (all[at] == '#')
        how.alternate = true;
      else
        break;
    }
    const auto size = [&]() -> int64_t {
      if (at < all.size() && all[at] == '*') {
        ++at;
        return to_integer(next(), "*");
      }
      int64_t value = 0;
      for (; at < all.size() && all[at] >= '0' && all[at] <= '9'; ++at)
        value = std::min(value * 10 + (all[at] - '0'), kMaxWidth);
      return value;
    };
    how.width = std::clamp<int64_t>(size(), 0, kMaxWidth - 1);
    if (at < all.size() && all[at] == '.') {
      ++at;
      how.precision = std::clamp<int64_t>(size(), 0, kMaxWidth / 8);
    }
    while (at < all.size() && (all[at] == 'h' || all[at] == 'l' || all[at] == 'L')) ++at;
    if (at >= all.size()) throw TemplateError("incomplete format");
    const char conversion = all[at++];
    if (conversion == '%') {
      result.append(MarkedText("%", Origin::kTemplate));
      continue;
    }
    const Value& value = named != nullptr ? *named : next();
    if (conversion == 's' || conversion == 'r' || conversion == 'a') {
      MarkedText piece = to_text(value);
      if (conversion != 's') {
        std::string repr;
        append_repr(value, repr);
        piece = MarkedText(std::move(repr), origin_of(value));
      }
      if (how.precision >= 0) piece = char_slice(piece, 0, static_cast<size_t>(how.precision));
      result.append(pad(piece, how.width, " ", how.left ? Align::kLeft : Align::kRight));
    } else if (conversion == 'c' && value.is_string()) {
      result.append(value.as_text());
    } else if (std::string_view("diuxXoeEfFgG").find(conversion) != std::string_view::npos) {
      result.append(MarkedText(print_number(how, conversion, value), origin_of(value)));
    } else {
      throw TemplateError(fmt::format("unsupported format character '{}'", conversion));
    }
  }
  if (tuple && next_argument < arguments.as_list().items.size()) {
    throw TemplateError("not all arguments converted during string formatting");
  }
  return Value::string(std::move(result));
}

Value brace_format(const Value& format, const Arguments& arguments) {
  std::string scratch;
  const MarkedText& text = format.as_text();
  const std::string_view all = text.view(scratch);
  MarkedText result;
  size_t automatic = 0;
  for (size_t at = 0; at < all.size();) {
    const size_t brace = all.find_first_of("{}", at);
    result.append(text.substr(at, brace == all.npos ? all.npos : brace - at));
    if (brace == all.npos) break;
    if (brace + 1 < all.size() && all[brace + 1] == all[brace]) {
      result.append(text.substr(brace, 1));
      at = brace + 2;
      continue;
    }
    const size_t close = all.find('}', brace);
    if (all[brace] == '}' || close == all.npos) throw TemplateError("Single '{' or '}' encountered in format string");
    const std::string_view field = all.substr(brace + 1, close - brace - 1);
    at = close + 1;
    if (field.find_first_of("!:.[") != field.npos) {
      throw TemplateError(fmt::format("format field '{{{}}}' is not supported: use the % operator or filters", field));
    }
    const Value* value = nullptr;
    if (field.empty() || field.find_first_not_of("0123456789") == field.npos) {
      const size_t index =
          field.empty() ? automatic++ : static_cast<size_t>(std::stoul(std::string(field.substr(0, 6))));
      if (index < arguments.positional.size()) value = &arguments.positional[index];
    } else {
      for (const auto& [name, each] : arguments.keywords) value = name == field ? &each : value;
    }
    if (value == nullptr) throw TemplateError(fmt::format("format field '{{{}}}' has no argument", field));
    result.append(to_text(*value));
  }
  return Value::string(std::move(result));
}

}  // namespace warmpath::jinja
