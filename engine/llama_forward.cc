#include "engine/llama_forward.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace warmpath {

namespace {

// Rows of the feed-forward done at a time: their [kRowTile][2 ffn] intermediate fits a core's level 2 cache.
constexpr int32_t kRowTile = 128;

}  // namespace

LlamaForward::LlamaForward(const ModelShape& config, const ModelWeights& weights, Ops& ops, KvArena kv,
                           int64_t kv_blocks, int32_t max_tokens)
    : config_(config), weights_(weights), ops_(ops), kv_(kv), kv_blocks_(kv_blocks), max_tokens_(max_tokens) {
  const auto tokens = static_cast<size_t>(max_tokens);
  token_ids_.resize(tokens);
  positions_.resize(tokens);
  cos_.resize(tokens * config.rotation.inv_freq.size());
  sin_.resize(tokens * config.rotation.inv_freq.size());
  residual_.resize(tokens * static_cast<size_t>(config.width));
  qkv_.resize(tokens * static_cast<size_t>(config.qkv_width()));
  attention_.resize(tokens * static_cast<size_t>(config.q_width()));
  gate_up_.resize(static_cast<size_t>(std::min(max_tokens, kRowTile)) * 2 * static_cast<size_t>(config.ffn));
}

Status LlamaForward::check(const StepPlan& plan) const {
  if (plan.tokens() > max_tokens_) {
    return invalid_argument(fmt::format("a step of {} tokens; the limit is {}", plan.tokens(), max_tokens_));
  }
  for (const SequenceStep& step : plan.sequences) {
    const auto tokens = static_cast<int64_t>(step.tokens.size());
    const int64_t end = step.position + tokens;
    if (tokens < 1 || step.position < 0 || end > config_.context) {
      return invalid_argument(
          fmt::format("{} tokens at position {}; the context is {}", tokens, step.position, config_.context));
    }
    if (step.logit_rows < 0 || step.logit_rows > tokens) {
      return invalid_argument(fmt::format("logits of {} rows wanted of {} tokens", step.logit_rows, tokens));
    }
    for (const TokenId token : step.tokens) {
      if (token < 0 || token >= config_.vocabulary) {
        return invalid_argument(fmt::format("token {} is not in the vocabulary of {}", token, config_.vocabulary));
      }
    }
    const int64_t blocks = (end + kBlockTokens - 1) / kBlockTokens;
    if (static_cast<int64_t>(step.block_table.size()) < blocks) {
      return invalid_argument(
          fmt::format("{} blocks for {} tokens; {} are needed", step.block_table.size(), end, blocks));
    }
    for (int64_t index = 0; index < blocks; ++index) {
      const BlockId block = step.block_table[static_cast<size_t>(index)];
      if (block < 0 || block >= kv_blocks_) return invalid_argument(fmt::format("block {} of {}", block, kv_blocks_));
    }
    if (step.copy_from == kNoBlock) continue;
    if (step.copy_from < 0 || step.copy_from >= kv_blocks_ || step.position % kBlockTokens == 0) {
      return invalid_argument(fmt::format("a copy of the first {} tokens of block {}; there are {} blocks",
                                          step.position % kBlockTokens, step.copy_from, kv_blocks_));
    }
  }
  return {};
}

void LlamaForward::gather_rows(const StepPlan& plan) {
  rows_ = 0;
  wanted_ = 0;
  sequences_.clear();
  for (const SequenceStep& step : plan.sequences) {
    const auto tokens = static_cast<int32_t>(step.tokens.size());
    sequences_.push_back({rows_, tokens, step.position, step.block_table.data()});
    for (int32_t index = 0; index < tokens; ++index) {
      token_ids_[static_cast<size_t>(rows_ + index)] = step.tokens[static_cast<size_t>(index)];
      positions_[static_cast<size_t>(rows_ + index)] = step.position + index;
    }
    rows_ += tokens;
    wanted_ += step.logit_rows;
  }
}

void LlamaForward::copy_beginnings(const StepPlan& plan) {
  copy_from_.clear();
  copy_to_.clear();
  for (const SequenceStep& step : plan.sequences) {
    if (step.copy_from == kNoBlock) continue;
    copy_from_.push_back(step.copy_from);
    copy_to_.push_back(step.block_table[static_cast<size_t>(step.position / kBlockTokens)]);
  }
  if (copy_to_.empty()) return;
  // Whole blocks: what lies behind the tokens that were asked for is written before it is read.
  ops_.copy_blocks({kv_, copy_from_.data(), copy_to_.data(), static_cast<int32_t>(copy_to_.size())});
}

Status LlamaForward::run(const StepPlan& plan, std::vector<float>& logits) {
  WARMPATH_RETURN_IF_ERROR(check(plan));
  copy_beginnings(plan);
  gather_rows(plan);
  logits.resize(static_cast<size_t>(wanted_) * static_cast<size_t>(config_.vocabulary));
  if (rows_ == 0) return {};

  ops_.rope_angles({.positions = positions_.data(),
                    .inv_freq = config_.rotation.inv_freq.data(),
                    .half = static_cast<int32_t>(config_.rotation.inv_freq.size()),
                    .rows = rows_,
                    .scale = config_.rotation.scale,
                    .cos = cos_.data(),
                    .sin = sin_.data()});
  ops_.embedding({.table = &weights_.embedding,
                  .token_ids = token_ids_.data(),
                  .y = residual_.data(),
                  .y_stride = config_.width,
                  .rows = rows_,
                  .scale = 1});
  for (int32_t layer = 0; layer < config_.layers; ++layer) {
    store_kv(layer);
    if (layer + 1 == config_.layers) keep_wanted_rows(plan);
    if (rows_ > 0) finish_layer(layer);
  }
  if (rows_ == 0) return {};
  ops_.linear({.weight = &weights_.output(),
               .x = residual_.data(),
               .x_stride = config_.width,
               .y = logits.data(),
               .y_stride = config_.vocabulary,
               .rows = rows_,
               .transform = RowTransform::kRmsNorm,
               .norm_weight = weights_.output_norm.data(),
               .norm_eps = config_.norm_eps,
               // A third of the rounding that reaches the logits happens here, in the one product of few rows.
               .two_digits = true});
  return {};
}

