#include "engine/cpu_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <set>

#include "model_file/gguf_writer.h"
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
  EXPECT_EQ((*backend)->kv_bytes_per_token(),
            2 * 2 * 2 * (16 * 2 + 4));  // layers, K and V, kv heads; 16-bit numbers, a scale
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

// A one-layer model of F32 weights, all multiples of 1/64 so that F16 holds them exactly; the tensors named in `half`
// are stored as F16, and q, k and v have biases of `bias` when it is not 0.
std::vector<std::byte> plain_model(const std::set<std::string>& half, float bias) {
  std::mt19937 random(5);
  GgufWriter writer;
  writer.add_string("general.architecture", "llama");
  writer.add_float32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  writer.add_uint32("llama.block_count", 1);
  writer.add_uint32("llama.context_length", 64);
  writer.add_uint32("llama.embedding_length", 64);
  writer.add_uint32("llama.feed_forward_length", 96);
  writer.add_uint32("llama.attention.head_count", 4);
  writer.add_uint32("llama.attention.head_count_kv", 2);
  const auto add = [&](const std::string& name, uint64_t columns, uint64_t rows) {
    const bool as_half = half.contains(name);
    std::vector<std::byte> bytes;
    for (uint64_t index = 0; index < columns * rows; ++index) {
      const float value = static_cast<float>(static_cast<int>(random() % 31) - 15) / 64;
      uint32_t bits = 0;
      std::memcpy(&bits, &value, 4);
      // f32 to f16 for 0 and normal numbers whose mantissa fits: exponents are 112 apart.
      if (as_half)
        bits = value == 0 ? 0 : (bits >> 16 & 0x8000) | (((bits >> 23 & 0xff) - 112) << 10) | (bits >> 13 & 0x3ff);
      const auto* data = reinterpret_cast<const std::byte*>(&bits);
      bytes.insert(bytes.end(), data, data + (as_half ? 2 : 4));
    }
    writer.add_tensor(name, as_half ? TensorType::kF16 : TensorType::kF32, {columns, rows}, bytes);
  };
  const auto fill = [&](const std::string& name, uint64_t size, float value) {
    const std::vector<float> values(size, value);
    std::vector<std::byte> bytes(size * 4);
    std::memcpy(bytes.data(), values.data(), bytes.size());
    writer.add_tensor(name, TensorType::kF32, {size}, bytes);
  };
  add("token_embd.weight", 64, 40);
  fill("output_norm.weight", 64, 1);
  fill("blk.0.attn_norm.weight", 64, 1);
  fill("blk.0.ffn_norm.weight", 64, 1);
  add("blk.0.attn_q.weight", 64, 64);
  add("blk.0.attn_k.weight", 64, 32);
  add("blk.0.attn_v.weight", 64, 32);
  add("blk.0.attn_output.weight", 64, 64);
  add("blk.0.ffn_gate.weight", 64, 96);
  add("blk.0.ffn_up.weight", 64, 96);
  add("blk.0.ffn_down.weight", 96, 64);
  if (bias != 0) {
    fill("blk.0.attn_q.bias", 64, bias);
    fill("blk.0.attn_v.bias", 32, bias);
  }
  return writer.finish();
}

std::vector<float> logits_of(const std::vector<std::byte>& bytes) {
  const auto file = GgufFile::parse(bytes, "test.gguf");
  EXPECT_TRUE(file.ok()) << file.status().message();
  CpuBackendOptions options;
  options.precision = Precision::kFloat;
  options.kv_blocks = 2;
  const auto backend = CpuBackend::create(*file, options);
  EXPECT_TRUE(backend.ok()) << backend.status().message();
  const auto handle = (*backend)->submit({{{{3, 14, 15, 9, 2, 6}, 0, {1}, 6}}});
  const auto result = handle->wait();
  return {result->logits.begin(), result->logits.end()};
}

TEST(CpuBackend, PartsOfAProjectionMayHaveTypesOfTheirOwn) {
  const auto expected = logits_of(plain_model({}, 0));
  ASSERT_EQ(expected.size(), 6u * 40u);
  EXPECT_EQ(logits_of(plain_model({"blk.0.attn_v.weight", "blk.0.ffn_up.weight"}, 0)), expected);
  EXPECT_EQ(logits_of(plain_model({"token_embd.weight", "blk.0.attn_q.weight"}, 0)), expected);
}

TEST(CpuBackend, BiasesOfAProjectionCount) {
  const auto with_bias = logits_of(plain_model({}, 0.25f));
  EXPECT_NE(with_bias, logits_of(plain_model({}, 0)));
  EXPECT_EQ(logits_of(plain_model({"blk.0.attn_k.weight"}, 0.25f)), with_bias) << "each part gets its own share";
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
