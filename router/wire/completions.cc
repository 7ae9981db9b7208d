#include "router/wire/completions.h"

#include <fmt/format.h>

#include "router/wire/json_reader.h"

namespace warmpath {

namespace {

bool read_token(const JsonField& field, CompletionPrompt& prompt) {
  int64_t token = 0;
  if (!field.integer(0, INT32_MAX, token)) return false;
  prompt.tokens.push_back(static_cast<TokenId>(token));
  return true;
}

// A string; a list of strings; a list of ids; or a list of lists of ids. Lists do not mix.
bool read_prompts(const JsonField& field, std::vector<CompletionPrompt>& prompts) {
  constexpr std::string_view kShape =
      "must be a string, an array of strings, an array of token ids, or an array of those";
  prompts.clear();
  JsonType type{};
  if (!field.type(type)) return false;
  if (type == JsonType::string) return field.text(prompts.emplace_back().text);
  if (type != JsonType::array) return field.refuse(kShape);
  JsonType first{};
  const bool read = field.elements([&](JsonValue& value, size_t position) {
    const JsonField item = field.item(value);
    JsonType item_type{};
    if (!item.type(item_type)) return false;
    if (position == 0) {
      first = item_type;
      if (first == JsonType::number) prompts.emplace_back().is_tokens = true;
    }
    if (item_type != first) return field.refuse(kShape);
    if (first == JsonType::number) return read_token(item, prompts.back());
    if (prompts.size() == kMaxPrompts) return field.refuse(fmt::format("has more than {} prompts", kMaxPrompts));
    if (first == JsonType::string) return item.text(prompts.emplace_back().text);
    if (first != JsonType::array) return field.refuse(kShape);
    prompts.emplace_back().is_tokens = true;
    return item.elements([&](JsonValue& id, size_t) { return read_token(field.item(id), prompts.back()); });
  });
  if (!read) return false;
  return !prompts.empty() || field.refuse("must hold at least one prompt");
}

bool read_completion_field(const JsonField& field, CompletionRequest& request) {
  if (field.name == "prompt") return read_prompts(field, request.prompts);
  switch (read_shared_field(field, request.options)) {
    case FieldOutcome::kRead:
      return true;
    case FieldOutcome::kRefused:
      return false;
    case FieldOutcome::kUnknown:
      break;
  }
  int64_t number = 0;
  if (field.name == "max_tokens") {
    if (!field.integer(1, INT32_MAX, number)) return false;
    request.options.sampling.max_tokens = static_cast<int32_t>(number);
    return true;
  }
  if (field.name == "logprobs") {
    if (!field.integer(0, kMaxTopLogprobs, number)) return false;
    request.options.sampling.top_logprobs = static_cast<int32_t>(number);
    return true;
  }
  if (field.name == "echo") return read_neutral(field, {}, "the prompt is not repeated in the answer");
  if (field.name == "suffix") return read_neutral(field, {}, "this model does not fill in the middle");
  if (field.name == "prompt_embeds") return read_neutral(field, {}, "");
  return true;  // nobody's field, or one that cannot change the answer
}

}  // namespace

bool parse_completion(std::string_view body, CompletionRequest& request, WireError& error) {
  request.options.sampling.max_tokens = kDefaultCompletionTokens;
  const bool parsed =
      parse_body(body, error, [&](const JsonField& field) { return read_completion_field(field, request); });
  if (!parsed) return false;
  if (request.prompts.empty()) {
    error = bad_request("prompt", "'prompt' is required");
    error.code = "missing_required_parameter";
    return false;
  }
  for (const CompletionPrompt& prompt : request.prompts) {
    if (prompt.is_tokens && prompt.tokens.empty()) {
      error = bad_request("prompt", "'prompt' holds an empty list of token ids");
      return false;
    }
  }
  return true;
}

}  // namespace warmpath