void LlamaForward::store_kv(int32_t index) {
  const LayerWeights& layer = weights_.layers[static_cast<size_t>(index)];
  project(layer.qkv, {.x = residual_.data(),
                      .x_stride = config_.width,
                      .y = qkv_.data(),
                      .y_stride = config_.qkv_width(),
                      .rows = rows_,
                      .transform = RowTransform::kRmsNorm,
                      .norm_weight = layer.attention_norm.data(),
                      .norm_eps = config_.norm_eps});
  ops_.rope_store({.qkv = qkv_.data(),
                   .qkv_stride = config_.qkv_width(),
                   .heads = config_.heads,
                   .q_norm = layer.q_norm.empty() ? nullptr : layer.q_norm.data(),
                   .k_norm = layer.k_norm.empty() ? nullptr : layer.k_norm.data(),
                   .norm_eps = config_.norm_eps,
                   .style = config_.rotation.style,
                   .cos = cos_.data(),
                   .sin = sin_.data(),
                   .half = static_cast<int32_t>(config_.rotation.inv_freq.size()),
                   .sequences = sequences_.data(),
                   .sequence_count = static_cast<int32_t>(sequences_.size()),
                   .kv = kv_,
                   .layer = index});
}

void LlamaForward::finish_layer(int32_t index) {
  const LayerWeights& layer = weights_.layers[static_cast<size_t>(index)];
  ops_.attention({.q = qkv_.data(),
                  .q_stride = config_.qkv_width(),
                  .y = attention_.data(),
                  .y_stride = config_.q_width(),
                  .heads = config_.heads,
                  .scale = 1.0f / std::sqrt(static_cast<float>(config_.head_dim)),
                  .sequences = sequences_.data(),
                  .sequence_count = static_cast<int32_t>(sequences_.size()),
                  .kv = kv_,
                  .layer = index});
  // Tile by tile, so that what one product writes is still in the cache when the next reads it.
  for (int32_t first = 0; first < rows_; first += kRowTile) {
    const int32_t rows = std::min(kRowTile, rows_ - first);
    float* const residual = residual_.data() + int64_t{first} * config_.width;
    project(layer.attention_output, {.x = attention_.data() + int64_t{first} * config_.q_width(),
                                     .x_stride = config_.q_width(),
                                     .y = residual,
                                     .y_stride = config_.width,
                                     .rows = rows,
                                     .accumulate = true});
    project(layer.gate_up, {.x = residual,
                            .x_stride = config_.width,
                            .y = gate_up_.data(),
                            .y_stride = 2 * config_.ffn,
                            .rows = rows,
                            .transform = RowTransform::kRmsNorm,
                            .norm_weight = layer.ffn_norm.data(),
                            .norm_eps = config_.norm_eps});
    project(layer.down, {.x = gate_up_.data(),
                         .x_stride = 2 * config_.ffn,
                         .y = residual,
                         .y_stride = config_.width,
                         .rows = rows,
                         .transform = RowTransform::kSwiGlu,
                         .accumulate = true});
  }
}

void LlamaForward::keep_wanted_rows(const StepPlan& plan) {
  const auto move_row = [](std::vector<float>& matrix, int32_t width, int32_t from, int32_t to) {
    std::memmove(matrix.data() + int64_t{to} * width, matrix.data() + int64_t{from} * width,
                 static_cast<size_t>(width) * sizeof(float));
  };
  int32_t kept = 0;
  size_t kept_sequences = 0;
  for (size_t index = 0; index < plan.sequences.size(); ++index) {
    const int32_t wanted = plan.sequences[index].logit_rows;
    SequenceRows sequence = sequences_[index];
    const int32_t skipped = sequence.rows - wanted;
    for (int32_t row = 0; row < wanted; ++row) {
      const int32_t from = sequence.first_row + skipped + row;
      if (from == kept + row) continue;
      move_row(residual_, config_.width, from, kept + row);
      move_row(qkv_, config_.qkv_width(), from, kept + row);
    }
    if (wanted == 0) continue;
    sequence.first_row = kept;
    sequence.rows = wanted;
    sequence.position += skipped;
    sequences_[kept_sequences++] = sequence;
    kept += wanted;
  }
  sequences_.resize(kept_sequences);
  rows_ = kept;
}

void LlamaForward::project(const Projection& projection, LinearArgs args) {
  args.bias = projection.bias.empty() ? nullptr : projection.bias.data();
  for (const PackedMatrix& matrix : projection.matrices) {
    args.weight = &matrix;
    ops_.linear(args);
    args.y += matrix.rows();
    if (args.bias != nullptr) args.bias += matrix.rows();
  }
}

}  // namespace warmpath
