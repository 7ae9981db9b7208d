#include "engine/model_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <map>

#include "engine/model_tensors.h"
#include "engine/model_weights.h"
#include "model_file/gguf_writer.h"
#include "model_file/model_store.h"
#include "model_file/synthetic_model.h"

namespace warmpath {
namespace {

using ::testing::HasSubstr;

// A llama config of one layer; `change` may replace values, and 0 leaves a key out.
Result<ModelShape> config_of(const std::map<std::string, uint32_t>& change, std::string_view architecture = "llama",
                             const std::function<void(GgufWriter&)>& more = nullptr) {
  std::map<std::string, uint32_t> values = {{"llama.block_count", 1},          {"llama.context_length", 64},
                                            {"llama.embedding_length", 64},    {"llama.feed_forward_length", 96},
                                            {"llama.attention.head_count", 4}, {"llama.attention.head_count_kv", 2}};
  for (const auto& [key, value] : change) values[key] = value;
  GgufWriter writer;
  writer.add_string("general.architecture", architecture);
  writer.add_float32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  for (const auto& [key, value] : values) {
    if (value != 0) writer.add_uint32(key, value);
  }
  writer.add_tensor("token_embd.weight", TensorType::kF32, {64, 10}, std::vector<std::byte>(64 * 10 * 4));
  if (more) more(writer);
  const auto bytes = writer.finish();
  const auto file = GgufFile::parse(bytes, "test.gguf");
  if (!file.ok()) return file.status();
  return read_model_config(*file);
}

std::string refusal(const Result<ModelShape>& config) { return config.ok() ? "accepted" : config.status().message(); }

TEST(ModelShape, ReadsALlama) {
  const auto config = config_of({});
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->head_dim, 16);
  EXPECT_EQ(config->qkv_width(), 64 + 2 * 32);
  EXPECT_EQ(config->vocabulary, 10);
  ASSERT_EQ(config->rotation.inv_freq.size(), 8u);
  EXPECT_EQ(config->rotation.inv_freq[0], 1.0f);
  EXPECT_FLOAT_EQ(config->rotation.inv_freq[4], 0.01f);  // 10000^(-8/16)
}

TEST(ModelShape, RefusesByName) {
  EXPECT_THAT(refusal(config_of({}, "gemma")),
              HasSubstr("key 'general.architecture': 'gemma' is not supported; supported: llama, qwen2"));
  EXPECT_THAT(refusal(config_of({{"llama.expert_count", 8}})),
              HasSubstr("key 'llama.expert_count': 8 is not supported"));
  EXPECT_THAT(refusal(config_of({{"split.count", 2}})), HasSubstr("key 'split.tensors.count': 0, but its 2 parts"));
  EXPECT_THAT(refusal(config_of({{"llama.attention.sliding_window", 32}})),
              HasSubstr("key 'llama.attention.sliding_window': 32 is not supported"));
  EXPECT_EQ(refusal(config_of({{"llama.attention.sliding_window", 64}})), "accepted");  // as long as the context
  const auto with_float = [](const char* key, float value) {
    return config_of({}, "llama", [&](GgufWriter& writer) { writer.add_float32(key, value); });
  };
  EXPECT_THAT(refusal(with_float("llama.attn_logit_softcapping", 50)), HasSubstr("key 'llama.attn_logit_softcapping'"));
  EXPECT_THAT(refusal(with_float("llama.final_logit_softcapping", 30)),
              HasSubstr("key 'llama.final_logit_softcapping': 30"));
  EXPECT_THAT(refusal(with_float("llama.embedding_scale", 12)), HasSubstr("key 'llama.embedding_scale': 12"));
  EXPECT_EQ(refusal(with_float("llama.logit_scale", 1)), "accepted");
  EXPECT_THAT(
      refusal(config_of({}, "llama", [](GgufWriter& writer) { writer.add_bool("llama.attention.causal", false); })),
      HasSubstr("key 'llama.attention.causal': false"));
  EXPECT_THAT(refusal(config_of({}, "llama", [](GgufWriter& writer) { writer.add_string("general.type", "adapter"); })),
              HasSubstr("key 'general.type': 'adapter'"));
  EXPECT_THAT(refusal(config_of({{"llama.block_count", 0}})), HasSubstr("key 'llama.block_count' is missing"));
  EXPECT_THAT(refusal(config_of({{"llama.block_count", 100000}})),
              HasSubstr("key 'llama.block_count': 100000 is not in"));
  EXPECT_THAT(refusal(config_of({{"llama.attention.head_count_kv", 3}})), HasSubstr("do not divide"));
  EXPECT_THAT(refusal(config_of({{"llama.attention.head_count", 8}, {"llama.attention.head_count_kv", 8}})),
              HasSubstr("no multiple of 16"));
  EXPECT_THAT(refusal(config_of({{"llama.rope.dimension_count", 18}})), HasSubstr("key 'llama.rope.dimension_count'"));
}

TEST(ModelShape, RopeScaling) {
  const auto unknown = [](GgufWriter& writer) { writer.add_string("llama.rope.scaling.type", "longrope"); };
  EXPECT_THAT(refusal(config_of({}, "llama", unknown)),
              HasSubstr("key 'llama.rope.scaling.type': 'longrope' is not supported"));
  const auto endless = [](GgufWriter& writer) { writer.add_string("llama.rope.scaling.type", "linear"); };
  EXPECT_THAT(refusal(config_of({}, "llama", endless)), HasSubstr("key 'llama.rope.scaling.factor' is missing"));
  const auto linear = [](GgufWriter& writer) {
    writer.add_string("llama.rope.scaling.type", "linear");
    writer.add_float32("llama.rope.scaling.factor", 4.0f);
  };
  EXPECT_FLOAT_EQ(config_of({}, "llama", linear)->rotation.inv_freq[0], 0.25f);
  const auto factors = [](GgufWriter& writer) {
    std::vector<std::byte> bytes(8 * sizeof(float));
    const std::vector<float> values = {1, 1, 1, 1, 2, 4, 8, 8};
    std::memcpy(bytes.data(), values.data(), bytes.size());
    writer.add_tensor("rope_freqs.weight", TensorType::kF32, {8}, bytes);
  };
  EXPECT_FLOAT_EQ(config_of({}, "llama", factors)->rotation.inv_freq[4], 0.005f);
}

// Against transformers' _compute_yarn_parameters: base 10000, 16 dimensions, factor 4, original context 64.
TEST(ModelShape, YarnMixesFastAndSlowPairs) {
  const auto yarn = [](GgufWriter& writer) {
    writer.add_string("llama.rope.scaling.type", "yarn");
    writer.add_float32("llama.rope.scaling.factor", 4.0f);
    writer.add_uint32("llama.rope.scaling.original_context_length", 64);
  };
  const auto config = config_of({}, "llama", yarn);
  ASSERT_TRUE(config.ok()) << config.status().message();
  const std::vector<float> expected = {1.000000000e+00f, 2.371708155e-01f, 4.999999702e-02f, 7.905694656e-03f,
                                       2.499999944e-03f, 7.905694656e-04f, 2.500000119e-04f, 7.905694656e-05f};
  ASSERT_EQ(config->rotation.inv_freq.size(), expected.size());
  for (size_t pair = 0; pair < expected.size(); ++pair) {
    EXPECT_NEAR(config->rotation.inv_freq[pair], expected[pair], 1e-6f * expected[pair]) << pair;
  }
  EXPECT_FLOAT_EQ(config->rotation.scale, 1.138629436f);  // 0.1 ln 4 + 1
}

TEST(ModelWeights, AMissingOrMisshapenTensorIsNamed) {
  const auto config = config_of({});
  ASSERT_TRUE(config.ok());
  GgufWriter writer;
  writer.add_tensor("token_embd.weight", TensorType::kF32, {64, 10}, std::vector<std::byte>(64 * 10 * 4));
  writer.add_tensor("output_norm.weight", TensorType::kF32, {32}, std::vector<std::byte>(32 * 4));
  auto bytes = writer.finish();
  EXPECT_THAT(load_model_weights(*GgufFile::parse(bytes, "f"), *config, Precision::kFloat).status().message(),
              HasSubstr("tensor 'output_norm.weight' at byte"));
  GgufWriter missing;
  missing.add_tensor("token_embd.weight", TensorType::kF32, {64, 10}, std::vector<std::byte>(64 * 10 * 4));
  missing.add_tensor("output_norm.weight", TensorType::kF32, {64}, std::vector<std::byte>(64 * 4));
  missing.add_tensor("blk.0.attn_norm.weight", TensorType::kF32, {64}, std::vector<std::byte>(64 * 4));
  bytes = missing.finish();
  EXPECT_THAT(load_model_weights(*GgufFile::parse(bytes, "f"), *config, Precision::kFloat).status().message(),
              HasSubstr("tensor 'blk.0.attn_q.weight' is missing"));
}

TEST(ModelWeights, AnUnsupportedTypeIsNamed) {
  const auto config = config_of({});
  ASSERT_TRUE(config.ok());
  GgufWriter writer;
  writer.add_tensor("token_embd.weight", TensorType(10), {256, 10}, std::vector<std::byte>(10 * 84));
  const auto bytes = writer.finish();
  ModelShape wide = *config;
  wide.width = 256;
  EXPECT_THAT(load_model_weights(*GgufFile::parse(bytes, "f"), wide, Precision::kFloat).status().message(),
              AllOf(HasSubstr("tensor 'token_embd.weight'"), HasSubstr("Q2_K")));
}

TEST(ModelWeights, ATensorThatIsNotUsedIsRefused) {
  auto bytes = make_synthetic_model("synthetic:llama-1x64");
  ASSERT_TRUE(bytes.ok());
  const auto file = GgufFile::parse(*bytes, "f");
  auto config = read_model_config(*file);
  ASSERT_TRUE(config.ok());
  EXPECT_TRUE(check_model_tensors(*file, *config).ok());
  config->layers = 0;
  EXPECT_THAT(check_model_tensors(*file, *config).message(),
              AllOf(HasSubstr("tensor 'blk.0.attn_norm.weight'"), HasSubstr("is not part of a llama model")));
}

TEST(ModelWeights, ASyntheticModelLoads) {
  const auto model = open_model("synthetic:llama-2x64");
  ASSERT_TRUE(model.ok());
  const auto config = read_model_config(model->file);
  ASSERT_TRUE(config.ok()) << config.status().message();
  const auto weights = load_model_weights(model->file, *config, Precision::kQuantized);
  ASSERT_TRUE(weights.ok()) << weights.status().message();
  EXPECT_EQ(weights->layers.size(), 2u);
  EXPECT_EQ(weights->layers[1].qkv.matrices.size(), 1u);
  EXPECT_EQ(weights->layers[1].qkv.rows(), config->qkv_width());
  EXPECT_FALSE(weights->tied);
}

}  // namespace
}  // namespace warmpath
