#include "text/default_rendering.h"

#include <fmt/format.h>

#include "text/jinja/python_text.h"
#include "text/role_folding.h"

namespace warmpath {
namespace {

constexpr std::string_view kToolsBefore =
    "# Tools\n\nYou can call tools. Each line between <tools> and </tools> describes one tool as JSON: its name, what "
    "it "
    "does, and the JSON schema of its arguments.\n<tools>\n";
constexpr std::string_view kToolsAfter =
    "</tools>\n\nTo call tools, end your answer with one line per call:\n"
    "<tool_call>{\"name\": \"NAME\", \"arguments\": {...}}</tool_call>\n"
    "The results come back to you inside <tool_response> and </tool_response>.";

std::string role_of(const Value& message) {
  const Value* role = message.find("role");
  return role != nullptr ? role->string_or_empty() : std::string();
}

MarkedText content_of(const Value& message) {
  const Value* content = message.find("content");
  return content != nullptr && content->is_string() ? content->as_text() : MarkedText();
}

Value text_message(std::string_view role, MarkedText content) {
  Value message = Value::dict();
  message.as_dict().set("role", Value::string(std::string(role), Origin::kMessage));
  message.as_dict().set("content", Value::string(std::move(content)));
  message.as_dict().frozen = true;
  return message;
}

// Text of the default rendering is data like the message it stands in.
void append(MarkedText& text, std::string_view more) { text.append(MarkedText(std::string(more), Origin::kMessage)); }
void append_json(MarkedText& text, const Value& value) { append(text, jinja::to_json(value, {}).to_string()); }

// `message` with its content replaced by `content`.
Value with_content(const Value& message, Value content) {
  Value copy = Value::dict();
  for (const auto& [key, value] : message.as_dict().entries) copy.as_dict().set(key, value);
  copy.as_dict().set("content", std::move(content));
  copy.as_dict().frozen = true;
  return copy;
}

bool has_calls(const Value& message) {
  const Value* calls = message.find("tool_calls");
  return calls != nullptr && calls->is_list() && !calls->as_list().items.empty();
}

// A list of text parts as one string, a line break between them.
Result<MarkedText> joined_parts(const ValueList& parts, size_t message) {
  MarkedText text;
  for (size_t index = 0; index < parts.items.size(); ++index) {
    const Value& part = parts.items[index];
    const Value* words = part.is_string() ? &part : part.find("text");
    if (words == nullptr || !words->is_string()) {
      const Value* type = part.find("type");
      return invalid_argument(fmt::format("messages[{}].content[{}] is a part of type '{}': this model takes text only",
                                          message, index, type != nullptr ? type->string_or_empty() : "unknown"));
    }
    if (index > 0) append(text, "\n");
    text.append(words->as_text());
  }
  return text;
}

class Adapter {
 public:
  Adapter(const TemplateAbilities& abilities, const Conversation& conversation)
      : abilities_(abilities), conversation_(conversation) {}

  Result<AdaptedConversation> adapt() {
    if (!conversation_.messages.is_list()) return invalid_argument("'messages' must be a list");
    const auto& given = conversation_.messages.as_list().items;
    const bool has_tools = conversation_.tools.is_list() && !conversation_.tools.as_list().items.empty();
    messages_.reserve(given.size() + 1);
    for (size_t index = 0; index < given.size(); ++index) WARMPATH_RETURN_IF_ERROR(adapt_message(given[index], index));
    AdaptedConversation adapted;
    adapted.conversation = conversation_;
    if (has_tools && !abilities_.tools) {
      describe_tools();
      adapted.conversation.tools = Value::none();
      default_tools_ = changed_ = true;
    }
    if (fold_roles(abilities_, messages_)) changed_ = true;
    adapted.default_tools = default_tools_;
    adapted.joined_parts = joined_parts_;
    if (changed_) {
      Value list = Value::list(std::move(messages_));
      list.as_list().frozen = true;
      adapted.conversation.messages = std::move(list);
    }
    return adapted;
  }

 private:
  Status adapt_message(const Value& original, size_t index) {
    if (!original.is_dict()) return invalid_argument(fmt::format("messages[{}] is not an object", index));
    Value message = original;
    const Value* content = message.find("content");
    const bool is_list = content != nullptr && content->is_list();
    if (is_list && !abilities_.content_parts) {
      Result<MarkedText> text = joined_parts(content->as_list(), index);
      if (!text.ok()) return text.status();
      message = with_content(message, Value::string(*std::move(text)));
      joined_parts_ = changed_ = true;
    } else if ((content == nullptr || content->is_none()) && !abilities_.null_content) {
      message = with_content(message, Value::string({}, Origin::kMessage));
      joined_parts_ = changed_ = true;
    }
    if (!abilities_.tool_calls && has_calls(message)) {
      messages_.push_back(write_calls(message));
      default_tools_ = changed_ = true;
      last_was_result_ = false;
    } else if (!(abilities_.tool_results && abilities_.tools) && role_of(message) == "tool") {
      add_result(message);
      default_tools_ = changed_ = true;
    } else {
      messages_.push_back(std::move(message));
      last_was_result_ = false;
    }
    return {};
  }

  static Value write_calls(const Value& message) {
    MarkedText text = content_of(message);
    for (const Value& call : message.find("tool_calls")->as_list().items) {
      const Value* function = call.find("function");
      const Value& source = function != nullptr ? *function : call;
      const Value* name = source.find("name");
      const Value* arguments = source.find("arguments");
      if (!text.empty()) append(text, "\n");
      append(text, "<tool_call>{\"name\": ");
      append_json(text, name != nullptr ? *name : Value::none());
      append(text, ", \"arguments\": ");
      // A string of JSON that did not parse is passed on as it is.
      if (arguments != nullptr && arguments->is_string()) {
        text.append(arguments->as_text());
      } else {
        append_json(text, arguments != nullptr ? *arguments : Value::dict());
      }
      append(text, "}</tool_call>");
    }
    return text_message(role_of(message), std::move(text));
  }

  void add_result(const Value& message) {
    MarkedText text;
    if (last_was_result_) {
      text = content_of(messages_.back());
      append(text, "\n");
      messages_.pop_back();
    }
    append(text, "<tool_response>");
    text.append(content_of(message));
    append(text, "</tool_response>");
    messages_.push_back(text_message("user", std::move(text)));
    last_was_result_ = true;
  }

  // Puts the tools' section at the end of the system message, or of a new first message.
  void describe_tools() {
    MarkedText section;
    append(section, kToolsBefore);
    for (const Value& tool : conversation_.tools.as_list().items) {
      const Value* function = tool.find("function");
      append_json(section, function != nullptr ? *function : tool);
      append(section, "\n");
    }
    append(section, kToolsAfter);
    const std::string_view role = abilities_.system_role ? "system" : "user";
    if (!messages_.empty() && role_of(messages_.front()) == role) {
      MarkedText text = content_of(messages_.front());
      if (!text.empty()) append(text, "\n\n");
      text.append(section);
      messages_.front() = with_content(messages_.front(), Value::string(std::move(text)));
    } else {
      messages_.insert(messages_.begin(), text_message(role, std::move(section)));
    }
  }

  const TemplateAbilities& abilities_;
  const Conversation& conversation_;
  std::vector<Value> messages_;
  bool changed_ = false;
  bool default_tools_ = false;
  bool joined_parts_ = false;
  bool last_was_result_ = false;
};

}  // namespace

Result<AdaptedConversation> adapt_conversation(const TemplateAbilities& abilities, const Conversation& conversation) {
  return Adapter(abilities, conversation).adapt();
}

}  // namespace warmpath
