#include "router/wire/chat_value.h"

#include <fmt/format.h>

namespace warmpath {

Value text_value(std::string_view text) { return Value::string(std::string(text), Origin::kMessage); }

Value dict_value(std::initializer_list<std::pair<std::string_view, Value>> entries) {
  Value dict = Value::dict();
  for (const auto& [key, value] : entries) {
    if (!value.is_undefined()) dict.as_dict().set(key, value);
  }
  dict.as_dict().frozen = true;
  return dict;
}

Value list_value(std::vector<Value> items) {
  Value list = Value::list(std::move(items));
  list.as_list().frozen = true;
  return list;
}

bool is_text(const Value* value, std::string_view text) {
  return value != nullptr && value->is_string() && value->as_text() == text;
}

Value message_value(std::string_view role, Value content) {
  return dict_value({{"role", text_value(role)}, {"content", std::move(content)}});
}

Value tool_value(Value name, Value description, Value parameters) {
  Value function = dict_value(
      {{"name", std::move(name)}, {"description", std::move(description)}, {"parameters", std::move(parameters)}});
  return dict_value({{"type", text_value("function")}, {"function", std::move(function)}});
}

Value call_value(Value id, Value name, Value arguments) {
  Value function = dict_value({{"name", std::move(name)}, {"arguments", std::move(arguments)}});
  return dict_value({{"id", std::move(id)}, {"type", text_value("function")}, {"function", std::move(function)}});
}

Value content_value(std::vector<Value> texts) {
  if (texts.empty()) return text_value("");
  if (texts.size() == 1) return std::move(texts[0]);
  for (Value& text : texts) text = dict_value({{"type", text_value("text")}, {"text", std::move(text)}});
  return list_value(std::move(texts));
}

Status bad_part(std::string_view path, std::string_view what) {
  return invalid_argument(fmt::format(".{} {}", path, what));
}

bool refuse_part(WireError& error, std::string_view where, const Status& status) {
  const std::string_view text = status.message();
  if (text.starts_with('.')) {
    error = bad_request(fmt::format("{}{}", where, text.substr(0, text.find(' '))), fmt::format("{}{}", where, text));
  } else {
    error = bad_request(where, fmt::format("{}: {}", where, text));
  }
  return false;
}

}  // namespace warmpath
