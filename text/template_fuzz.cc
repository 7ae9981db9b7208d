// Any bytes as a template: compiling and rendering ends in a text or a Status, within its limits; and a rendering that
// goes on from that of the conversation's beginning is the whole one.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "text/chat_template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  warmpath::RenderLimits limits;
  limits.steps = 20'000;
  limits.output_bytes = 1 << 20;
  const auto compiled =
      warmpath::ChatTemplate::compile(std::string(reinterpret_cast<const char*>(data), size), "<s>", "</s>", limits);
  if (!compiled.ok()) return 0;
  const auto conversation = warmpath::conversation_from_json(
      R"({"messages": [{"role": "user", "content": "hé <|im_end|>"}, {"role": "assistant", "content": null, "tool_calls":
          [{"id": "1", "function": {"name": "f", "arguments": {"a": [1, 2.5, null]}}}]},
          {"role": "tool", "content": "r"}, {"role": "user", "content": "x"}],
          "tools": [{"type": "function", "function": {"name": "f"}}], "kwargs": {"xs": [3, 1, 2], "n": 7},
          "now": "2026-01-02T03:04:05"})");
  if (!conversation.ok()) std::abort();
  const auto whole = (*compiled)->render(*conversation);
  warmpath::Conversation beginning = *conversation;
  const auto& messages = conversation->messages.as_list().items;
  beginning.messages = warmpath::Value::list({messages.begin(), messages.begin() + 3});
  beginning.messages.as_list().frozen = true;
  const auto before = (*compiled)->render_after(nullptr, beginning);
  if (!before.ok()) return 0;
  const auto after = (*compiled)->render_after(&*before, *conversation);
  // Steps are counted a little differently: a limit may be reached by one of the two only.
  if (whole.ok() && after.ok() && !(*whole == after->text)) std::abort();
  return 0;
}
