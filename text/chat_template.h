// ChatTemplate: a model's Jinja chat template, compiled once, rendered per request, byte for byte as Hugging Face
// transformers renders it (trim_blocks, lstrip_blocks, its extra filters and globals, the `generation` tag).
//
// Templates come with model files and messages from anywhere, so rendering is bounded (RenderLimits) and every failure
// is a Status that names the template's line and column. Thread safety: immutable; any thread may render.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "text/conversation.h"
#include "text/jinja/limits.h"
#include "text/marked_text.h"

namespace warmpath {

// What a template can do, found by rendering small probes once at compile time.
struct TemplateAbilities {
  bool system_role = false;        // a system message reaches the prompt
  bool tools = false;              // a tool's definition reaches the prompt
  bool tool_calls = false;         // a past tool call (with parsed arguments) reaches the prompt
  bool tool_results = false;       // a `tool` message reaches the prompt
  bool content_parts = false;      // content may be a list of text parts
  bool null_content = false;       // an assistant message with tool calls may have null content
  bool reasoning = false;          // `enable_thinking` or `reasoning_content` changes the prompt
  bool several_systems = false;    // two leading system messages both reach the prompt
  bool late_system = false;        // so does a system message after the first turn
  bool repeated_roles = false;     // so do two messages of the user, or the assistant, in a row
  bool generation_prompt = false;  // add_generation_prompt adds the assistant's header
};

namespace jinja {
struct Recording;
class LoopRecorder;
}  // namespace jinja

// What a rendering leaves for the next one of the same conversation. Views the template: must not outlive it.
struct Rendering {
  MarkedText text;
  std::shared_ptr<const jinja::Recording> loops;
  size_t reused_messages = 0;  // rounds of the loops that write text, taken over from the rendering before
  size_t new_messages = 0;     // and run now

  size_t bytes() const;  // in memory, about
};

class ChatTemplate {
 public:
  // `bos_token` and `eos_token` are the model's own, used where a conversation names none.
  static Result<std::shared_ptr<const ChatTemplate>> compile(std::string source, std::string bos_token,
                                                             std::string eos_token, RenderLimits limits = {});
  ~ChatTemplate();

  // The conversation exactly as the template has it: no adaptation (see text/default_rendering.h for that). Parts of
  // the result that came from messages, tools and kwargs are marked Origin::kMessage.
  Result<MarkedText> render(const Conversation& conversation) const;

  // The same text, running only what differs from `before` (null: everything), an earlier rendering of this template:
  // of a conversation that goes on, the messages that it did not have. What may be taken over is proven from what each
  // round of the template's loops read (jinja/loop_record.h); a template whose every round depends on the last message
  // is run whole.
  Result<Rendering> render_after(const Rendering* before, const Conversation& conversation) const;

  const TemplateAbilities& abilities() const;
  const std::string& source() const;

 private:
  struct Impl;
  explicit ChatTemplate(std::unique_ptr<Impl> impl);
  MarkedText run(const Conversation& conversation, jinja::LoopRecorder* recorder) const;
  MarkedText run_once(const Conversation& conversation, jinja::LoopRecorder* recorder) const;
  std::unique_ptr<Impl> impl_;
};

}  // namespace warmpath
