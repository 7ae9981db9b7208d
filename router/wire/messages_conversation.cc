// read_messages(): Anthropic's content blocks as chat messages. One of their messages may be several of chat's: the
// results of tools are messages of their own there.
#include <fmt/format.h>

#include "router/wire/chat_value.h"
#include "router/wire/messages.h"
#include "text/json_value.h"

namespace warmpath {

namespace {

constexpr std::string_view kBillingHeader = "x-anthropic-billing-header";

std::string type_of(const Value& block) {
  const Value* type = block.find("type");
  return type != nullptr ? type->string_or_empty() : std::string();
}

Status cannot_read(std::string_view path, std::string_view type) {
  return bad_part(
      path, fmt::format("is of type '{}', which is not supported by this model; only text is", type.substr(0, 64)));
}

Result<Value> text_of(const Value& block, std::string_view path) {
  const Value* text = block.find("text");
  if (text == nullptr || !text->is_string()) return bad_part(fmt::format("{}.text", path), "must be a string");
  return *text;
}

// A tool's result: a string, or a list of blocks.
Result<Value> result_content(const Value& block, std::string_view path) {
  const Value* content = block.find("content");
  if (content == nullptr || content->is_none()) return text_value("");
  if (content->is_string()) return *content;
  if (!content->is_list()) return bad_part(fmt::format("{}.content", path), "must be a string or an array");
  std::vector<Value> texts;
  const auto& items = content->as_list().items;
  for (size_t n = 0; n < items.size(); ++n) {
    const std::string at = fmt::format("{}.content[{}]", path, n);
    const std::string type = type_of(items[n]);
    // Names of deferred tools that a search found; the tools themselves are in the request.
    if (type == "tool_reference") continue;
    if (type != "text") return cannot_read(at, type);
    Result<Value> text = text_of(items[n], at);
    if (!text.ok()) return text;
    texts.push_back(*std::move(text));
  }
  return content_value(std::move(texts));
}

Status read_user_blocks(const std::vector<Value>& blocks, std::string_view role, std::vector<Value>& out) {
  std::vector<Value> texts;
  const auto flush = [&] {
    if (!texts.empty()) out.push_back(message_value(role, content_value(std::exchange(texts, {}))));
  };
  for (size_t n = 0; n < blocks.size(); ++n) {
    const std::string at = fmt::format("content[{}]", n);
    const std::string type = type_of(blocks[n]);
    if (type == "text") {
      Result<Value> text = text_of(blocks[n], at);
      if (!text.ok()) return text.status();
      texts.push_back(*std::move(text));
    } else if (type == "tool_result" && role == "user") {
      const Value* id = blocks[n].find("tool_use_id");
      if (id == nullptr || !id->is_string()) return bad_part(at + ".tool_use_id", "must be a string");
      Result<Value> content = result_content(blocks[n], at);
      if (!content.ok()) return content.status();
      flush();
      out.push_back(
          dict_value({{"role", text_value("tool")}, {"tool_call_id", *id}, {"content", *std::move(content)}}));
    } else {
      return cannot_read(at, type);
    }
  }
  flush();
  if (out.empty()) out.push_back(message_value(role, text_value("")));
  return {};
}

Status read_assistant_blocks(const std::vector<Value>& blocks, std::vector<Value>& out) {
  std::vector<Value> texts;
  std::vector<Value> thoughts;
  std::vector<Value> calls;
  for (size_t n = 0; n < blocks.size(); ++n) {
    const std::string at = fmt::format("content[{}]", n);
    const std::string type = type_of(blocks[n]);
    if (type == "text") {
      Result<Value> text = text_of(blocks[n], at);
      if (!text.ok()) return text.status();
      texts.push_back(*std::move(text));
    } else if (type == "thinking") {
      const Value* thought = blocks[n].find("thinking");
      if (thought != nullptr && thought->is_string()) thoughts.push_back(*thought);
    } else if (type == "redacted_thinking") {
      continue;  // not ours, and nothing to read
    } else if (type == "tool_use") {
      const Value* id = blocks[n].find("id");
      const Value* name = blocks[n].find("name");
      const Value* input = blocks[n].find("input");
      if (name == nullptr || !name->is_string()) return bad_part(at + ".name", "must be a string");
      if (input != nullptr && !input->is_dict()) return bad_part(at + ".input", "must be an object");
      calls.push_back(call_value(id != nullptr ? *id : Value(), *name, input != nullptr ? *input : dict_value({})));
    } else {
      return cannot_read(at, type);
    }
  }
  Value content = texts.empty() && !calls.empty() ? Value::none() : content_value(std::move(texts));
  Value reasoning;
  if (thoughts.size() == 1) reasoning = thoughts[0];
  if (thoughts.size() > 1) {
    MarkedText joined;
    for (const Value& thought : thoughts) {
      if (!joined.empty()) joined.append(MarkedText("\n", Origin::kMessage));
      joined.append(thought.as_text());
    }
    reasoning = Value::string(std::move(joined));
  }
  out.push_back(dict_value({{"role", text_value("assistant")},
                            {"content", std::move(content)},
                            {"reasoning_content", std::move(reasoning)},
                            {"tool_calls", calls.empty() ? Value() : list_value(std::move(calls))}}));
  return {};
}

// One message of this wire as a list of chat's.
Result<Value> translate_message(const Value& message) {
  const Value* role = message.find("role");
  const std::string word = role != nullptr ? role->string_or_empty() : "";
  if (word != "user" && word != "assistant" && word != "system") {
    return bad_part("role", fmt::format("is \"{}\"; it must be \"user\" or \"assistant\"", word.substr(0, 64)));
  }
  const Value* content = message.find("content");
  if (content != nullptr && content->is_string()) return list_value({message_value(word, *content)});
  if (content == nullptr || !content->is_list()) return bad_part("content", "must be a string or an array of blocks");
  std::vector<Value> out;
  const auto& blocks = content->as_list().items;
  const Status read = word == "assistant" ? read_assistant_blocks(blocks, out) : read_user_blocks(blocks, word, out);
  if (!read.ok()) return read;
  return list_value(std::move(out));
}

// None for a tool that runs on Anthropic's servers, which has no schema: {"type": "web_search_20250305", "name": ...}.
Result<Value> translate_tool(const Value& tool) {
  const Value* name = tool.find("name");
  if (name == nullptr || !name->is_string()) return bad_part("name", "must be a string");
  const Value* type = tool.find("type");
  const Value* schema = tool.find("input_schema");
  if (type != nullptr && type->is_string() && !is_text(type, "custom") && schema == nullptr) {
    return dict_value({{"left_out", *name}});
  }
  const Value* description = tool.find("description");
  return tool_value(*name, description != nullptr ? *description : Value(), schema != nullptr ? *schema : Value());
}

bool read_system(const MessagesRequest& request, size_t budget, Conversation& conversation, WireError& error) {
  std::vector<Value> texts;
  if (request.has_system_text) {
    texts.push_back(text_value(request.system_text));
  } else if (!request.system_blocks.empty()) {
    const Result<Value> blocks = value_from_json(request.system_blocks, Origin::kMessage, budget / kValueBytes);
    if (!blocks.ok()) return refuse_part(error, "system", blocks.status());
    const auto& items = blocks->as_list().items;
    for (size_t n = 0; n < items.size(); ++n) {
      Result<Value> text = text_of(items[n], "");
      if (!text.ok()) {
        error = bad_request(fmt::format("system[{}].text", n), fmt::format("system[{}].text must be a string", n));
        return false;
      }
      if (!text->string_or_empty().starts_with(kBillingHeader)) texts.push_back(*std::move(text));
    }
  }
  if (!texts.empty()) conversation.add_message(message_value("system", content_value(std::move(texts))));
  return true;
}

}  // namespace

bool read_messages(const MessagesRequest& request, MessageCache& cache, Conversation& conversation,
                   std::vector<std::string>& left_out, WireError& error) {
  size_t json_bytes = request.system_blocks.size();
  for (const std::string_view message : request.messages) json_bytes += message.size();
  for (const std::string_view tool : request.tools) json_bytes += tool.size();
  size_t budget = MessageCache::budget_for(json_bytes);
  if (!read_system(request, budget, conversation, error)) return false;
  for (size_t n = 0; n < request.messages.size(); ++n) {
    const Result<Value> messages = cache.read(request.messages[n], "anthropic message", translate_message, budget);
    if (!messages.ok()) return refuse_part(error, fmt::format("messages[{}]", n), messages.status());
    for (const Value& message : messages->as_list().items) conversation.add_message(message);
  }
  std::vector<Value> tools;
  for (size_t n = 0; n < request.tools.size(); ++n) {
    Result<Value> tool = cache.read(request.tools[n], "anthropic tool", translate_tool, budget);
    if (!tool.ok()) return refuse_part(error, fmt::format("tools[{}]", n), tool.status());
    if (const Value* name = tool->find("left_out")) {
      left_out.push_back(name->string_or_empty());
    } else {
      tools.push_back(*std::move(tool));
    }
  }
  if (!tools.empty()) conversation.tools = list_value(std::move(tools));
  Value kwargs = Value::dict();
  if (request.thinking >= 0) kwargs.as_dict().set("enable_thinking", Value::boolean(request.thinking == 1));
  if (!request.effort.empty()) kwargs.as_dict().set("reasoning_effort", text_value(request.effort));
  kwargs.as_dict().frozen = true;
  conversation.kwargs = std::move(kwargs);
  return true;
}

}  // namespace warmpath
