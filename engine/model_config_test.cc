#include "engine/model_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <map>

#include "engine/model_weights.h"
#include "model_file/gguf_writer.h"
#include "model_file/model_store.h"

namespace warmpath {
namespace {

using ::testing::HasSubstr;

// A llama config of one layer; `change` may replace values, and 0 leaves a key out.
Result<ModelConfig> config_of(const std::map<std::string, uint32_t>& change, std::string_view architecture = "llama",
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

std::string refusal(const Result<ModelConfig>& config) { return config.ok() ? "accepted" : config.status().message(); }

TEST(ModelConfig, ReadsALlama) {
  const auto config = config_of({});
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->head_dim, 16);
  EXPECT_EQ(config->qkv_width(), 64 + 2 * 32);
  EXPECT_EQ(config->vocabulary, 10);
  ASSERT_EQ(config->inv_freq.size(), 8u);
  EXPECT_EQ(config->inv_freq[0], 1.0f);
  EXPECT_FLOAT_EQ(config->inv_freq[4], 0.01f);  // 10000^(-8/16)
}

TEST(ModelConfig, RefusesByName) {
  EXPECT_THAT(refusal(config_of({}, "gemma")), HasSubstr("architecture 'gemma' is not supported; supported: llama"));
  EXPECT_THAT(refusal(config_of({{"llama.expert_count", 8}})), HasSubstr("mixtures of experts"));
  EXPECT_THAT(refusal(config_of({{"split.count", 2}})), HasSubstr("split files"));
  EXPECT_THAT(refusal(config_of({{"llama.block_count", 0}})), HasSubstr("key 'llama.block_count' is missing"));
  EXPECT_THAT(refusal(config_of({{"llama.block_count", 100000}})),
              HasSubstr("key 'llama.block_count': 100000 is not in"));
  EXPECT_THAT(refusal(config_of({{"llama.attention.head_count_kv", 3}})), HasSubstr("do not divide"));
  EXPECT_THAT(refusal(config_of({{"llama.attention.head_count", 8}, {"llama.attention.head_count_kv", 8}})),
              HasSubstr("no multiple of 16"));
  EXPECT_THAT(refusal(config_of({{"llama.rope.dimension_count", 18}})), HasSubstr("key 'llama.rope.dimension_count'"));
}

TEST(ModelConfig, RopeScaling) {
  const auto yarn = [](GgufWriter& writer) { writer.add_string("llama.rope.scaling.type", "yarn"); };
  EXPECT_THAT(refusal(config_of({}, "llama", yarn)), HasSubstr("RoPE scaling 'yarn' is not supported"));
  const auto linear = [](GgufWriter& writer) {
    writer.add_string("llama.rope.scaling.type", "linear");
    writer.add_float32("llama.rope.scaling.factor", 4.0f);
  };
  EXPECT_FLOAT_EQ(config_of({}, "llama", linear)->inv_freq[0], 0.25f);
  const auto factors = [](GgufWriter& writer) {
    std::vector<std::byte> bytes(8 * sizeof(float));
    const std::vector<float> values = {1, 1, 1, 1, 2, 4, 8, 8};
    std::memcpy(bytes.data(), values.data(), bytes.size());
    writer.add_tensor("rope_freqs.weight", TensorType::kF32, {8}, bytes);
  };
  EXPECT_FLOAT_EQ(config_of({}, "llama", factors)->inv_freq[4], 0.005f);
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
  ModelConfig wide = *config;
  wide.width = 256;
  EXPECT_THAT(load_model_weights(*GgufFile::parse(bytes, "f"), wide, Precision::kFloat).status().message(),
              AllOf(HasSubstr("tensor 'token_embd.weight'"), HasSubstr("Q2_K")));
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
