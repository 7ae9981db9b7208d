#include "engine/model_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace warmpath {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

ModelReport report_of(const std::string& spec) {
  const auto model = open_model(spec);
  EXPECT_TRUE(model.ok()) << model.status().message();
  return report_model(*model);
}

TEST(ModelReport, SaysWhatAModelIs) {
  const ModelReport report =
      report_of("synthetic:qwen3-2x256,heads=4,kv_heads=2,head_dim=128,vocab=512,weights=q4_k_m");
  EXPECT_THAT(report.refusals, ElementsAre());
  EXPECT_EQ(report.format, "synthetic");
  EXPECT_EQ(report.architecture, "qwen3");
  ASSERT_TRUE(report.config.has_value());
  // Two layers of q, k, v, o and a feed-forward of 704; norms; two tables.
  const int64_t layer = 256 * (2 * 512 + 2 * 256 + 3 * 768) + 2 * 256 + 2 * 128;
  EXPECT_EQ(report.config->ffn, 768);
  EXPECT_EQ(report.parameters, 2 * layer + 256 + 2 * 512 * 256);
  EXPECT_FALSE(report.tied);
  EXPECT_FALSE(report.biases);
  // K and V of 2 heads of 128 in 16 bits, two layers, and a scale of 32 bits each head.
  EXPECT_EQ(report.kv_bytes_per_token, 2 * 2 * 2 * (128 * 2 + 4));
  EXPECT_GT(report.packed_bytes, report.tensor_bytes - 10000);
  EXPECT_LT(report.packed_bytes, report.tensor_bytes * 11 / 10);
  EXPECT_EQ(report.types.at(0).type, "Q4_K");
  EXPECT_EQ(report.types.size(), 4u);  // Q4_K, Q6_K, Q8_0, F32
  EXPECT_THAT(report.rope, HasSubstr("paired halves"));
  ASSERT_TRUE(report.tokenizer.has_value());
  EXPECT_EQ(report.tokenizer->tokens, 512);
  EXPECT_THAT(report.tokenizer->end_tokens, Contains("<|im_end|>"));
  ASSERT_TRUE(report.abilities.has_value());
  EXPECT_TRUE(report.abilities->system_role);
  EXPECT_FALSE(report.abilities->tools);
}

TEST(ModelReport, SaysWhatWouldBeRefusedAndWhy) {
  const ModelReport report = report_of(WARMPATH_SOURCE_DIR "/tests/reference/models/llama-mixed.gguf");
  ASSERT_TRUE(report.config.has_value());
  EXPECT_THAT(report.rope, HasSubstr("adjacent pairs, Llama 3 scaling"));
  EXPECT_THAT(report.refusals, ElementsAre(HasSubstr("'tokenizer.ggml.model' is missing")));
}

TEST(ModelReport, ContextThatFits) {
  EXPECT_EQ(context_that_fits(1000, 400, 5), 100);
  EXPECT_EQ(context_that_fits(1000, 2000, 5), 0);
}

}  // namespace
}  // namespace warmpath
