#include "text/answer/marker.h"

namespace warmpath {

AnswerMarkers::AnswerMarkers(AnswerFormat format, const Tokenizer* tokenizer) : format_(format) {
  spell_all();
  tokens_.fill(-1);
  for (size_t index = 0; index < kMarkers; ++index) {
    const std::string_view spelling = spellings_[index];
    if (spelling.empty()) continue;
    if (tokenizer != nullptr) {
      if (const auto token = tokenizer->special_token(spelling)) {
        tokens_[index] = *token;
        continue;
      }
    }
    starts_[static_cast<uint8_t>(spelling[0])] = true;
  }
}

void AnswerMarkers::spell_all() {
  if (format_.reasoning == ReasoningFormat::kThink) {
    spell(Marker::kThinkBegin, "<think>");
    spell(Marker::kThinkEnd, "</think>");
  } else if (format_.reasoning == ReasoningFormat::kBracket) {
    spell(Marker::kThinkBegin, "[THINK]");
    spell(Marker::kThinkEnd, "[/THINK]");
  }
  switch (format_.calls) {
    case CallFormat::kNone:
      break;
    case CallFormat::kTagged:
      spell(Marker::kCallBegin, "<tool_call>");
      spell(Marker::kCallEnd, "</tool_call>");
      spell(Marker::kFunctionBegin, "<function=");
      spell(Marker::kFunctionEnd, "</function>");
      spell(Marker::kParameterBegin, "<parameter=");
      spell(Marker::kParameterEnd, "</parameter>");
      spell(Marker::kKeyBegin, "<arg_key>");
      spell(Marker::kKeyEnd, "</arg_key>");
      spell(Marker::kValueBegin, "<arg_value>");
      spell(Marker::kValueEnd, "</arg_value>");
      break;
    case CallFormat::kLlama3:
      spell(Marker::kCallBegin, "<|python_tag|>");
      break;
    case CallFormat::kMistral:
      spell(Marker::kCallBegin, "[TOOL_CALLS]");
      spell(Marker::kCallId, "[CALL_ID]");
      spell(Marker::kArguments, "[ARGS]");
      break;
    case CallFormat::kDeepSeek:
      spell(Marker::kCallsBegin, "<｜tool▁calls▁begin｜>");
      spell(Marker::kCallsEnd, "<｜tool▁calls▁end｜>");
      spell(Marker::kCallBegin, "<｜tool▁call▁begin｜>");
      spell(Marker::kCallEnd, "<｜tool▁call▁end｜>");
      spell(Marker::kArguments, "<｜tool▁sep｜>");
      break;
    case CallFormat::kKimi:
      spell(Marker::kCallsBegin, "<|tool_calls_section_begin|>");
      spell(Marker::kCallsEnd, "<|tool_calls_section_end|>");
      spell(Marker::kCallBegin, "<|tool_call_begin|>");
      spell(Marker::kCallEnd, "<|tool_call_end|>");
      spell(Marker::kArguments, "<|tool_call_argument_begin|>");
      break;
    case CallFormat::kHarmony:
      spell(Marker::kStart, "<|start|>");
      spell(Marker::kChannel, "<|channel|>");
      spell(Marker::kConstrain, "<|constrain|>");
      spell(Marker::kMessage, "<|message|>");
      spell(Marker::kEnd, "<|end|>");
      spell(Marker::kCallEnd, "<|call|>");
      break;
  }
}

std::optional<Marker> AnswerMarkers::of_token(TokenId token) const {
  if (token < 0) return std::nullopt;
  for (size_t index = 0; index < kMarkers; ++index) {
    if (tokens_[index] == token) return static_cast<Marker>(index);
  }
  return std::nullopt;
}

MarkerScanner::Look MarkerScanner::look_at(std::string_view text, bool at_end) const {
  Look look;
  size_t longest = 0;
  for (size_t index = 0; index < kMarkers; ++index) {
    const std::string_view spelling = markers_.spellings_[index];
    if (spelling.empty() || markers_.tokens_[index] >= 0) continue;
    if (text.starts_with(spelling)) {
      if (spelling.size() > longest) look.marker = static_cast<Marker>(index);
      longest = std::max(longest, spelling.size());
    } else if (!at_end && spelling.starts_with(text)) {
      look.open = true;
    }
  }
  return look;
}

}  // namespace warmpath
