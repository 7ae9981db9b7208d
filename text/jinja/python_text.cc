#include "text/jinja/python_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/jinja/error.h"
#include "text/jinja/objects.h"
#include "text/unicode.h"

namespace warmpath::jinja {
namespace {

void append_string_repr(std::string_view text, std::string& out) {
  const bool double_quotes = text.find('\'') != text.npos && text.find('"') == text.npos;
  const char quote = double_quotes ? '"' : '\'';
  out.push_back(quote);
  const auto* at = reinterpret_cast<const uint8_t*>(text.data());
  const uint8_t* end = at + text.size();
  while (at < end) {
    const DecodedChar decoded = decode_utf8(at, end);
    const uint32_t code = decoded.code_point;
    if (code == static_cast<uint32_t>(quote) || code == '\\') {
      out.push_back('\\');
      out.push_back(static_cast<char>(code));
    } else if (code == '\n') {
      out += "\\n";
    } else if (code == '\r') {
      out += "\\r";
    } else if (code == '\t') {
      out += "\\t";
    } else if (code != kInvalidCodePoint && is_python_printable(code)) {
      out.append(reinterpret_cast<const char*>(at), decoded.size);
    } else if (code == kInvalidCodePoint || code < 0x100) {
      out += fmt::format("\\x{:02x}", code == kInvalidCodePoint ? *at : code);
    } else if (code < 0x10000) {
      out += fmt::format("\\u{:04x}", code);
    } else {
      out += fmt::format("\\U{:08x}", code);
    }
    at += decoded.size;
  }
  out.push_back(quote);
}

void append_json_string(std::string_view text, bool ensure_ascii, std::string& out) {
  out.push_back('"');
  const auto* at = reinterpret_cast<const uint8_t*>(text.data());
  const uint8_t* end = at + text.size();
  while (at < end) {
    const uint8_t byte = *at;
    if (byte >= 0x80 && ensure_ascii) {
      const DecodedChar decoded = decode_utf8(at, end);
      uint32_t code = decoded.code_point == kInvalidCodePoint ? 0xFFFD : decoded.code_point;
      if (code >= 0x10000) {
        code -= 0x10000;
        out += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (code >> 10), 0xDC00 + (code & 0x3FF));
      } else {
        out += fmt::format("\\u{:04x}", code);
      }
      at += decoded.size;
      continue;
    }
    ++at;
    switch (byte) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      default:
        if (byte < 0x20) {
          out += fmt::format("\\u{:04x}", byte);
        } else {
          out.push_back(static_cast<char>(byte));
        }
    }
  }
  out.push_back('"');
}

std::string json_float(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
  return float_repr(number);
}

class JsonWriter {
 public:
  explicit JsonWriter(const JsonStyle& style) : style_(style) {}

  void write(const Value& value, int depth) {
    if (depth > Value::kMaxDepth) throw TemplateError("tojson: nested too deeply (or a list that holds itself)");
    switch (value.kind()) {
      case Value::Kind::kNone:
        out += "null";
        return;
      case Value::Kind::kBool:
        out += value.as_bool() ? "true" : "false";
        return;
      case Value::Kind::kInt:
        out += std::to_string(value.as_int());
        return;
      case Value::Kind::kBigInt:
        out += value.as_digits();
        return;
      case Value::Kind::kFloat:
        out += json_float(value.as_real());
        return;
      case Value::Kind::kString: {
        std::string scratch;
        append_json_string(value.as_text().view(scratch), style_.ensure_ascii, out);
        return;
      }
      case Value::Kind::kList:
        if (value.as_list().type > SequenceKind::kTuple) break;
        return write_list(value.as_list(), depth);
      case Value::Kind::kDict:
        return write_dict(value.as_dict(), depth);
      default:
        break;
    }
    throw TemplateError(fmt::format("Object of type {} is not JSON serializable", type_name(value)));
  }
  std::string out;

