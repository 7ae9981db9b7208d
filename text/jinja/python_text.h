// How Python writes values as text: str(), repr(), json.dumps(), and the number formats below them.
// Throw TemplateError for what Python refuses. Thread safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "text/value.h"

namespace warmpath::jinja {

// str(value): what {{ value }} prints. Strings come back as they are.
MarkedText to_text(const Value& value);
// repr(value), appended.
void append_repr(const Value& value, std::string& out, int depth = 0);
// repr of a float: the shortest digits that read back the same, 1e16 and 1e-05 style exponents.
std::string float_repr(double number);

struct JsonStyle {
  bool ensure_ascii = false;
  std::optional<std::string> indent;  // of one level; unset: everything on one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool sort_keys = false;
};
// json.dumps(value). The result is the message's when anything in it is.
MarkedText to_json(const Value& value, const JsonStyle& style);

// Where the text of `value` comes from: kMessage when any string in it, or any container, came from a request.
Origin origin_of(const Value& value);
// What Python calls the type: "str", "int", "dict", "Undefined", ...
std::string_view type_name(const Value& value);

}  // namespace warmpath::jinja
