// Conversation: what a chat request asks to be rendered, whatever wire it came over. Messages are dicts in the shape of
// OpenAI's chat completions ({"role", "content": string | parts | null, "name", "tool_calls", "tool_call_id",
// "reasoning_content", ...}); fields that nobody here knows stay in them, because a template may.
// Thread safety: a value; its messages and tools are frozen once read from JSON and may be shared between threads.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "text/value.h"

namespace warmpath {

struct Conversation {
  Value messages = Value::list({});      // list of dicts
  Value tools = Value::none();           // none, or a list of dicts as clients send them ({"type": "function", ...})
  Value kwargs = Value::dict();          // more template variables (`chat_template_kwargs`)
  bool add_generation_prompt = true;     // end with the header of the assistant's answer
  std::optional<std::string> bos_token;  // unset: the model's own
  std::optional<std::string> eos_token;  // unset: the model's own
  std::optional<std::chrono::sys_seconds> now;  // civil time for strftime_now; unset: this machine's local time

  // Appends one message that may be changed no more. Usable only on lists not yet shared.
  void add_message(std::string_view role, std::string_view content);
  void add_message(Value message);
};

// {"messages": [...], "tools": [...]?, "add_generation_prompt": bool?, "kwargs": {...}?, "bos_token": str?,
//  "eos_token": str?, "now": "YYYY-MM-DDTHH:MM:SS"?}; other keys are refused by name.
Result<Conversation> conversation_from_json(std::string_view json);

// Chat clients send tool-call arguments as a string of JSON, and most templates want the object. Returns `message`, or
// a copy in which every tool_calls[].function.arguments string that holds a JSON object is that object; a string that
// does not parse stays a string.
Value with_parsed_tool_arguments(const Value& message);

}  // namespace warmpath