 private:
  void line(int depth) {
    if (!style_.indent) return;
    out.push_back('\n');
    for (int level = 0; level < depth; ++level) out += *style_.indent;
  }
  void write_list(const ValueList& list, int depth) {
    if (list.items.empty()) {
      out += "[]";
      return;
    }
    out.push_back('[');
    for (size_t index = 0; index < list.items.size(); ++index) {
      if (index > 0) out += style_.item_separator;
      line(depth + 1);
      write(list.items[index], depth + 1);
    }
    line(depth);
    out.push_back(']');
  }
  std::string key_text(const Value& key) {
    switch (key.kind()) {
      case Value::Kind::kString:
        return key.as_text().to_string();
      case Value::Kind::kNone:
        return "null";
      case Value::Kind::kBool:
        return key.as_bool() ? "true" : "false";
      case Value::Kind::kInt:
        return std::to_string(key.as_int());
      case Value::Kind::kBigInt:
        return key.as_digits();
      case Value::Kind::kFloat:
        return json_float(key.as_real());
      default:
        throw TemplateError(fmt::format("keys must be str, int, float, bool or None, not {}", type_name(key)));
    }
  }
  void write_dict(const ValueDict& dict, int depth) {
    if (dict.entries.empty()) {
      out += "{}";
      return;
    }
    std::vector<std::pair<std::string, const Value*>> entries;
    entries.reserve(dict.entries.size());
    for (const auto& [key, value] : dict.entries) entries.emplace_back(key_text(key), &value);
    if (style_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    }
    out.push_back('{');
    for (size_t index = 0; index < entries.size(); ++index) {
      if (index > 0) out += style_.item_separator;
      line(depth + 1);
      append_json_string(entries[index].first, style_.ensure_ascii, out);
      out += style_.key_separator;
      write(*entries[index].second, depth + 1);
    }
    line(depth);
    out.push_back('}');
  }

  const JsonStyle& style_;
};

// range(first, end) or range(first, end, step). The end is the least that gives these items.
void append_range_repr(const ValueList& range, std::string& out) {
  const size_t count = range.items.size();
  const int64_t first = count > 0 ? range.items.front().as_int() : 0;
  const int64_t step = count > 1 ? range.items[1].as_int() - first : 1;
  const int64_t end = count > 0 ? range.items.back().as_int() + (step > 0 ? 1 : -1) : 0;
  out += step == 1 ? fmt::format("range({}, {})", first, end) : fmt::format("range({}, {}, {})", first, end, step);
}

Origin origin_within(const Value& value, int depth) {
  if (depth > Value::kMaxDepth) return Origin::kMessage;
  if (value.is_string()) return value.as_text().origin();
  if (value.is_list()) {
    const ValueList& list = value.as_list();
    if (list.frozen) return Origin::kMessage;
    for (const Value& item : list.items) {
      if (origin_within(item, depth + 1) == Origin::kMessage) return Origin::kMessage;
    }
  }
  if (value.is_dict()) {
    const ValueDict& dict = value.as_dict();
    if (dict.frozen) return Origin::kMessage;
    for (const auto& [key, item] : dict.entries) {
      if (origin_within(key, depth + 1) == Origin::kMessage || origin_within(item, depth + 1) == Origin::kMessage) {
        return Origin::kMessage;
      }
    }
  }
  return Origin::kTemplate;
}

}  // namespace

std::string float_repr(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  char buffer[40];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), number, std::chars_format::scientific);
  const std::string_view shortest(buffer, static_cast<size_t>(end - buffer));  // d.ddde+XX
  const size_t e = shortest.find('e');
  std::string digits(shortest.substr(0, e));
  const bool negative = digits[0] == '-';
  std::erase_if(digits, [](char c) { return c == '-' || c == '.'; });
  int exponent = 0;
  const size_t exponent_at = e + 1 + (shortest[e + 1] == '+' ? 1 : 0);
  std::from_chars(shortest.data() + exponent_at, shortest.data() + shortest.size(), exponent);
  std::string text = negative ? "-" : "";
  // CPython's float_repr_style "short": positional from 1e-4 up to, not including, 1e16.
  if (exponent < -4 || exponent >= 16) {
    text += digits[0];
    if (digits.size() > 1) text += "." + digits.substr(1);
    return text + fmt::format("e{}{:02}", exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (exponent < 0) return text + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) return text + digits + std::string(whole - digits.size(), '0') + ".0";
  return text + digits.substr(0, whole) + "." + digits.substr(whole);
}

