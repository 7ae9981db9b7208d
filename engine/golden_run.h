// GoldenRun: a golden file's prompts on a back end, compared position by position. For tests.
// Thread safety: none.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/cpu_backend.h"
#include "engine/golden_file.h"

namespace warmpath {

// How far a back end's predictions are from the reference's, over all positions of all prompts.
struct GoldenDifference {
  double largest = 0;  // |log-prob difference| over the stored top tokens
  int64_t positions = 0;
  int64_t other_top = 0;        // another likeliest token
  int64_t other_clear_top = 0;  // the same where the reference's gap exceeds 2e-3
  double kl_sum = 0;            // KL(reference || engine), nats; the tail counts as one token
  double reference_nll = 0;     // of the prompts' own tokens
  double engine_nll = 0;
  int64_t predicted = 0;

  double mean_kl() const { return kl_sum / static_cast<double>(positions); }
  std::string text() const;
};

class GoldenRun {
 public:
  // The back end has `blocks_per_prompt` blocks for each prompt, and steps of `step_tokens`. Both outlive this.
  GoldenRun(CpuBackend& backend, const GoldenFile& golden, int32_t step_tokens, int32_t blocks_per_prompt)
      : backend_(backend), golden_(golden), step_tokens_(step_tokens), blocks_per_prompt_(blocks_per_prompt) {}

  // Runs every prompt in chunks, comparing all of its rows, and leaves its KV in place.
  Result<GoldenDifference> compare_prompts();
  // Greedy tokens after every prompt, decoded together. REQUIRES compare_prompts().
  Result<std::vector<std::vector<TokenId>>> continue_prompts();

 private:
  std::vector<BlockId> blocks_of(size_t prompt) const;

  CpuBackend& backend_;
  const GoldenFile& golden_;
  const int32_t step_tokens_;
  const int32_t blocks_per_prompt_;
};

}  // namespace warmpath
