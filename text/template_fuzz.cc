// Any bytes as a template: compiling and rendering ends in a text or a Status, within its limits.
#include <cstddef>
#include <cstdint>
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
          [{"id": "1", "function": {"name": "f", "arguments": {"a": [1, 2.5, null]}}}]}],
          "tools": [{"type": "function", "function": {"name": "f"}}], "kwargs": {"xs": [3, 1, 2], "n": 7}})");
  if (conversation.ok()) (void)(*compiled)->render(*conversation);
  return 0;
}
