// parse_responses(): the fields of the body.
#include "router/wire/responses.h"

#include <fmt/format.h>

#include <algorithm>

#include "router/wire/json_reader.h"

namespace warmpath {

namespace {

constexpr size_t kMaxTools = 4096;

// Fields that mean the same here and on the chat wire.
constexpr std::string_view kShared[] = {"model", "stream",     "temperature",      "top_p", "top_k",
                                        "min_p", "cache_salt", "prompt_cache_key", "seed"};

// Fields of this wire that would change the answer and are not built.
struct Refused {
  std::string_view name;
  std::string_view why;
};
constexpr Refused kRefused[] = {
    {"previous_response_id", "this gateway does not store responses; send the whole input with every request"},
    {"conversation", "this gateway does not store conversations; send the whole input with every request"},
    {"prompt", "stored prompts are not kept here; send the text"},
    {"background", "an answer is only sent to the client that waits for it"},
    {"top_logprobs", ""},
};

struct Pending {
  bool has_input = false;
};

bool read_text_settings(const JsonField& field, ResponsesRequest& request) {
  return field.members([&](std::string_view key, JsonValue& value) {
    if (key != "format") return true;
    const JsonField format{value, "text.format", field.failure};
    JsonType type{};
    if (!format.type(type)) return false;
    return type == JsonType::null || read_response_format(format, request.options.rules);
  });
}

bool read_reasoning(const JsonField& field, ResponsesRequest& request) {
  return field.members([&](std::string_view key, JsonValue& value) {
    if (key != "effort") return true;
    const JsonField effort{value, "reasoning.effort", field.failure};
    JsonType type{};
    if (!effort.type(type)) return false;
    return type == JsonType::null || effort.text(request.effort);
  });
}

bool read_input(const JsonField& field, ResponsesRequest& request, Pending& pending) {
  pending.has_input = true;
  JsonType type{};
  if (!field.type(type)) return false;
  if (type == JsonType::string) {
    request.has_input_text = true;
    return field.text(request.input_text);
  }
  if (type != JsonType::array) return field.refuse("must be a string or an array of items");
  return field.objects(SIZE_MAX, request.input);
}

bool read_field(const JsonField& field, ResponsesRequest& request, Pending& pending) {
  const std::string_view name = field.name;
  if (name == "input") return read_input(field, request, pending);
  if (name == "tools") return field.objects(kMaxTools, request.tools);
  if (name == "instructions") return field.text(request.instructions);
  if (name == "tool_choice") return read_tool_choice(field, request.options.rules);
  if (name == "text") return read_text_settings(field, request);
  if (name == "parallel_tool_calls") return field.boolean(request.options.rules.parallel);
  if (name == "reasoning") return read_reasoning(field, request);
  if (name == "max_output_tokens") {
    int64_t number = 0;
    if (!field.integer(1, INT32_MAX, number)) return false;
    request.options.sampling.max_tokens = static_cast<int32_t>(number);
    return true;
  }
  if (std::find(std::begin(kShared), std::end(kShared), name) != std::end(kShared)) {
    return read_shared_field(field, request.options) != FieldOutcome::kRefused;
  }
  for (const Refused& refused : kRefused) {
    if (name == refused.name) return read_neutral(field, 0, refused.why);
  }
  return true;  // store, include, metadata, client_metadata, ...: nothing that changes the answer
}

}  // namespace

bool parse_responses(std::string_view body, ResponsesRequest& request, WireError& error) {
  Pending pending;
  if (!parse_body(body, error, [&](const JsonField& field) { return read_field(field, request, pending); })) {
    return false;
  }
  if (!pending.has_input) {
    error = bad_request("input", "'input' is required");
    error.code = "missing_required_parameter";
    return false;
  }
  if (!request.has_input_text && request.input.empty()) {
    error = bad_request("input", "'input' must hold at least one item");
    return false;
  }
  request.options.include_usage = true;
  if (request.options.rules.calls == OutputRules::Calls::kNone) request.tools.clear();
  return true;
}

}  // namespace warmpath
