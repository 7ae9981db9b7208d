// SamplingParams: how the next token is chosen. Field names and meanings are those of the OpenAI wire and of
// vLLM/llama.cpp. Thread safety: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/token.h"

namespace warmpath {

struct SamplingParams {
  float temperature = 1.0f;                           // 0 = greedy; [0, 2]
  int32_t top_k = 0;                                  // 0 = off
  float top_p = 1.0f;                                 // (0, 1]
  float min_p = 0.0f;                                 // [0, 1]
  float presence_penalty = 0.0f;                      // [-2, 2]; over generated tokens
  float frequency_penalty = 0.0f;                     // [-2, 2]; over generated tokens
  float repetition_penalty = 1.0f;                    // (0, 10]; over prompt and generated tokens
  std::vector<std::pair<TokenId, float>> logit_bias;  // added to the logits; values in [-100, 100]
  std::optional<uint64_t> seed;                       // absent = chosen by the engine
  int32_t n = 1;                                      // choices, [1, 128]
  int32_t max_tokens = -1;                            // -1 = as many as the context has room for
  int32_t min_tokens = 0;                             // stop tokens are not sampled before
  std::vector<std::string> stop;     // matched in the text of the output; the match is not part of the output
  std::vector<TokenId> stop_tokens;  // besides the model's own end tokens; the token is not part of the output text
  bool ignore_eos = false;
  int32_t top_logprobs = -1;  // -1 = no log-probs; 0 = the chosen token's; k = also the k likeliest, [0, 20]
};

inline constexpr int32_t kMaxChoices = 128;
inline constexpr int32_t kMaxTopLogprobs = 20;
inline constexpr size_t kMaxStopStrings = 16;
inline constexpr size_t kMaxStopStringBytes = 1024;
inline constexpr size_t kMaxLogitBias = 1024;

// Every range above; the message names the field, the value and the range. `vocabulary` bounds token ids.
Status validate(const SamplingParams& params, TokenId vocabulary);

}  // namespace warmpath
