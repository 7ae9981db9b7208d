#include "text/conversation.h"

#include <fmt/format.h>

#include <charconv>

#include "text/json_value.h"

namespace warmpath {
namespace {

// "YYYY-MM-DDTHH:MM:SS", or only the date.
Result<std::chrono::sys_seconds> parse_civil_time(std::string_view text) {
  const auto refuse = [&] {
    return invalid_argument(fmt::format("now is '{}', not YYYY-MM-DDTHH:MM:SS", text.substr(0, 40)));
  };
  const auto number = [&](size_t at, size_t size, int low, int high, int& value) {
    if (at + size > text.size()) return false;
    const auto [stop, error] = std::from_chars(text.data() + at, text.data() + at + size, value);
    return error == std::errc() && stop == text.data() + at + size && value >= low && value <= high;
  };
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
  if (text.size() != 10 && text.size() != 19) return refuse();
  if (!number(0, 4, 1, 9999, year) || text[4] != '-' || !number(5, 2, 1, 12, month) || text[7] != '-' ||
      !number(8, 2, 1, 31, day)) {
    return refuse();
  }
  if (text.size() == 19 && ((text[10] != 'T' && text[10] != ' ') || !number(11, 2, 0, 23, hour) || text[13] != ':' ||
                            !number(14, 2, 0, 59, minute) || text[16] != ':' || !number(17, 2, 0, 59, second))) {
    return refuse();
  }
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return refuse();
  return std::chrono::sys_seconds(std::chrono::sys_days(date)) + std::chrono::hours(hour) +
         std::chrono::minutes(minute) + std::chrono::seconds(second);
}

// Arguments of more values than this stay the string they came as.
constexpr size_t kMostArgumentValues = 100'000;

Value frozen(Value value) {
  if (value.is_list()) value.as_list().frozen = true;
  if (value.is_dict()) value.as_dict().frozen = true;
  return value;
}

// `dict` with one entry replaced; its other entries are shared.
Value with_entry(const Value& dict, std::string_view key, Value value) {
  Value copy = Value::dict();
  for (const auto& [name, old] : dict.as_dict().entries) copy.as_dict().set(name, old);
  copy.as_dict().set(key, std::move(value));
  return frozen(std::move(copy));
}

}  // namespace

void Conversation::add_message(std::string_view role, std::string_view content) {
  Value message = Value::dict();
  message.as_dict().set("role", Value::string(std::string(role), Origin::kMessage));
  message.as_dict().set("content", Value::string(std::string(content), Origin::kMessage));
  add_message(frozen(std::move(message)));
}

void Conversation::add_message(Value message) {
  // The list may be shared with another conversation by now: then this one gets its own.
  if (!messages.is_list() || messages.as_list().frozen || messages.as_node()->use_count() > 1) {
    messages = Value::list(messages.is_list() ? messages.as_list().items : std::vector<Value>());
  }
  messages.as_list().append(std::move(message));
}

Result<Conversation> conversation_from_json(std::string_view json) {
  const Result<Value> parsed = value_from_json(json);
  constexpr std::string_view kForm = R"(write a conversation as {"messages": [{"role": "user", "content": "Hello"}]})";
  if (!parsed.ok()) return invalid_argument(fmt::format("{}; {}", parsed.status().message(), kForm));
  if (!parsed->is_dict()) return invalid_argument(fmt::format("this is no JSON object; {}", kForm));
  Conversation conversation;
  bool has_messages = false;
  for (const auto& [name, value] : parsed->as_dict().entries) {
    const std::string key = name.string_or_empty();
    const auto wrong = [&](std::string_view wanted) {
      return invalid_argument(fmt::format("'{}' must be {}", key, wanted));
    };
    if (key == "messages") {
      if (!value.is_list()) return wrong("a list");
      conversation.messages = value;
      has_messages = true;
    } else if (key == "tools") {
      if (!value.is_list() && !value.is_none()) return wrong("a list");
      conversation.tools = value;
    } else if (key == "kwargs") {
      if (!value.is_dict()) return wrong("an object");
      conversation.kwargs = value;
    } else if (key == "add_generation_prompt") {
      if (!value.is_bool()) return wrong("true or false");
      conversation.add_generation_prompt = value.as_bool();
    } else if (key == "bos_token" || key == "eos_token") {
      if (!value.is_string()) return wrong("a string");
      (key == "bos_token" ? conversation.bos_token : conversation.eos_token) = value.string_or_empty();
    } else if (key == "now") {
      const auto now = parse_civil_time(value.string_or_empty());
      if (!now.ok()) return now.status();
      conversation.now = *now;
    } else {
      return invalid_argument(
          fmt::format("a conversation has no field '{}': it may have messages, tools, kwargs, "
                      "add_generation_prompt, bos_token, eos_token and now",
                      key));
    }
  }
  if (!has_messages) return invalid_argument("a conversation needs 'messages'");
  return conversation;
}

Value with_parsed_tool_arguments(const Value& message) {
  const Value* calls = message.find("tool_calls");
  if (calls == nullptr || !calls->is_list()) return message;
  std::vector<Value> parsed_calls;
  bool changed = false;
  for (const Value& call : calls->as_list().items) {
    parsed_calls.push_back(call);
    const Value* function = call.find("function");
    const Value* arguments = function != nullptr ? function->find("arguments") : nullptr;
    if (arguments == nullptr || !arguments->is_string()) continue;
    const std::string json = arguments->string_or_empty();
    // An empty string is how some clients spell a call without arguments.
    Result<Value> parsed = json.empty() ? Result<Value>(frozen(Value::dict()))
                                        : value_from_json(json, Origin::kMessage, kMostArgumentValues);
    if (!parsed.ok() || !parsed->is_dict()) continue;
    parsed_calls.back() = with_entry(call, "function", with_entry(*function, "arguments", *std::move(parsed)));
    changed = true;
  }
  return changed ? with_entry(message, "tool_calls", frozen(Value::list(std::move(parsed_calls)))) : message;
}

}  // namespace warmpath
