// GoldenFile: tests/reference/golden.bin, what an independent forward pass makes of nine prompts. For tests.
// Thread safety: a value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/token.h"

namespace warmpath {

struct GoldenPosition {
  float actual_log_prob = 0;         // of the next token of the prompt; NaN for the last
  float tail = 0;                    // probability of all tokens but the top ones
  std::vector<TokenId> top;          // likeliest first
  std::vector<float> top_log_probs;  // natural logarithm
};

struct GoldenPrompt {
  std::string name;
  std::vector<TokenId> tokens;
  size_t first = 0;
  std::vector<GoldenPosition> positions;  // one per token from `first` on: what follows it
  std::vector<TokenId> continuation;      // greedy
  std::vector<float> gaps;                // log-prob of each of them above the runner-up's
};

struct GoldenFile {
  std::string model_sha256;  // hexadecimal
  std::vector<GoldenPrompt> prompts;
};

Result<GoldenFile> read_golden_file(const std::string& path);

}  // namespace warmpath
