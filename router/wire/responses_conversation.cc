// read_responses(): items and tools of the responses wire as chat messages and functions.
#include <fmt/format.h>

#include "router/wire/chat_value.h"
#include "router/wire/responses.h"
#include "text/json_value.h"

namespace warmpath {

namespace {

constexpr size_t kMostArgumentValues = 100'000;  // of one call; beyond, its arguments stay text

const Value& member(const Value& object, std::string_view key) {
  static const Value kAbsent = Value();
  const Value* found = object.find(key);
  return found != nullptr ? *found : kAbsent;
}

// A message's or a result's content: a string, or a list of text parts.
Result<Value> read_content(const Value& content, std::string_view path) {
  if (content.is_string()) return content;
  if (content.is_none() || content.is_undefined()) return text_value("");
  if (!content.is_list()) return bad_part(path, "must be a string or an array of parts");
  std::vector<Value> texts;
  const auto& items = content.as_list().items;
  for (size_t n = 0; n < items.size(); ++n) {
    const std::string at = fmt::format("{}[{}]", path, n);
    const std::string type = member(items[n], "type").string_or_empty();
    const bool is_refusal = type == "refusal";
    if (type != "input_text" && type != "output_text" && type != "text" && type != "summary_text" &&
        type != "reasoning_text" && !is_refusal) {
      return bad_part(
          at, fmt::format("is of type '{}', which is not supported by this model; only text is", type.substr(0, 64)));
    }
    const Value& text = member(items[n], is_refusal ? "refusal" : "text");
    if (!text.is_string()) return bad_part(at + ".text", "must be a string");
    texts.push_back(text);
  }
  return content_value(std::move(texts));
}

Result<Value> read_message(const Value& item) {
  const Value& role = member(item, "role");
  std::string word = role.string_or_empty();
  if (word == "developer") word = "system";
  if (word != "user" && word != "assistant" && word != "system") {
    return bad_part("role",
                    fmt::format("is \"{}\"; it must be one of user, assistant, system, developer", word.substr(0, 64)));
  }
  Result<Value> content = read_content(member(item, "content"), "content");
  if (!content.ok()) return content;
  return message_value(word, *std::move(content));
}

// The call as chat's tool_calls have it, under the model's name for the tool.
Result<Value> read_call(const Value& item, bool custom) {
  const Value& name = member(item, "name");
  if (!name.is_string()) return bad_part("name", "must be a string");
  const Value& written = member(item, custom ? "input" : "arguments");
  if (!written.is_string()) return bad_part(custom ? "input" : "arguments", "must be a string");
  Value arguments = written;
  if (custom) {
    arguments = dict_value({{"input", written}});
  } else {
    const std::string json = written.string_or_empty();
    Result<Value> parsed =
        json.empty() ? Result<Value>(dict_value({})) : value_from_json(json, Origin::kMessage, kMostArgumentValues);
    if (parsed.ok() && parsed->is_dict()) arguments = *std::move(parsed);
  }
  const Value& name_space = member(item, "namespace");
  const Value model_name =
      name_space.is_string()
          ? text_value(ResponseTools::model_name(name_space.string_or_empty(), name.string_or_empty()))
          : name;
  return dict_value({{"call", call_value(member(item, "call_id"), model_name, std::move(arguments))}});
}

Result<Value> read_output(const Value& item) {
  const Value& id = member(item, "call_id");
  if (!id.is_string()) return bad_part("call_id", "must be a string");
  Result<Value> content = read_content(member(item, "output"), "output");
  if (!content.ok()) return content;
  return dict_value({{"role", text_value("tool")}, {"tool_call_id", id}, {"content", *std::move(content)}});
}

Result<Value> read_reasoning(const Value& item) {
  const Value& content = member(item, "content");
  const bool has_content = content.is_list() && !content.as_list().items.empty();
  Result<Value> text =
      read_content(has_content ? content : member(item, "summary"), has_content ? "content" : "summary");
  if (!text.ok()) return text;
  if (!text->is_list()) return dict_value({{"reasoning", *std::move(text)}});
  MarkedText joined;
  for (const Value& part : text->as_list().items) {
    if (!joined.empty()) joined.append(MarkedText("\n\n", Origin::kMessage));
    joined.append(member(part, "text").as_text());
  }
  return dict_value({{"reasoning", Value::string(std::move(joined))}});
}

// A chat message; {"call": ...} or {"reasoning": ...}, which become part of one; or {} for what the model need not see.
Result<Value> translate_item(const Value& item) {
  const Value& type = member(item, "type");
  const std::string kind = type.is_string() ? type.string_or_empty() : "message";
  if (kind == "message") return read_message(item);
  if (kind == "function_call") return read_call(item, false);
  if (kind == "custom_tool_call") return read_call(item, true);
  if (kind == "function_call_output" || kind == "custom_tool_call_output") return read_output(item);
  if (kind == "reasoning") return read_reasoning(item);
  // What OpenAI's servers did in an earlier life of the conversation: its results are in the texts.
  for (const std::string_view left_out :
       {"web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "tool_search_call",
        "tool_search_output", "compaction", "compaction_summary", "ghost_snapshot"}) {
    if (kind == left_out) return dict_value({});
  }
  if (kind == "item_reference") {
    return bad_part("type", "is 'item_reference', but this gateway does not store items; send the item itself");
  }
  return bad_part("type", fmt::format("is '{}', which is not supported by this server", kind.substr(0, 64)));
}

// Joins the assistant's items into messages.
class Turns {
 public:
  explicit Turns(Conversation& conversation) : conversation_(conversation) {}