void append_repr(const Value& value, std::string& out, int depth) {
  if (depth > Value::kMaxDepth) throw TemplateError("value nested too deeply (or a list that holds itself)");
  switch (value.kind()) {
    case Value::Kind::kUndefined:
      out += depth == 0 ? "" : "Undefined";
      return;
    case Value::Kind::kNone:
      out += "None";
      return;
    case Value::Kind::kBool:
      out += value.as_bool() ? "True" : "False";
      return;
    case Value::Kind::kInt:
      out += std::to_string(value.as_int());
      return;
    case Value::Kind::kBigInt:
      out += value.as_digits();
      return;
    case Value::Kind::kFloat:
      out += float_repr(value.as_real());
      return;
    case Value::Kind::kString: {
      std::string scratch;
      append_string_repr(value.as_text().view(scratch), out);
      return;
    }
    case Value::Kind::kList: {
      const ValueList& list = value.as_list();
      const bool tuple = list.type == SequenceKind::kTuple;
      if (list.type == SequenceKind::kGenerator) {
        out += "<generator object>";
        return;
      }
      if (list.type == SequenceKind::kRange) return append_range_repr(list, out);
      if (list.type != SequenceKind::kList && !tuple) out.append(type_name(value)).push_back('(');
      out.push_back(tuple ? '(' : '[');
      for (size_t index = 0; index < list.items.size(); ++index) {
        if (index > 0) out += ", ";
        append_repr(list.items[index], out, depth + 1);
      }
      if (tuple && list.items.size() == 1) out.push_back(',');
      out.push_back(tuple ? ')' : ']');
      if (list.type != SequenceKind::kList && !tuple) out.push_back(')');
      return;
    }
    case Value::Kind::kDict: {
      out.push_back('{');
      bool first = true;
      for (const auto& [key, item] : value.as_dict().entries) {
        if (!std::exchange(first, false)) out += ", ";
        append_repr(key, out, depth + 1);
        out += ": ";
        append_repr(item, out, depth + 1);
      }
      out.push_back('}');
      return;
    }
    case Value::Kind::kObject:
      out += static_cast<const Object*>(value.as_node())->repr();
      return;
  }
}

MarkedText to_text(const Value& value) {
  if (value.is_string()) return value.as_text();
  if (value.is_undefined()) return {};
  std::string text;
  append_repr(value, text);
  return {std::move(text), origin_of(value)};
}

MarkedText to_json(const Value& value, const JsonStyle& style) {
  JsonWriter writer(style);
  writer.write(value, 0);
  return {std::move(writer.out), origin_of(value)};
}

Origin origin_of(const Value& value) { return origin_within(value, 0); }

std::string_view type_name(const Value& value) {
  static constexpr std::string_view kSequenceNames[] = {"list",        "tuple",      "range",    "dict_keys",
                                                        "dict_values", "dict_items", "generator"};
  switch (value.kind()) {
    case Value::Kind::kUndefined:
      return "Undefined";
    case Value::Kind::kNone:
      return "NoneType";
    case Value::Kind::kBool:
      return "bool";
    case Value::Kind::kInt:
    case Value::Kind::kBigInt:
      return "int";
    case Value::Kind::kFloat:
      return "float";
    case Value::Kind::kString:
      return "str";
    case Value::Kind::kList:
      return kSequenceNames[static_cast<size_t>(value.as_list().type)];
    case Value::Kind::kDict:
      return "dict";
    case Value::Kind::kObject:
      return static_cast<const Object*>(value.as_node())->type_name();
  }
  return "object";
}

}  // namespace warmpath::jinja
