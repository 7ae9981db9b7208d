// PreparedRequest: a request body taken as far as it goes without a replica: parsed, checked, rendered, tokenized, and
// hashed into block identities (the steps adapt, render and tokenize).
// Thread safety: prepare() may run on any thread; it takes milliseconds for a huge prompt nobody has sent before.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash128.h"
#include "router/fleet.h"
#include "router/wire/generation_options.h"
#include "router/wire/response_tools.h"
#include "router/wire/wire_error.h"
#include "text/answer/answer_parser.h"
#include "text/stop_matcher.h"

namespace warmpath {

enum class Wire : uint8_t { kChat, kCompletions, kMessages, kResponses };
std::string_view wire_name(Wire wire);
std::string_view prompt_field(Wire wire);  // the body's field that holds the prompt

struct PreparedPrompt {
  std::vector<TokenId> tokens;  // never empty
  std::vector<Hash128> chain;   // identities of its whole blocks
  int32_t max_tokens = 0;       // that fit behind it
  int64_t base_tokens = 0;      // system prompt and tools; 0 when unknown
};

struct PreparedRequest {
  Wire wire = Wire::kChat;
  GenerationOptions options;
  std::string asked_model;  // as the client wrote it, or the default model's name
  std::shared_ptr<ServedModel> model;
  std::shared_ptr<const ModelIdentity> identity;
  std::shared_ptr<const StopStrings> stops;
  std::shared_ptr<const AnswerMarkers> markers;  // null: the answer is text and nothing else
  AnswerParser::Options parser_options;
  Grammar grammar;  // what the answers must look like; empty: anything
  std::string salt;
  std::vector<PreparedPrompt> prompts;
  std::shared_ptr<const ResponseTools> response_tools;  // of the responses wire
  std::vector<std::string> left_out;  // names of tools that the model does not see, because servers elsewhere run them
  bool default_tools = false;         // tools were written by the gateway's own rendering, not by the model's template

  size_t choices() const { return prompts.size() * static_cast<size_t>(options.sampling.n); }
};

// `body` is followed by at least 64 readable bytes. `tenant_salt` is the tenant's; the request's cache_salt is added.
bool prepare(Wire wire, std::string_view body, std::string_view tenant_salt, const Fleet& fleet,
             PreparedRequest& prepared, WireError& error);

// Only the tokens: of a body that has `messages` as on the chat wire, or a `prompt` as on the completions wire.
bool encode_prompt(std::string_view body, const Fleet& fleet, PreparedRequest& prepared, WireError& error);

// How many tokens the prompt of a messages body has: as prepare() makes it, and without its limits.
bool count_prompt_tokens(std::string_view body, const Fleet& fleet, int64_t& tokens, WireError& error);

}  // namespace warmpath
