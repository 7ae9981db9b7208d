#include "engine/llama_forward.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <utility>

#include "kernels/cpu/amx_emulator.h"
#include "kernels/cpu/cpu_ops.h"
#include "kernels/huge_buffer.h"
#include "model_file/model_store.h"

namespace warmpath {
namespace {

using ::testing::HasSubstr;

[[maybe_unused]] const bool kAmxIsEmulated = testing::emulate_amx();  // supported_isas() has Isa::kAmx

constexpr int64_t kBlocks = 160;
constexpr int32_t kMaxTokens = 512;

// A small model whose context spans several attention splits, on one instruction set.
class Model {
 public:
  Model(Isa isa, Precision precision, int32_t threads = 2) : pool_(threads), ops_(isa, pool_) {
    auto opened = open_model("synthetic:llama-2x128,heads=4,kv_heads=2,ffn=160,vocab=300,context=2048");
    config_ = *read_model_config(opened->file);
    weights_ = load_model_weights(opened->file, config_, precision).value();
    const KvLayout layout = config_.kv_layout(precision == Precision::kFloat ? KvType::kF32 : KvType::kInt16);
    arena_ = HugeBuffer::allocate(static_cast<size_t>(kBlocks * layout.block_bytes()));
    std::memset(arena_.data(), 0xff, arena_.size());  // NaN: what was never stored must never be read
    forward_ =
        std::make_unique<LlamaForward>(config_, weights_, ops_, KvArena{arena_.data(), layout}, kBlocks, kMaxTokens);
  }

  // The logits of a step, one row each.
  std::vector<std::vector<float>> run(StepPlan plan) {
    std::vector<float> logits;
    const Status status = forward_->run(plan, logits);
    EXPECT_TRUE(status.ok()) << status.message();
    std::vector<std::vector<float>> rows;
    const auto width = static_cast<size_t>(config_.vocabulary);
    for (size_t at = 0; at + width <= logits.size(); at += width) {
      rows.emplace_back(logits.begin() + static_cast<std::ptrdiff_t>(at),
                        logits.begin() + static_cast<std::ptrdiff_t>(at + width));
    }
    return rows;
  }

  Status status_of(StepPlan plan) {
    std::vector<float> logits;
    return forward_->run(plan, logits);
  }

