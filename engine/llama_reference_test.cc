// The engine against an independent forward pass (tests/reference/): every position of eight prompts, and 64 greedy
// tokens after each. Prints what it measured. Needs the default model: $WARMPATH_MODEL, or the model store.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>

#include "engine/cpu_backend.h"
#include "engine/golden_file.h"
#include "model_file/model_store.h"

namespace warmpath {
namespace {

constexpr int32_t kStepTokens = 128;
constexpr int32_t kBlocksPerPrompt = 112;  // 1,792 tokens

std::string model_path() {
  if (const char* path = std::getenv("WARMPATH_MODEL"); path != nullptr && *path != '\0') return path;
  const auto store = model_store_path();
  return store.ok() ? (*store / default_model().file).string() : "";
}

// How far the engine's predictions are from the reference's, over all positions of all prompts.
struct Difference {
  double largest = 0;  // |log-prob difference| over the stored top tokens
  int64_t positions = 0;
  int64_t other_top = 0;        // another likeliest token
  int64_t other_clear_top = 0;  // the same where the reference's gap exceeds kClearGap
  double kl_sum = 0;            // KL(reference || engine), nats; the tail counts as one token
  double reference_nll = 0;     // of the prompts' own tokens
  double engine_nll = 0;
  int64_t predicted = 0;
};
constexpr float kClearGap = 2e-3f;

class Reference : public ::testing::Test {
 protected:
  void load(Precision precision) {
    const std::string path = model_path();
    auto file = GgufFile::open(path);
    if (!file.ok()) GTEST_SKIP() << "the default model is not here (" << file.status().message() << ")";
    auto golden = read_golden_file(std::string(WARMPATH_SOURCE_DIR) + "/tests/reference/golden.bin");
    ASSERT_TRUE(golden.ok()) << golden.status().message();
    golden_ = std::move(*golden);
    const auto hash = sha256_of_file(path);
    ASSERT_TRUE(hash.ok());
    ASSERT_EQ(*hash, golden_.model_sha256) << path << " is another model";
    CpuBackendOptions options;
    options.precision = precision;
    options.kv_blocks = kBlocksPerPrompt * static_cast<int64_t>(golden_.prompts.size());
    options.max_step_tokens = kStepTokens;
    auto backend = CpuBackend::create(*file, options);
    ASSERT_TRUE(backend.ok()) << backend.status().message();
    backend_ = std::move(*backend);
  }

  std::vector<BlockId> blocks_of(size_t prompt) const {
    std::vector<BlockId> blocks(kBlocksPerPrompt);
    for (size_t index = 0; index < blocks.size(); ++index) {
      blocks[index] = static_cast<BlockId>(index * golden_.prompts.size() + prompt);
    }
    return blocks;
  }

  void compare(std::span<const float> logits, const GoldenPosition& expected, TokenId next,
               Difference& difference) const {
    const float top = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (const float logit : logits) sum += static_cast<double>(std::exp(logit - top));
    const double log_sum = static_cast<double>(top) + std::log(sum);
    const auto log_prob = [&](TokenId token) {
      return static_cast<double>(logits[static_cast<size_t>(token)]) - log_sum;
    };
    double top_mass = 0;
    for (size_t rank = 0; rank < expected.top.size(); ++rank) {
      const double engine = log_prob(expected.top[rank]);
      const double reference = expected.top_log_probs[rank];
      difference.largest = std::max(difference.largest, std::abs(engine - reference));
      difference.kl_sum += std::exp(reference) * (reference - engine);
      top_mass += std::exp(engine);
    }
    const double tail = std::max(1 - top_mass, 1e-12);
    if (expected.tail > 0) difference.kl_sum += expected.tail * std::log(expected.tail / tail);
    ++difference.positions;
    if (logits[static_cast<size_t>(expected.top[0])] < top) {
      ++difference.other_top;
      if (expected.top_log_probs[0] - expected.top_log_probs[1] > kClearGap) ++difference.other_clear_top;
    }
    if (next >= 0) {
      difference.reference_nll -= static_cast<double>(expected.actual_log_prob);
      difference.engine_nll -= log_prob(next);
      ++difference.predicted;
    }
  }

