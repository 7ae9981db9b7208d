// TestBackend: a model whose logits are a hash of the whole token history, read back through the block table. For
// tests.
//
// Its "KV" is the tokens themselves, written to the slots that the plan names. A wrong block, position, table or order,
// a block given to two owners, or stale content therefore changes the answer, or fails a check right away. Its answers
// are batch invariant by construction, and reference_logits() is what they must be.
//
// Thread safety: as Backend; hold() and release() may be called from another thread.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "engine/backend.h"

namespace warmpath {

class TestBackend final : public Backend {
 public:
  struct Options {
    int32_t vocabulary = 320;
    int32_t context_tokens = 4096;
    int64_t kv_blocks = 256;
    int32_t max_step_tokens = 512;
    int32_t max_step_sequences = 64;
  };
  explicit TestBackend(Options options);

  std::unique_ptr<StepHandle> submit(StepPlan plan) override;
  int32_t vocabulary() const override { return options_.vocabulary; }
  int32_t context_tokens() const override { return options_.context_tokens; }
  int64_t kv_blocks() const override { return options_.kv_blocks; }
  int64_t kv_bytes_per_token() const override { return sizeof(TokenId); }
  int32_t max_step_tokens() const override { return options_.max_step_tokens; }
  int32_t max_step_sequences() const override { return options_.max_step_sequences; }
  std::string device() const override { return "test"; }

  // The logits that follow `history`.
  static std::vector<float> reference_logits(std::span<const TokenId> history, int32_t vocabulary);

  int64_t computed_tokens() const { return computed_tokens_; }  // of all steps
  int64_t copied_tokens() const { return copied_tokens_; }
  const std::vector<StepPlan>& plans() const { return plans_; }
  void keep_plans() { keep_plans_ = true; }
  // The next `steps` steps fail after having spoilt the slots they write.
  void fail_next(int32_t steps) { failures_ = steps; }
  // Steps wait inside wait() until release().
  void hold();
  void release();
  // Blocks until a step waits because of hold().
  void wait_until_held();

 private:
  class Handle;
  Result<StepResult> run(const StepPlan& plan);

  const Options options_;
  std::vector<TokenId> slots_;  // [kv_blocks][kBlockTokens]; poisoned until written
  std::vector<float> logits_;
  std::vector<StepPlan> plans_;
  bool keep_plans_ = false;
  int64_t computed_tokens_ = 0;
  int64_t copied_tokens_ = 0;
  int32_t failures_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool held_ = false;
  bool waiting_ = false;
};

}  // namespace warmpath
