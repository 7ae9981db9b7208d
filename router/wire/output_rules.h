// OutputRules: what a request demands of the shape of its answer: calls of tools, a JSON schema, a pattern.
//
//   tool_choice          "auto", "none", "required", a tool's name, a list of allowed tools (with mode "required");
//                        Anthropic's {"type": "auto" | "any" | "tool" | "none", "disable_parallel_tool_use"}
//   response_format      {"type": "text" | "json_object" | "json_schema", "json_schema": {"schema": {...}}};
//   text.format
//                        and output_config.format as their wires have them; vLLM also knows "regex" and "ebnf" types
//   structured_outputs,  vLLM's: json, regex, choice, grammar, json_object; the same as guided_json, guided_regex,
//   guided_*             guided_choice, guided_grammar; llama.cpp's json_schema and grammar
// Thread safety: values and pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "proto/grammar.h"

namespace warmpath {

struct JsonField;

struct OutputRules {
  enum class Calls : uint8_t { kAllowed, kNone, kRequired };

  Calls calls = Calls::kAllowed;
  std::vector<std::string> only;  // with kRequired: the tools that may be called, as the client names them; empty: any
  bool parallel = true;
  Grammar format;            // of an answer that is no call; empty: text
  std::string format_param;  // the field that asked for it
};

// Fields of that name; false after filling the error.
bool read_tool_choice(const JsonField& field, OutputRules& rules);
bool read_anthropic_tool_choice(const JsonField& field, OutputRules& rules);
bool read_response_format(const JsonField& field, OutputRules& rules);     // also text.format and output_config.format
bool read_structured_outputs(const JsonField& field, OutputRules& rules);  // an object
// guided_json and the like: false as well where `field` is none of them; `known` says so.
bool read_guided(const JsonField& field, OutputRules& rules, bool& known);

}  // namespace warmpath
