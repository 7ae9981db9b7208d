// read_conversation(): the shape of chat messages and tools. Content and arguments stay as the client wrote them; only
// what a template could not make sense of is refused here, by index.
#include <fmt/format.h>

#include "router/wire/chat.h"
#include "router/wire/chat_value.h"
#include "text/json_value.h"

namespace warmpath {

namespace {

constexpr size_t kMostTemplateVariables = 10'000;  // values in chat_template_kwargs

size_t json_bytes(const ChatRequest& request) {
  size_t bytes = 0;
  for (const std::string_view message : request.messages) bytes += message.size();
  for (const std::string_view tool : request.tools) bytes += tool.size();
  return bytes;
}

bool refuse(WireError& error, std::string param, std::string_view what) {
  error = bad_request(param, fmt::format("'{}' {}", param, what));
  return false;
}

std::string what_is_wrong(const Status& status) {
  return (status.code() == StatusCode::kResourceExhausted ? "cannot be read: " : "is not valid JSON: ") +
         status.message();
}

std::string at_message(size_t position, std::string_view rest = "") {
  return fmt::format("messages[{}]{}", position, rest);
}

bool check_parts(const Value& parts, size_t position, WireError& error) {
  const auto& items = parts.as_list().items;
  for (size_t n = 0; n < items.size(); ++n) {
    const auto param = [&](std::string_view rest) {
      return fmt::format("messages[{}].content[{}]{}", position, n, rest);
    };
    if (!items[n].is_dict()) return refuse(error, param(""), "must be an object");
    const Value* type = items[n].find("type");
    if (type == nullptr || !type->is_string()) return refuse(error, param(".type"), "must be a string");
    if (is_text(type, "text")) {
      const Value* text = items[n].find("text");
      if (text == nullptr || !text->is_string()) return refuse(error, param(".text"), "must be a string");
      continue;
    }
    const std::string word = type->string_or_empty();
    error = unsupported(param(".type"), fmt::format("Content parts of type '{}' are not supported by this model; only "
                                                    "'text' is",
                                                    word));
    return false;
  }
  return true;
}

bool check_tool_calls(const Value& calls, size_t position, WireError& error) {
  if (calls.is_none()) return true;
  if (!calls.is_list()) return refuse(error, at_message(position, ".tool_calls"), "must be an array");
  const auto& items = calls.as_list().items;
  for (size_t n = 0; n < items.size(); ++n) {
    const std::string param = fmt::format("messages[{}].tool_calls[{}]", position, n);
    const Value* function = items[n].is_dict() ? items[n].find("function") : nullptr;
    if (function == nullptr || !function->is_dict()) return refuse(error, param + ".function", "must be an object");
    const Value* name = function->find("name");
    if (name == nullptr || !name->is_string()) return refuse(error, param + ".function.name", "must be a string");
  }
  return true;
}

bool check_content(const Value& message, bool may_be_null, size_t position, WireError& error) {
  const Value* content = message.find("content");
  if (content == nullptr || content->is_none()) {
    return may_be_null || refuse(error, at_message(position, ".content"), "must be a string or an array of text parts");
  }
  if (content->is_string()) return true;
  if (content->is_list()) return check_parts(*content, position, error);
  return refuse(error, at_message(position, ".content"), "must be a string or an array of text parts");
}

// Templates know "system"; "developer" is its newer name on this wire.
Value with_system_role(const Value& message) {
  Value copy = Value::dict();
  for (const auto& [key, value] : message.as_dict().entries) {
    if (key.is_string() && key.as_text() == std::string_view("role")) {
      copy.as_dict().set(key, Value::string("system", Origin::kMessage));
    } else {
      copy.as_dict().set(key, value);
    }
  }
  return copy;
}

bool add_message(Value message, size_t position, Conversation& conversation, WireError& error) {
  if (!message.is_dict()) return refuse(error, at_message(position), "must be an object");
  const Value* role = message.find("role");
  if (role == nullptr || !role->is_string()) return refuse(error, at_message(position, ".role"), "must be a string");
  const bool is_assistant = is_text(role, "assistant");
  const bool is_developer = is_text(role, "developer");
  if (!is_assistant && !is_developer && !is_text(role, "user") && !is_text(role, "tool") && !is_text(role, "system")) {
    return refuse(error, at_message(position, ".role"),
                  fmt::format("is \"{}\"; it must be one of system, developer, user, assistant, tool",
                              role->string_or_empty().substr(0, 64)));
  }
  if (!check_content(message, is_assistant, position, error)) return false;
  if (const Value* calls = message.find("tool_calls"); calls != nullptr && is_assistant) {
    if (!check_tool_calls(*calls, position, error)) return false;
  }
  if (const Value* id = message.find("tool_call_id"); id != nullptr && !id->is_none() && !id->is_string()) {
    return refuse(error, at_message(position, ".tool_call_id"), "must be a string");
  }
  conversation.add_message(is_developer ? with_system_role(message) : std::move(message));
  return true;
}

bool read_tools(const ChatRequest& request, MessageCache& cache, size_t& budget, Conversation& conversation,
                WireError& error) {
  if (request.tools.empty()) return true;
  std::vector<Value> tools;
  tools.reserve(request.tools.size());
  for (size_t n = 0; n < request.tools.size(); ++n) {
    const auto param = [&](std::string_view rest) { return fmt::format("tools[{}]{}", n, rest); };
    Result<Value> tool = cache.read(request.tools[n], budget);
    if (!tool.ok()) return refuse(error, param(""), what_is_wrong(tool.status()));
    const Value* type = tool->find("type");
    if (!is_text(type, "function")) {
      const std::string word = type == nullptr ? "" : type->string_or_empty().substr(0, 64);
      error =
          unsupported(param(".type"), fmt::format("Tools of type '{}' are not supported; only 'function' is", word));
      return false;
    }
    const Value* function = tool->find("function");
    const Value* name = function == nullptr ? nullptr : function->find("name");
    if (name == nullptr || !name->is_string()) return refuse(error, param(".function.name"), "must be a string");
    tools.push_back(*std::move(tool));
  }
  conversation.tools = Value::list(std::move(tools));
  return true;
}

bool read_template_variables(const ChatRequest& request, Conversation& conversation, WireError& error) {
  if (!request.template_kwargs.empty()) {
    Result<Value> kwargs = value_from_json(request.template_kwargs, Origin::kMessage, kMostTemplateVariables);
    if (!kwargs.ok()) {
      return refuse(error, "chat_template_kwargs", what_is_wrong(kwargs.status()));
    }
    conversation.kwargs = *std::move(kwargs);
  }
  if (!request.reasoning_effort.empty() && conversation.kwargs.find("reasoning_effort") == nullptr) {
    Value kwargs = Value::dict();
    for (const auto& [key, value] : conversation.kwargs.as_dict().entries) kwargs.as_dict().set(key, value);
    kwargs.as_dict().set("reasoning_effort", Value::string(request.reasoning_effort, Origin::kMessage));
    conversation.kwargs = std::move(kwargs);
  }
  conversation.add_generation_prompt = request.add_generation_prompt;
  return true;
}

}  // namespace

bool read_conversation(const ChatRequest& request, MessageCache& cache, Conversation& conversation, WireError& error) {
  size_t budget = MessageCache::budget_for(json_bytes(request));
  for (size_t n = 0; n < request.messages.size(); ++n) {
    Result<Value> message = cache.read(request.messages[n], budget);
    if (!message.ok()) return refuse(error, at_message(n), what_is_wrong(message.status()));
    if (!add_message(*std::move(message), n, conversation, error)) return false;
  }
  return read_tools(request, cache, budget, conversation, error) &&
         read_template_variables(request, conversation, error);
}

}  // namespace warmpath
