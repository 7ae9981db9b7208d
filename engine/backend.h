// Backend: what runs a step's forward pass and owns the KV arena. The engine's loop is schedule -> run -> postprocess;
// a backend is "run". The scheduler sees block ids, never a KV pointer.
//
// Invariants
//  - Batch invariance: a logits row depends on its sequence's tokens alone: the same bits whatever else is in the plan,
//  however
//    the tokens were split into steps, and whichever blocks hold the KV.
//  - KV written by one step is visible to every later step. Steps run in the order they were submitted.
// Thread safety: submit() and the accessors belong to one thread; StepHandle::wait() may be called from another.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/token.h"

namespace warmpath {

using BlockId = int32_t;
inline constexpr BlockId kNoBlock = -1;

// One sequence's share of a step. Its first `position` tokens have their KV in `block_table` already, but for what
// `copy_from` brings.
struct SequenceStep {
  std::vector<TokenId> tokens;  // n >= 1 new tokens, at positions [position, position + n)
  int32_t position = 0;
  std::vector<BlockId> block_table;  // covers at least position + n tokens, kBlockTokens a block
  int32_t logit_rows = 0;            // wanted for the last `logit_rows` of the n tokens, 0..n
  // Not kNoBlock: block_table[position / kBlockTokens] first gets the KV of this block's first position % kBlockTokens
  // tokens. All copies of a step are made before anything of it is computed, so another sequence of the step may write
  // later slots of this block.
  BlockId copy_from = kNoBlock;
};

struct StepPlan {
  std::vector<SequenceStep> sequences;
  int64_t tokens() const {
    int64_t sum = 0;
    for (const SequenceStep& step : sequences) sum += static_cast<int64_t>(step.tokens.size());
    return sum;
  }
};

struct StepResult {
  // [rows][vocabulary], rows in plan order; valid until the handle dies.
  std::span<const float> logits;
  double seconds = 0;  // spent computing, for the cost model
};

class StepHandle {
 public:
  virtual ~StepHandle() = default;
  // Blocks until the step is done. An error means that the KV of this step's sequences is lost, not the backend.
  virtual Result<StepResult> wait() = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;

  // One step may be in flight while the next is submitted; REQUIRES at most that.
  // REQUIRES plan.tokens() <= max_step_tokens() and sequences.size() <= max_step_sequences().
  virtual std::unique_ptr<StepHandle> submit(StepPlan plan) = 0;

  virtual int32_t vocabulary() const = 0;
  virtual int32_t context_tokens() const = 0;
  virtual int64_t kv_blocks() const = 0;
  virtual int64_t kv_bytes_per_token() const = 0;
  virtual int32_t max_step_tokens() const = 0;
  virtual int32_t max_step_sequences() const = 0;
  virtual std::string device() const = 0;  // for people: "cpu avx512 x2"
};

}  // namespace warmpath
