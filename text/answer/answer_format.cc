#include "text/answer/answer_format.h"

#include <initializer_list>

namespace warmpath {

AnswerFormat detect_answer_format(std::string_view template_source) {
  const auto holds = [&](std::string_view marker) { return template_source.find(marker) != std::string_view::npos; };
  AnswerFormat format{CallFormat::kTagged, ReasoningFormat::kNone};
  if (holds("<|channel|>") && holds("<|message|>")) {
    format.calls = CallFormat::kHarmony;
  } else if (holds("<|tool_call_begin|>")) {
    format.calls = CallFormat::kKimi;
  } else if (holds("<｜tool▁call▁begin｜>")) {
    format.calls = CallFormat::kDeepSeek;
  } else if (holds("[TOOL_CALLS]")) {
    format.calls = CallFormat::kMistral;
  } else if (!holds("<tool_call>") && holds("<|start_header_id|>") &&
             (holds("<|python_tag|>") || holds("parameters"))) {
    format.calls = CallFormat::kLlama3;
  }
  if (format.calls == CallFormat::kTagged && holds("<arg_key>")) {
    format.arguments = ArgumentFormat::kPairs;
  } else if (format.calls == CallFormat::kTagged && holds("<parameter=")) {
    format.arguments = ArgumentFormat::kParameters;
  } else if (format.calls == CallFormat::kDeepSeek && holds("```json")) {
    format.arguments = ArgumentFormat::kFenced;
  }
  if (holds("<think>") || holds("</think>")) {
    format.reasoning = ReasoningFormat::kThink;
  } else if (holds("[THINK]")) {
    format.reasoning = ReasoningFormat::kBracket;
  }
  return format;
}

}  // namespace warmpath
