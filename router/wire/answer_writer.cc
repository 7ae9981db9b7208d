#include "router/wire/answer_writer.h"

#include "router/wire/json_writer.h"

namespace warmpath {

void append_usage(std::string& out, const AnswerUsage& usage) {
  out += R"({"prompt_tokens":)";
  append_json_number(out, usage.prompt_tokens);
  out += R"(,"completion_tokens":)";
  append_json_number(out, usage.completion_tokens);
  out += R"(,"total_tokens":)";
  append_json_number(out, usage.prompt_tokens + usage.completion_tokens);
  out += R"(,"prompt_tokens_details":{"cached_tokens":)";
  append_json_number(out, usage.cached_tokens);
  out += R"(},"completion_tokens_details":{"reasoning_tokens":)";
  append_json_number(out, usage.reasoning_tokens);
  out += "}}";
}

std::string_view wire_finish_reason(const AnswerEnd& end) {
  if (end.reason != FinishReason::kStop) return "\"length\"";
  return end.called ? "\"tool_calls\"" : "\"stop\"";
}

std::string object_head(const AnswerHead& head, std::string_view object) {
  std::string out = R"({"id":)";
  append_json_string(out, head.id);
  out += R"(,"object":)";
  append_json_string(out, object);
  out += R"(,"created":)";
  append_json_number(out, head.created);
  out += R"(,"model":)";
  append_json_string(out, head.model);
  out += R"(,"system_fingerprint":)";
  append_json_string(out, head.fingerprint);
  return out;
}

}  // namespace warmpath
