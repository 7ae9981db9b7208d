// The engine against an independent forward pass (tests/reference/): every position of eight prompts, and 64 greedy
// tokens after each. Prints what it measured. Needs the default model: $WARMPATH_MODEL, or the model store.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>

#include "engine/cpu_backend.h"
#include "engine/golden_run.h"
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
    run_.emplace(*backend_, golden_, kStepTokens, kBlocksPerPrompt);
  }

  GoldenDifference compare_prompts() {
    auto difference = run_.value().compare_prompts();
    EXPECT_TRUE(difference.ok()) << difference.status().message();
    if (!difference.ok()) return {};
    std::printf("%s\n", difference->text().c_str());
    return *difference;
  }

  GoldenFile golden_;
  std::unique_ptr<CpuBackend> backend_;
  std::optional<GoldenRun> run_;
};

TEST_F(Reference, TheFloatPathAgreesOnEveryPositionAndGreedyToken) {
  load(Precision::kFloat);
  if (backend_ == nullptr) return;
  const GoldenDifference difference = compare_prompts();
  EXPECT_GE(difference.positions, 2000);
  EXPECT_LE(difference.largest, 1e-3);
  EXPECT_EQ(difference.other_clear_top, 0);
  const auto outputs = run_->continue_prompts().value();
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
  const GoldenDifference difference = compare_prompts();
  EXPECT_GE(difference.positions, 2000);
  EXPECT_LE(difference.mean_kl(), 0.005);
  const double engine = std::exp(difference.engine_nll / difference.predicted);
  const double reference = std::exp(difference.reference_nll / difference.predicted);
  EXPECT_NEAR(engine / reference, 1.0, 0.005);
  const auto outputs = run_->continue_prompts().value();
  for (size_t index = 0; index < outputs.size(); ++index) {
    const auto& expected = golden_.prompts[index].continuation;
    const auto differs = std::mismatch(outputs[index].begin(), outputs[index].end(), expected.begin()).first;
    std::printf("%s: %td of %zu greedy tokens before the first difference\n", golden_.prompts[index].name.c_str(),
                differs - outputs[index].begin(), expected.size());
  }
}

}  // namespace
}  // namespace warmpath
