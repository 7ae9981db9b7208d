#include "engine/cpu_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model_file/model_store.h"

namespace warmpath {
namespace {

using ::testing::HasSubstr;

Result<std::unique_ptr<CpuBackend>> small_backend(CpuBackendOptions options = {}) {
  if (options.kv_blocks == 0) options.kv_blocks = 32;
  const auto model = open_model("synthetic:llama-2x64,context=256");
  if (!model.ok()) return model.status();
  return CpuBackend::create(model->file, options);
}

TEST(CpuBackend, DescribesItself) {
  CpuBackendOptions options;
  options.isa = Isa::kScalar;
  options.threads = 2;
  const auto backend = small_backend(options);
  ASSERT_TRUE(backend.ok()) << backend.status().message();
  EXPECT_EQ((*backend)->device(), "cpu scalar x2");
  EXPECT_EQ((*backend)->vocabulary(), 512);
  EXPECT_EQ((*backend)->context_tokens(), 256);
  EXPECT_EQ((*backend)->kv_bytes_per_token(), 2 * 2 * 2 * 16 * 2);  // layers, K and V, kv heads, head size, f16
  EXPECT_EQ((*backend)->kv_blocks(), 32);
  options.kv_blocks = 3;
  EXPECT_EQ((*small_backend(options))->context_tokens(), 48) << "no sequence is longer than the arena";
}

TEST(CpuBackend, OneStepRunsWhileTheNextIsPlanned) {
  const auto backend = small_backend();
  ASSERT_TRUE(backend.ok()) << backend.status().message();
  auto first = (*backend)->submit({{{{5, 6, 7}, 0, {4}, 1}}});
  auto second = (*backend)->submit({{{{8}, 3, {4}, 1}}});  // reads the KV that the first one stores
  const auto second_result = second->wait();
  const auto first_result = first->wait();
  ASSERT_TRUE(first_result.ok() && second_result.ok());
  const std::vector<float> after_three(first_result->logits.begin(), first_result->logits.end());
  const std::vector<float> after_four(second_result->logits.begin(), second_result->logits.end());
  EXPECT_EQ(after_four.size(), 512u);
  EXPECT_NE(after_three, after_four);
  first.reset();
  second.reset();
  const auto whole = (*backend)->submit({{{{5, 6, 7, 8}, 0, {9}, 2}}});
  const auto rows = whole->wait();
  ASSERT_TRUE(rows.ok());
  EXPECT_TRUE(std::equal(after_three.begin(), after_three.end(), rows->logits.begin()));
  EXPECT_TRUE(std::equal(after_four.begin(), after_four.end(), rows->logits.begin() + 512));
  EXPECT_GT(rows->seconds, 0);
}

TEST(CpuBackend, AHandleMayBeDroppedWithoutWaiting) {
  const auto backend = small_backend();
  ASSERT_TRUE(backend.ok());
  for (int32_t round = 0; round < 20; ++round) (*backend)->submit({{{{round}, round, {0, 1}, 1}}});
  EXPECT_TRUE((*backend)->submit({{{{1}, 20, {0, 1}, 1}}})->wait().ok());
}

TEST(CpuBackend, ABadStepFailsAloneAndTheBackendGoesOn) {
  const auto backend = small_backend();
  ASSERT_TRUE(backend.ok());
  EXPECT_THAT((*backend)->submit({{{{1}, 0, {99}, 1}}})->wait().status().message(), HasSubstr("block 99 of 32"));
  EXPECT_TRUE((*backend)->submit({{{{1}, 0, {0}, 1}}})->wait().ok());
}

TEST(CpuBackend, RefusesWhatCannotBe) {
  CpuBackendOptions options;
  options.kv_blocks = int64_t{1} << 30;
  EXPECT_THAT(small_backend(options).status().message(), HasSubstr("are more than this machine's memory"));
  options.kv_blocks = -1;
  EXPECT_FALSE(small_backend(options).ok());
  EXPECT_THAT(parse_precision("half").status().message(), HasSubstr("one of fast, float"));
}

TEST(CpuBackend, TheFingerprintNamesWeightsAndKvLayout) {
  CpuBackendOptions options;
  const Hash128 fast = (*small_backend(options))->fingerprint();
  EXPECT_EQ(fast, (*small_backend(options))->fingerprint());
  options.threads = 1;
  options.kv_blocks = 7;
  EXPECT_EQ(fast, (*small_backend(options))->fingerprint()) << "where it runs does not change the KV";
  options.precision = Precision::kFloat;
  EXPECT_NE(fast, (*small_backend(options))->fingerprint());
  const auto other = open_model("synthetic:llama-2x64,context=256,seed=2");
  options.precision = Precision::kQuantized;
  EXPECT_NE(fast, (*CpuBackend::create(other->file, options))->fingerprint());
}

}  // namespace
}  // namespace warmpath
