// LlamaForward: the forward pass of a Llama-family model (llama, qwen2, qwen3) over one step: new tokens of several
// sequences, prompts and decodes alike, their rows one after the other.
//
// Batch invariance comes from the kernels (kernels/ops.h): every operation here works row by row, and nothing here
// depends on how the rows were grouped. No memory is allocated once the first step of the largest size has run. Thread
// safety: one step at a time. `weights` and `ops` outlive it.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "engine/backend.h"
#include "engine/model_config.h"
#include "engine/model_weights.h"
#include "kernels/ops.h"

namespace warmpath {

class LlamaForward {
 public:
  // Steps have at most `max_tokens` rows. `kv` holds `kv_blocks` blocks of the config's layout.
  LlamaForward(const ModelShape& config, const ModelWeights& weights, Ops& ops, KvArena kv, int64_t kv_blocks,
               int32_t max_tokens);

  // Stores the KV of every new token and writes the wanted logits, [rows][vocabulary] in plan order, to `logits`
  // (resized to fit). invalid_argument, and nothing is touched, when a token, position or block id is out of range.
  Status run(const StepPlan& plan, std::vector<float>& logits);

 private:
  Status check(const StepPlan& plan) const;
  void copy_beginnings(const StepPlan& plan);
  void gather_rows(const StepPlan& plan);
  // A layer's first half: q, k and v of every row; k and v go to the cache.
  void store_kv(int32_t layer);
  // Its second half: attention and feed-forward, added to the residual stream.
  void finish_layer(int32_t layer);
  // From here on only the rows whose logits are wanted matter: moves them to the front.
  void keep_wanted_rows(const StepPlan& plan);
  void project(const Projection& projection, LinearArgs args);

  const ModelShape config_;
  const ModelWeights& weights_;
  Ops& ops_;
  const KvArena kv_;
  const int64_t kv_blocks_;
  const int32_t max_tokens_;

  // The step: M rows; room for max_tokens in all but gate_up_, which holds one tile of the feed-forward.
  int32_t rows_ = 0;
  int32_t wanted_ = 0;
  std::vector<int32_t> token_ids_;
  std::vector<int32_t> positions_;
  std::vector<SequenceRows> sequences_;
  std::vector<BlockId> copy_from_;
  std::vector<BlockId> copy_to_;
  std::vector<float> cos_;        // [M][rotated / 2]
  std::vector<float> sin_;        // [M][rotated / 2]
  std::vector<float> residual_;   // [M][width]
  std::vector<float> qkv_;        // [M][qkv_width]
  std::vector<float> attention_;  // [M][q_width]
  std::vector<float> gate_up_;    // [min(M, 128)][2 ffn]
};

}  // namespace warmpath
