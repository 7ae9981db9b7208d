#include "engine/test_backend.h"

#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "base/hash128.h"

namespace warmpath {

namespace {
constexpr TokenId kPoison = -0x5EED;

uint64_t mix(uint64_t x) {  // splitmix64's finalizer (S. Vigna)
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

void logits_after(std::span<const TokenId> history, std::span<float> out) {
  const uint64_t seed = hash128(history.data(), history.size_bytes()).lo;
  for (size_t token = 0; token < out.size(); ++token) {
    out[token] = static_cast<float>(mix(seed + token * 0x9e3779b97f4a7c15u) >> 40) * 0x1p-24f * 8.0f - 4.0f;
  }
}

}  // namespace

class TestBackend::Handle final : public StepHandle {
 public:
  Handle(TestBackend& backend, StepPlan plan) : backend_(backend), plan_(std::move(plan)) {}
  Result<StepResult> wait() override {
    {
      std::unique_lock lock(backend_.mutex_);
      backend_.waiting_ = backend_.held_;
      backend_.changed_.notify_all();
      backend_.changed_.wait(lock, [&] { return !backend_.held_; });
      backend_.waiting_ = false;
    }
    return backend_.run(plan_);
  }

 private:
  TestBackend& backend_;
  const StepPlan plan_;
};

TestBackend::TestBackend(Options options)
    : options_(options), slots_(static_cast<size_t>(options.kv_blocks) * kBlockTokens, kPoison) {}

std::unique_ptr<StepHandle> TestBackend::submit(StepPlan plan) {
  WARMPATH_CHECK(!plan.sequences.empty(), "an empty step");
  WARMPATH_CHECK(plan.tokens() <= options_.max_step_tokens, "the plan exceeds max_step_tokens");
  WARMPATH_CHECK(plan.sequences.size() <= static_cast<size_t>(options_.max_step_sequences), "too many sequences");
  if (keep_plans_) plans_.push_back(plan);
  return std::make_unique<Handle>(*this, std::move(plan));
}

Result<StepResult> TestBackend::run(const StepPlan& plan) {
  const auto slot = [&](const SequenceStep& step, int32_t position) -> TokenId& {
    const BlockId block = step.block_table[static_cast<size_t>(position / kBlockTokens)];
    return slots_[static_cast<size_t>(block) * kBlockTokens + static_cast<size_t>(position % kBlockTokens)];
  };
  const bool fail = failures_ > 0 && failures_-- > 0;
  std::unordered_map<BlockId, const SequenceStep*> writers;
  // Copies come first. Only what was asked for is there afterwards.
  for (const SequenceStep& step : plan.sequences) {
    if (step.copy_from == kNoBlock) continue;
    const int32_t copied = step.position % kBlockTokens;
    const BlockId to = step.block_table[static_cast<size_t>(step.position / kBlockTokens)];
    WARMPATH_CHECK(copied > 0 && step.copy_from >= 0 && step.copy_from < options_.kv_blocks && step.copy_from != to,
                   "a malformed copy");
    for (int32_t index = 0; index < kBlockTokens; ++index) {
      const auto at = [&](BlockId block) {
        return static_cast<size_t>(block) * kBlockTokens + static_cast<size_t>(index);
      };
      slots_[at(to)] = index < copied && !fail ? slots_[at(step.copy_from)] : kPoison;
    }
    copied_tokens_ += copied;
  }
  for (const SequenceStep& step : plan.sequences) {
    const auto count = static_cast<int32_t>(step.tokens.size());
    WARMPATH_CHECK(count >= 1 && step.logit_rows >= 0 && step.logit_rows <= count, "a malformed step");
    WARMPATH_CHECK(step.position + count <= static_cast<int32_t>(step.block_table.size()) * kBlockTokens,
                   "the block table is too short");
    WARMPATH_CHECK(step.position + count <= options_.context_tokens, "the context is exceeded");
    for (int32_t position = step.position; position < step.position + count; ++position) {
      const BlockId block = step.block_table[static_cast<size_t>(position / kBlockTokens)];
      WARMPATH_CHECK(block >= 0 && block < options_.kv_blocks, "a block id out of range");
      WARMPATH_CHECK(writers.emplace(block, &step).first->second == &step, "two sequences write one block");
      slot(step, position) = fail ? kPoison : step.tokens[static_cast<size_t>(position - step.position)];
    }
  }
  if (fail) return internal_error("made to fail");
  computed_tokens_ += plan.tokens();
  logits_.clear();
  std::vector<TokenId> history;
  for (const SequenceStep& step : plan.sequences) {
    const int32_t end = step.position + static_cast<int32_t>(step.tokens.size());
    for (int32_t last = end - step.logit_rows; last < end; ++last) {
      history.clear();
      for (int32_t position = 0; position <= last; ++position) history.push_back(slot(step, position));
      const size_t row = logits_.size();
      logits_.resize(row + static_cast<size_t>(options_.vocabulary));
      logits_after(history, std::span(logits_).subspan(row));
    }
  }
  return StepResult{logits_, 0};
}

std::vector<float> TestBackend::reference_logits(std::span<const TokenId> history, int32_t vocabulary) {
  std::vector<float> logits(static_cast<size_t>(vocabulary));
  logits_after(history, logits);
  return logits;
}

void TestBackend::hold() {
  const std::lock_guard lock(mutex_);
  held_ = true;
}

void TestBackend::release() {
  const std::lock_guard lock(mutex_);
  held_ = false;
  changed_.notify_all();
}

void TestBackend::wait_until_held() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return waiting_; });
}

}  // namespace warmpath
