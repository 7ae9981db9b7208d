#include "router/wire/chat.h"

#include <fmt/format.h>

#include <algorithm>

#include "router/wire/json_reader.h"

namespace warmpath {

namespace {

constexpr size_t kMaxTools = 4096;

// Fields of this wire that would change the answer and are not built.
struct Refused {
  std::string_view name;
  std::string_view why;
};
constexpr Refused kRefused[] = {
    {"functions", "use 'tools'"},
    {"function_call", "use 'tool_choice'"},
    {"audio", "this model writes text"},
    {"web_search_options", "there is no web search here"},
    {"continue_final_message", ""},
    {"documents", ""},
    {"echo", ""},
    {"guided_decoding_backend", ""},
};

// What decides the request but is only judged once the whole body has been read.
struct Pending {
  int64_t max_tokens = -1;
  int64_t max_completion_tokens = -1;
  bool logprobs = false;
  int64_t top_logprobs = -1;
  bool has_messages = false;
};

bool read_modalities(const JsonField& field) {
  return field.elements([&](JsonValue& value, size_t) {
    std::string_view word;
    if (!field.item(value).text(word)) return false;
    return word == "text" || field.refuse(unsupported("modalities", "this server answers with text only"));
  });
}

bool read_verbosity(const JsonField& field) {
  std::string_view word;
  if (!field.text(word)) return false;
  return word == "medium" || field.refuse(unsupported("verbosity", "'verbosity' is not supported by this server"));
}

bool read_chat_field(const JsonField& field, ChatRequest& request, Pending& pending) {
  const std::string_view name = field.name;
  if (name == "messages") {
    pending.has_messages = true;
    return field.objects(SIZE_MAX, request.messages);
  }
  if (name == "tools") return field.objects(kMaxTools, request.tools);
  switch (read_shared_field(field, request.options)) {
    case FieldOutcome::kRead:
      return true;
    case FieldOutcome::kRefused:
      return false;
    case FieldOutcome::kUnknown:
      break;
  }
  constexpr int64_t kMost = INT32_MAX;
  if (name == "max_tokens") return field.integer(1, kMost, pending.max_tokens);
  if (name == "max_completion_tokens") return field.integer(1, kMost, pending.max_completion_tokens);
  if (name == "logprobs") return field.boolean(pending.logprobs);
  if (name == "top_logprobs") return field.integer(0, kMaxTopLogprobs, pending.top_logprobs);
  if (name == "tool_choice") return read_tool_choice(field, request.options.rules);
  if (name == "parallel_tool_calls") return field.boolean(request.options.rules.parallel);
  if (name == "modalities") return read_modalities(field);
  if (name == "verbosity") return read_verbosity(field);
  if (name == "reasoning_effort") return field.text(request.reasoning_effort);
  if (name == "add_generation_prompt") return field.boolean(request.add_generation_prompt);
  if (name == "chat_template") return read_neutral(field, {}, "the model's own template is used");
  if (name == "chat_template_kwargs") {
    JsonType type{};
    if (!field.type(type)) return false;
    if (type != JsonType::object) return field.refuse("must be an object");
    return field.raw(request.template_kwargs);
  }
  for (const Refused& refused : kRefused) {
    if (name == refused.name) return read_neutral(field, {}, refused.why);
  }
  return true;  // nobody's field, or one that cannot change the answer
}

bool settle(ChatRequest& request, const Pending& pending, WireError& error) {
  if (!pending.has_messages) {
    error = bad_request("messages", "'messages' is required");
    error.code = "missing_required_parameter";
    return false;
  }
  if (request.messages.empty()) {
    error = bad_request("messages", "'messages' must hold at least one message");
    return false;
  }
  SamplingParams& sampling = request.options.sampling;
  const int64_t limit = pending.max_completion_tokens > 0 ? pending.max_completion_tokens : pending.max_tokens;
  sampling.max_tokens = static_cast<int32_t>(limit);
  if (pending.top_logprobs >= 0 && !pending.logprobs) {
    error = bad_request("top_logprobs", "'top_logprobs' needs 'logprobs': true");
    return false;
  }
  if (pending.logprobs) sampling.top_logprobs = static_cast<int32_t>(std::max<int64_t>(pending.top_logprobs, 0));
  if (request.options.rules.calls == OutputRules::Calls::kNone) request.tools.clear();
  return true;
}

}  // namespace

bool parse_chat(std::string_view body, ChatRequest& request, WireError& error) {
  Pending pending;
  return parse_body(body, error, [&](const JsonField& field) { return read_chat_field(field, request, pending); }) &&
         settle(request, pending, error);
}

}  // namespace warmpath
