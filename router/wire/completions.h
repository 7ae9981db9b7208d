// POST /v1/completions: the request body. A prompt is text or token ids; a list of prompts asks for n choices each, the
// choices of prompt p being numbered p*n ... p*n + n-1.
// Thread safety: pure functions; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/token.h"
#include "router/wire/generation_options.h"
#include "router/wire/wire_error.h"

namespace warmpath {

inline constexpr size_t kMaxPrompts = 256;
// What the OpenAI wire generates when max_tokens is absent.
inline constexpr int32_t kDefaultCompletionTokens = 16;

struct CompletionPrompt {
  std::string text;
  std::vector<TokenId> tokens;  // used when `is_tokens`
  bool is_tokens = false;
};

struct CompletionRequest {
  GenerationOptions options;
  std::vector<CompletionPrompt> prompts;  // at least one
};

// `body` is followed by at least 64 readable bytes.
bool parse_completion(std::string_view body, CompletionRequest& request, WireError& error);

}  // namespace warmpath
