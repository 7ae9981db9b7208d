// AnswerFormat: how a model writes calls of tools and its reasoning into an answer. Which one a model uses follows from
// its chat template, which writes past calls in the same way; the configuration may say otherwise.
//
//   tagged    <tool_call>{"name": "f", "arguments": {...}}</tool_call>                         Hermes, Qwen
//             <tool_call><function=f><parameter=p>text</parameter></function></tool_call>      Qwen3-Coder
//             <tool_call>f<arg_key>p</arg_key><arg_value>text</arg_value></tool_call>          GLM
//   llama3    {"name": "f", "parameters": {...}} as the whole answer, after <|python_tag|> or not; `;` between calls
//   mistral   [TOOL_CALLS][{"name": "f", "arguments": {...}, "id": "..."}], or [TOOL_CALLS]f[CALL_ID]id[ARGS]{...}
//   deepseek  <｜tool▁call▁begin｜>f<｜tool▁sep｜>{...}<｜tool▁call▁end｜>, or with `function` before and ```json after
//   the
//             separator, inside <｜tool▁calls▁begin｜>...<｜tool▁calls▁end｜>
//   kimi      <|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{...}<|tool_call_end|> inside a section
//   harmony   <|channel|>commentary to=functions.f<|constrain|>json<|message|>{...}<|call|>    gpt-oss
//
//   think     <think>...</think>; the prompt may have opened it
//   bracket   [THINK]...[/THINK]                                                               Mistral
//   (harmony writes its reasoning in a channel of its own: one format for both)
// Thread safety: values and pure functions.
#pragma once

#include <cstdint>
#include <string_view>

namespace warmpath {

enum class CallFormat : uint8_t { kNone, kTagged, kLlama3, kMistral, kDeepSeek, kKimi, kHarmony };
// How a model writes the arguments of a call, where its format has several ways.
enum class ArgumentFormat : uint8_t {
  kJson,
  kParameters,  // tagged: Qwen3-Coder's <parameter=p>
  kPairs,       // tagged: GLM's <arg_key>
  kFenced,      // deepseek: ```json
};
enum class ReasoningFormat : uint8_t { kNone, kThink, kBracket };

struct AnswerFormat {
  CallFormat calls = CallFormat::kTagged;
  ReasoningFormat reasoning = ReasoningFormat::kThink;
  ArgumentFormat arguments = ArgumentFormat::kJson;  // what is asked for; any is understood

  bool operator==(const AnswerFormat&) const = default;
};

// What the template's own markers say. Without any: `tagged`, which is also what the default rendering asks a model for
// (text/default_rendering.h), and no reasoning.
AnswerFormat detect_answer_format(std::string_view template_source);

}  // namespace warmpath