 private:
  ThreadPool pool_;
  CpuOps ops_;
  ModelShape config_;
  ModelWeights weights_;
  HugeBuffer arena_;
  std::unique_ptr<LlamaForward> forward_;
};

std::vector<TokenId> random_tokens(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<TokenId> tokens(count);
  for (TokenId& token : tokens) token = static_cast<TokenId>(random() % 300);
  return tokens;
}

// `blocks` blocks from `first`, in reverse, so that neighbours in a table are not neighbours in memory.
std::vector<BlockId> table(BlockId first, int32_t blocks) {
  std::vector<BlockId> ids(static_cast<size_t>(blocks));
  for (int32_t index = 0; index < blocks; ++index) ids[static_cast<size_t>(index)] = first + blocks - 1 - index;
  return ids;
}

SequenceStep part(const std::vector<TokenId>& tokens, int32_t begin, int32_t end, std::vector<BlockId> blocks,
                  int32_t rows) {
  return {{tokens.begin() + begin, tokens.begin() + end}, begin, std::move(blocks), rows};
}

class EveryPath : public ::testing::TestWithParam<std::tuple<Isa, Precision>> {};

// Every row of a prompt of 400 tokens, computed at once, is the yardstick: bit for bit.
TEST_P(EveryPath, ARowDependsOnItsSequenceAlone) {
  const auto [isa, precision] = GetParam();
  const int32_t count = 400;
  const auto tokens = random_tokens(static_cast<size_t>(count), 1);
  const auto other = random_tokens(static_cast<size_t>(count), 2);
  std::vector<std::vector<float>> whole;
  {
    Model model(isa, precision);
    whole = model.run({{part(tokens, 0, count, table(0, 25), count)}});
    ASSERT_EQ(whole.size(), static_cast<size_t>(count));
    for (const float value : whole.back()) ASSERT_TRUE(std::isfinite(value));
  }
  size_t compared = 0;
  const auto expect_row = [&](const std::vector<float>& row, int32_t position, const char* how) {
    ASSERT_EQ(row, whole[static_cast<size_t>(position)]) << how << ", position " << position;
    ++compared;
  };
  {  // In chunks of odd sizes, with one thread, beside prefills and decodes of other sequences.
    Model model(isa, precision, 1);
    int32_t at = 0;
    int32_t other_at = 0;
    for (const int32_t chunk : {1, 7, 16, 40, 3, 128, 61, 100, 44}) {
      StepPlan plan;
      plan.sequences.push_back(part(other, other_at, other_at + 5, table(60, 25), 1));
      plan.sequences.push_back(part(tokens, at, at + chunk, table(20, 25), std::min(chunk, 3)));
      plan.sequences.push_back(part(other, other_at, other_at + 33, table(100, 25), 0));
      const auto rows = model.run(plan);
      for (int32_t row = 0; row < std::min(chunk, 3); ++row) {
        expect_row(rows[static_cast<size_t>(1 + row)], at + chunk - std::min(chunk, 3) + row, "chunked");
      }
      at += chunk;
      other_at += 5;
    }
    ASSERT_EQ(at, count);
  }
  {  // Decoded one token at a time, alone and as one of 1 to 64 sequences of the same prefix.
    Model model(isa, precision);
    model.run({{part(tokens, 0, 380, table(0, 25), 0)}});
    for (int32_t batch = 1; batch <= 64; batch = batch < 4 ? batch + 1 : batch * 2) {
      StepPlan plan;
      for (int32_t index = 0; index < batch; ++index) {
        // Their last block is their own; only the first of them computes position 380.
        std::vector<BlockId> blocks = table(0, 25);
        blocks[23] = static_cast<BlockId>(30 + index);
        SequenceStep step = part(tokens, 368, 368 + 1 + index % 12, std::move(blocks), 1);
        plan.sequences.push_back(std::move(step));
      }
      const auto rows = model.run(plan);
      for (int32_t index = 0; index < batch; ++index)
        expect_row(rows[static_cast<size_t>(index)], 368 + index % 12, "batch");
    }
    for (int32_t position = 380; position < count; ++position) {
      expect_row(model.run({{part(tokens, position, position + 1, table(0, 25), 1)}})[0], position, "decode");
    }
  }
  {  // From a block that another sequence goes on writing in the same step.
    Model model(isa, precision);
    model.run({{part(tokens, 0, 380, table(0, 25), 0)}});
    std::vector<BlockId> blocks = table(0, 25);
    SequenceStep writer = part(tokens, 380, 381, blocks, 1);
    const BlockId source = std::exchange(blocks[23], BlockId{50});
    SequenceStep copier = part(tokens, 377, 390, std::move(blocks), 13);
    copier.copy_from = source;
    const auto rows = model.run({{std::move(writer), std::move(copier)}});
    expect_row(rows[0], 380, "copied from");
    for (int32_t row = 0; row < 13; ++row) expect_row(rows[static_cast<size_t>(1 + row)], 377 + row, "copied");
  }
  std::printf("%zu rows bit-equal\n", compared);
}

INSTANTIATE_TEST_SUITE_P(AllIsas, EveryPath,
                         ::testing::Combine(::testing::ValuesIn(supported_isas()),
                                            ::testing::Values(Precision::kFloat, Precision::kQuantized)),
                         [](const auto& path) {
                           return std::string(isa_name(std::get<0>(path.param))) +
                                  (std::get<1>(path.param) == Precision::kFloat ? "Float" : "Fast");
                         });

TEST(LlamaForward, InstructionSetsAgreeBitForBit) {
  const auto tokens = random_tokens(50, 3);
  for (const Precision precision : {Precision::kFloat, Precision::kQuantized}) {
    Model scalar(Isa::kScalar, precision);
    const auto expected = scalar.run({{part(tokens, 0, 50, table(0, 4), 50)}});
    for (const Isa isa : supported_isas()) {
      Model model(isa, precision);
      EXPECT_EQ(model.run({{part(tokens, 0, 50, table(0, 4), 50)}}), expected) << isa_name(isa);
    }
  }
}

TEST(LlamaForward, WhatItReadsIsChecked) {
  Model model(Isa::kScalar, Precision::kFloat);
  const auto tokens = random_tokens(40, 4);
  const auto refusal = [&](SequenceStep step) { return model.status_of({{std::move(step)}}).message(); };
  EXPECT_THAT(refusal({{300}, 0, {0}, 1}), HasSubstr("token 300"));
  EXPECT_THAT(refusal({{-1}, 0, {0}, 1}), HasSubstr("token -1"));
  EXPECT_THAT(refusal({{}, 0, {0}, 0}), HasSubstr("0 tokens"));
  EXPECT_THAT(refusal({{1}, -1, {0}, 0}), HasSubstr("position -1"));
  EXPECT_THAT(refusal({{1}, 2048, table(0, 129), 0}), HasSubstr("the context is 2048"));
  EXPECT_THAT(refusal({{1}, 16, {0}, 0}), HasSubstr("1 blocks for 17 tokens"));
  EXPECT_THAT(refusal({{1}, 0, {kBlocks}, 0}), HasSubstr("block 160"));
  EXPECT_THAT(refusal({{1}, 0, {0}, 2}), HasSubstr("logits of 2 rows"));
  EXPECT_THAT(refusal({std::vector<TokenId>(600, 1), 0, table(0, 40), 0}), HasSubstr("the limit is 512"));
  EXPECT_THAT(refusal({{1}, 5, {0}, 0, kBlocks}), HasSubstr("first 5 tokens of block 160"));
  EXPECT_THAT(refusal({{1}, 16, {0, 1}, 0, 2}), HasSubstr("first 0 tokens of block 2"));
  EXPECT_TRUE(model.status_of({}).ok()) << "an empty step is a step";
}

}  // namespace
}  // namespace warmpath