  void add(const Value& item) {
    if (const Value* reasoning = item.find("reasoning")) {
      if (has_text_ || !calls_.empty()) flush();
      reasoning_ = *reasoning;
    } else if (const Value* call = item.find("call")) {
      calls_.push_back(*call);
    } else if (is_text(item.find("role"), "assistant")) {
      if (has_text_ || !calls_.empty()) flush();
      has_text_ = true;
      text_ = member(item, "content");
    } else if (item.find("role") != nullptr) {
      flush();
      conversation_.add_message(item);
    }
  }

  void flush() {
    if (!has_text_ && calls_.empty() && reasoning_.is_undefined()) return;
    Value content = has_text_ ? std::move(text_) : calls_.empty() ? text_value("") : Value::none();
    Value calls = calls_.empty() ? Value() : list_value(std::move(calls_));
    conversation_.add_message(dict_value({{"role", text_value("assistant")},
                                          {"content", std::move(content)},
                                          {"reasoning_content", std::move(reasoning_)},
                                          {"tool_calls", std::move(calls)}}));
    has_text_ = false;
    text_ = Value();
    reasoning_ = Value();
    calls_.clear();
  }

 private:
  Conversation& conversation_;
  bool has_text_ = false;
  Value text_;
  Value reasoning_;
  std::vector<Value> calls_;
};

Value custom_description(const Value& tool) {
  std::string text = member(tool, "description").string_or_empty();
  const Value& format = member(tool, "format");
  const Value& definition = member(format, "definition");
  if (definition.is_string()) {
    text += fmt::format("\n\n`input` must follow this {} grammar:\n{}", member(format, "syntax").string_or_empty(),
                        definition.string_or_empty());
  }
  return text_value(text);
}

// A list of {"tool": function, "name", "namespace", "custom"}; {"left_out": name} for what the model will not see.
Result<Value> translate_tool(const Value& tool) {
  const std::string kind = member(tool, "type").string_or_empty();
  const Value& name = member(tool, "name");
  if ((kind == "function" || kind == "custom" || kind == "namespace") && !name.is_string()) {
    return bad_part("name", "must be a string");
  }
  if (kind == "function") {
    return list_value(
        {dict_value({{"tool", tool_value(name, member(tool, "description"), member(tool, "parameters"))}})});
  }
  if (kind == "custom") {
    Value input = dict_value({{"type", text_value("string")}, {"description", text_value("The tool's whole input")}});
    Value schema = dict_value({{"type", text_value("object")},
                               {"properties", dict_value({{"input", std::move(input)}})},
                               {"required", list_value({text_value("input")})}});
    return list_value({dict_value({{"tool", tool_value(name, custom_description(tool), std::move(schema))},
                                   {"name", name},
                                   {"custom", Value::boolean(true)}})});
  }
  if (kind == "namespace") {
    std::vector<Value> functions;
    const Value& inner = member(tool, "tools");
    if (!inner.is_list()) return bad_part("tools", "must be an array");
    for (const Value& function : inner.as_list().items) {
      const Value& inner_name = member(function, "name");
      if (!inner_name.is_string() || !is_text(&member(function, "type"), "function")) continue;
      const Value model_name =
          text_value(ResponseTools::model_name(name.string_or_empty(), inner_name.string_or_empty()));
      functions.push_back(
          dict_value({{"tool", tool_value(model_name, member(function, "description"), member(function, "parameters"))},
                      {"model_name", model_name},
                      {"name", inner_name},
                      {"namespace", name}}));
    }
    return list_value(std::move(functions));
  }
  return list_value({dict_value({{"left_out", name.is_string() ? name : text_value(kind)}})});
}

bool read_tools(const ResponsesRequest& request, MessageCache& cache, size_t& budget, Conversation& conversation,
                std::shared_ptr<const ResponseTools>& names, std::vector<std::string>& left_out, WireError& error) {
  auto known = std::make_shared<ResponseTools>();
  std::vector<Value> tools;
  for (size_t n = 0; n < request.tools.size(); ++n) {
    const Result<Value> entries = cache.read(request.tools[n], "responses tool", translate_tool, budget);
    if (!entries.ok()) return refuse_part(error, fmt::format("tools[{}]", n), entries.status());
    for (const Value& entry : entries->as_list().items) {
      if (const Value* name = entry.find("left_out")) {
        left_out.push_back(name->string_or_empty());
        continue;
      }
      tools.push_back(member(entry, "tool"));
      if (const Value* name = entry.find("name")) {
        const Value* model_name = entry.find("model_name");
        known->add((model_name != nullptr ? model_name : name)->string_or_empty(),
                   {.name = name->string_or_empty(),
                    .name_space = member(entry, "namespace").string_or_empty(),
                    .custom = entry.find("custom") != nullptr});
      }
    }
  }
  if (!tools.empty()) conversation.tools = list_value(std::move(tools));
  names = std::move(known);
  return true;
}

}  // namespace

bool read_responses(const ResponsesRequest& request, MessageCache& cache, Conversation& conversation,
                    std::shared_ptr<const ResponseTools>& tools, std::vector<std::string>& left_out, WireError& error) {
  size_t json_bytes = 0;
  for (const std::string_view item : request.input) json_bytes += item.size();
  for (const std::string_view tool : request.tools) json_bytes += tool.size();
  size_t budget = MessageCache::budget_for(json_bytes);
  if (!request.instructions.empty()) conversation.add_message("system", request.instructions);
  if (request.has_input_text) conversation.add_message("user", request.input_text);
  Turns turns(conversation);
  for (size_t n = 0; n < request.input.size(); ++n) {
    const Result<Value> item = cache.read(request.input[n], "responses item", translate_item, budget);
    if (!item.ok()) return refuse_part(error, fmt::format("input[{}]", n), item.status());
    turns.add(*item);
  }
  turns.flush();
  if (!request.effort.empty()) conversation.kwargs = dict_value({{"reasoning_effort", text_value(request.effort)}});
  return read_tools(request, cache, budget, conversation, tools, left_out, error);
}

}  // namespace warmpath