  // Runs every prompt in chunks, comparing all of its rows, and leaves its KV in place.
  Difference compare_prompts() {
    Difference difference;
    const auto width = static_cast<size_t>(backend_->vocabulary());
    for (size_t index = 0; index < golden_.prompts.size(); ++index) {
      const GoldenPrompt& prompt = golden_.prompts[index];
      for (size_t begin = 0; begin < prompt.tokens.size(); begin += kStepTokens) {
        const size_t end = std::min(begin + kStepTokens, prompt.tokens.size());
        SequenceStep step;
        step.tokens.assign(prompt.tokens.begin() + static_cast<std::ptrdiff_t>(begin),
                           prompt.tokens.begin() + static_cast<std::ptrdiff_t>(end));
        step.position = static_cast<int32_t>(begin);
        step.block_table = blocks_of(index);
        const size_t first = std::clamp(prompt.first, begin, end);
        step.logit_rows = static_cast<int32_t>(end - first);
        const auto handle = backend_->submit({{step}});
        const auto result = handle->wait();
        EXPECT_TRUE(result.ok()) << result.status().message();
        if (!result.ok()) return difference;
        for (size_t at = first; at < end; ++at) {
          const TokenId next = at + 1 < prompt.tokens.size() ? prompt.tokens[at + 1] : -1;
          compare(result->logits.subspan((at - first) * width, width), prompt.positions[at - prompt.first], next,
                  difference);
        }
      }
    }
    std::printf(
        "%lld positions: largest log-prob difference %.2e, mean KL %.2e nats, another top token at %lld (%lld of them "
        "clear), "
        "perplexity %.4f, reference %.4f\n",
        static_cast<long long>(difference.positions), difference.largest, difference.kl_sum / difference.positions,
        static_cast<long long>(difference.other_top), static_cast<long long>(difference.other_clear_top),
        std::exp(difference.engine_nll / difference.predicted),
        std::exp(difference.reference_nll / difference.predicted));
    return difference;
  }

  // Greedy tokens after every prompt, decoded together. REQUIRES compare_prompts().
  std::vector<std::vector<TokenId>> continue_prompts() {
    const size_t count = golden_.prompts.size();
    const auto width = static_cast<size_t>(backend_->vocabulary());
    std::vector<std::vector<TokenId>> outputs(count);
    for (size_t round = 0; round < golden_.prompts[0].continuation.size(); ++round) {
      StepPlan plan;
      for (size_t index = 0; index < count; ++index) {
        const GoldenPrompt& prompt = golden_.prompts[index];
        // The first round computes the prompt's last token again: the same KV, the same bits.
        SequenceStep& step = plan.sequences.emplace_back();
        step.tokens = {round == 0 ? prompt.tokens.back() : outputs[index].back()};
        step.position = static_cast<int32_t>(prompt.tokens.size() - 1 + round);
        step.block_table = blocks_of(index);
        step.logit_rows = 1;
      }
      const auto handle = backend_->submit(std::move(plan));
      const auto result = handle->wait();
      EXPECT_TRUE(result.ok()) << result.status().message();
      if (!result.ok()) break;
      for (size_t index = 0; index < count; ++index) {
        const auto row = result->logits.subspan(index * width, width);
        outputs[index].push_back(static_cast<TokenId>(std::max_element(row.begin(), row.end()) - row.begin()));
      }
    }
    return outputs;
  }

  GoldenFile golden_;
  std::unique_ptr<CpuBackend> backend_;
};

TEST_F(Reference, TheFloatPathAgreesOnEveryPositionAndGreedyToken) {
  load(Precision::kFloat);
  if (backend_ == nullptr) return;
  const Difference difference = compare_prompts();
  EXPECT_GE(difference.positions, 2000);
  EXPECT_LE(difference.largest, 1e-3);
  EXPECT_EQ(difference.other_clear_top, 0);
  const auto outputs = continue_prompts();
  size_t equal = 0;
  for (size_t index = 0; index < outputs.size(); ++index) {
    EXPECT_EQ(outputs[index], golden_.prompts[index].continuation) << golden_.prompts[index].name;
    equal += outputs[index].size();
  }
  std::printf("%zu greedy tokens equal\n", equal);
}

TEST_F(Reference, TheFastPathIsClose) {
  load(Precision::kQuantized);
  if (backend_ == nullptr) return;
  const Difference difference = compare_prompts();
  EXPECT_GE(difference.positions, 2000);
  EXPECT_LE(difference.kl_sum / difference.positions, 0.005);
  const double engine = std::exp(difference.engine_nll / difference.predicted);
  const double reference = std::exp(difference.reference_nll / difference.predicted);
  EXPECT_NEAR(engine / reference, 1.0, 0.005);
  const auto outputs = continue_prompts();
  for (size_t index = 0; index < outputs.size(); ++index) {
    const auto& expected = golden_.prompts[index].continuation;
    const auto differs = std::mismatch(outputs[index].begin(), outputs[index].end(), expected.begin()).first;
    std::printf("%s: %td of %zu greedy tokens before the first difference\n", golden_.prompts[index].name.c_str(),
                differs - outputs[index].begin(), expected.size());
  }
}

}  // namespace
}  // namespace warmpath
