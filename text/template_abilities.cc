#include "text/template_abilities.h"

#include "base/check.h"
#include "text/json_value.h"

namespace warmpath {
namespace {

// Words that no template writes by itself.
constexpr std::string_view kUser = R"({"role": "user", "content": "qkuser"})";
constexpr std::string_view kTools =
    R"([{"type": "function", "function": {"name": "qktool", "description": "qkwhat", "parameters":
        {"type": "object", "properties": {"qkarg": {"type": "string", "description": "d"}}, "required": ["qkarg"]}}}])";

Value probe_value(std::string_view json) {
  Result<Value> value = value_from_json(json);
  WARMPATH_CHECK(value.ok(), "a probe is not JSON");
  return *std::move(value);
}

class Prober {
 public:
  explicit Prober(const ChatTemplate& chat_template) : template_(chat_template) {}

  // The prompt for these messages; "" when the template refuses them.
  std::string render(std::string_view messages, bool with_tools = false, std::string_view kwargs = "{}",
                     bool generation_prompt = true) const {
    Conversation conversation;
    conversation.messages = probe_value(messages);
    if (with_tools) conversation.tools = probe_value(kTools);
    conversation.kwargs = probe_value(kwargs);
    conversation.add_generation_prompt = generation_prompt;
    const Result<MarkedText> text = template_.render(conversation);
    return text.ok() ? text->to_string() : std::string();
  }

 private:
  const ChatTemplate& template_;
};

bool holds(const std::string& text, std::string_view word) { return text.find(word) != std::string::npos; }

// A call and its result, with `content` as the caller's content.
std::string call_messages(std::string_view content) {
  return "[" + std::string(kUser) + R"(, {"role": "assistant", "content": )" + std::string(content) +
         R"(, "tool_calls": [{"id": "qkcall001", "type": "function", "function": {"name": "qktool", "arguments":
             {"qkarg": "qkvalue"}}}]}, {"role": "tool", "tool_call_id": "qkcall001", "name": "qktool",
             "content": "qkresult"}])";
}

}  // namespace

TemplateAbilities probe_abilities(const ChatTemplate& chat_template) {
  const Prober prober(chat_template);
  const std::string user = "[" + std::string(kUser) + "]";
  const std::string plain = prober.render(user);
  TemplateAbilities abilities;
  abilities.system_role =
      holds(prober.render(R"([{"role": "system", "content": "qksystem"}, )" + std::string(kUser) + "]"), "qksystem");
  abilities.tools = holds(prober.render(user, true), "qktool");
  const std::string with_call = prober.render(call_messages(R"("qksaid")"), true);
  abilities.tool_calls = holds(with_call, "qkvalue");
  abilities.tool_results = holds(with_call, "qkresult");
  const std::string null_call = prober.render(call_messages("null"), true);
  abilities.null_content = holds(null_call, "qkresult") && !holds(null_call, "None") && !holds(null_call, "null");
  const std::string parts = prober.render(R"([{"role": "user", "content": [{"type": "text", "text": "qkpart"}]}])");
  abilities.content_parts = holds(parts, "qkpart") && !holds(parts, "'qkpart'") && !holds(parts, "\"qkpart\"");
  const std::string thought = prober.render(
      R"([{"role": "user", "content": "u"}, {"role": "assistant", "content": "a", "reasoning_content": "qkthought",
          "tool_calls": [{"id": "qkcall001", "type": "function", "function": {"name": "qktool", "arguments": {}}}]},
          {"role": "tool", "tool_call_id": "qkcall001", "name": "qktool", "content": "r"}])",
      true);
  abilities.reasoning = holds(thought, "qkthought") || prober.render(user, false, R"({"enable_thinking": true})") !=
                                                           prober.render(user, false, R"({"enable_thinking": false})");
  const std::string two = prober.render(R"([{"role": "system", "content": "qkfirst"}, {"role": "system", "content":
      "qksecond"}, )" + std::string(kUser) +
                                        "]");
  abilities.several_systems = holds(two, "qkfirst") && holds(two, "qksecond");
  abilities.late_system =
      holds(prober.render("[" + std::string(kUser) + R"(, {"role": "assistant", "content": "a"}, )" +
                          std::string(kUser) + R"(, {"role": "system", "content": "qklate"}])"),
            "qklate");
  const std::string again =
      prober.render(R"([{"role": "user", "content": "qkone"}, {"role": "user", "content": "qktwo"},
      {"role": "assistant", "content": "qkthree"}, {"role": "assistant", "content": "qkfour"}, )" +
                    std::string(kUser) + "]");
  abilities.repeated_roles =
      holds(again, "qkone") && holds(again, "qktwo") && holds(again, "qkthree") && holds(again, "qkfour");
  abilities.generation_prompt = !plain.empty() && plain != prober.render(user, false, "{}", false);
  return abilities;
}

}  // namespace warmpath
