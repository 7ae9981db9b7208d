// Ops: every operation of a Llama-family forward pass, named once, with shapes. CpuOps (cpu/cpu_ops.h) implements them
// for each instruction set; the CUDA back end takes the same argument structs.
//
// Conventions
//  - All tensors are row-major f32 in the device's memory; `x_stride` and its like are in elements, between rows.
//  - Pointers are borrowed for the call (CUDA: until the stream has passed it). Argument structs are plain data.
//  - M rows are the new tokens of a step, all sequences one after the other.
//
// Batch invariance: a row's result depends on that row alone, bit for bit: not on M, on its place in the batch, on how
// a prompt was cut into chunks, or on the number of threads. Every sum has a fixed order (docs/kernels.md), attention
// splits the context every kAttentionSplit tokens whatever the batch. The CPU paths (scalar, avx2, avx512, amx) even agree
// with one another bit for bit.
//
// Thread safety: one caller at a time per Ops object. A call returns when its result is written (CPU) or enqueued
// (CUDA).
#pragma once

#include <cstdint>

#include "kernels/kv_layout.h"

namespace warmpath {

class PackedMatrix;  // kernels/packed_matrix.h

// Attention over a long context is the ordered combination of partial results over this many tokens.
inline constexpr int32_t kAttentionSplit = 256;

// What linear() does to a row of x before the product.
enum class RowTransform : uint8_t {
  kNone,     // x is [M][K]
  kRmsNorm,  // x is [M][K]; the row becomes x / sqrt(mean(x^2) + eps) * norm_weight
  kSwiGlu,   // x is [M][2K], gate then up; the row becomes silu(gate) * up
};

// y[M][N] (=|+=) transform(x)[M][K] . W^T (+ bias). W is [N][K] as in the model file.
struct LinearArgs {
  const PackedMatrix* weight = nullptr;  // N = weight->rows(), K = weight->columns()
  const float* x = nullptr;
  int64_t x_stride = 0;
  float* y = nullptr;
  int64_t y_stride = 0;
  int32_t rows = 0;                  // M
  const int32_t* row_ids = nullptr;  // [M] or null: output row i is made of input row row_ids[i] (logits of few tokens)
  RowTransform transform = RowTransform::kNone;
  const float* norm_weight = nullptr;  // [K], kRmsNorm only
  float norm_eps = 0;
  const float* bias = nullptr;  // [N] or null
  bool accumulate = false;      // y += instead of y = (the residual stream)
  // Quantized weights only: x keeps two 8-bit digits instead of one, for twice the products. What one digit rounds away
  // is rounded to 8 bits in turn.
  bool two_digits = false;
};

// y[i] = row token_ids[i] of `table`, dequantized. y is [M][K]. REQUIRES 0 <= token_ids[i] < table->rows().
struct EmbeddingArgs {
  const PackedMatrix* table = nullptr;
  const int32_t* token_ids = nullptr;  // [M]
  float* y = nullptr;
  int64_t y_stride = 0;
  int32_t rows = 0;
  float scale = 1;  // multiplies each element (Gemma); 1 leaves the bits alone
};

// y = x / sqrt(mean(x^2) + eps) * weight, row by row. x and y are [M][width] and may be the same.
struct RmsNormArgs {
  const float* x = nullptr;
  int64_t x_stride = 0;
  const float* weight = nullptr;  // [width]
  float eps = 0;
  float* y = nullptr;
  int64_t y_stride = 0;
  int32_t rows = 0;
  int32_t width = 0;
};

// y = silu(gate) * up. gate and up are [M][width]; y may be gate.
struct SwiGluArgs {
  const float* gate = nullptr;
  const float* up = nullptr;
  int64_t x_stride = 0;  // of gate and up
  float* y = nullptr;
  int64_t y_stride = 0;
  int32_t rows = 0;
  int32_t width = 0;
};

// y += x, [M][width].
struct AddArgs {
  const float* x = nullptr;
  int64_t x_stride = 0;
  float* y = nullptr;
  int64_t y_stride = 0;
  int32_t rows = 0;
  int32_t width = 0;
};

// Rotation angles of a step, made once and used by every layer:
//   angle = f32(position) * inv_freq[i];  cos, sin are [M][half].
struct RopeAnglesArgs {
  const int32_t* positions = nullptr;  // [M]
  const float* inv_freq = nullptr;     // [half], half = rotated dimensions / 2
  int32_t half = 0;
  int32_t rows = 0;
  float scale = 1;  // of cos and sin (YaRN's attention factor)
  float* cos = nullptr;
  float* sin = nullptr;
};

enum class RopeStyle : uint8_t {
  kAdjacent,  // pairs (2i, 2i+1): llama's GGUF files ("norm")
  kHalves,    // pairs (i, i + half): Hugging Face order ("neox"), Qwen
};

// A sequence's share of the step's rows: rows [first_row, first_row + rows) are the tokens at positions
// [position, position + rows). Token p lives in slot p % 16 of block block_table[p / 16].
struct SequenceRows {
  int32_t first_row = 0;
  int32_t rows = 0;
  int32_t position = 0;
  const int32_t* block_table = nullptr;  // covers position + rows tokens
};

// Normalizes the heads of q and k where asked (x / sqrt(mean(x^2) + eps) * weight), rotates q in place, rotates k, and
// stores k and v into the paged cache.
// qkv is [M][(heads + 2 * kv_heads) * head_dim]: q heads, then k heads, then v heads.
struct RopeStoreArgs {
  float* qkv = nullptr;
  int64_t qkv_stride = 0;
  int32_t heads = 0;              // query heads; kv_heads and head_dim are the arena layout's
  const float* q_norm = nullptr;  // [head_dim] or null
  const float* k_norm = nullptr;  // [head_dim] or null
  float norm_eps = 0;
  RopeStyle style = RopeStyle::kAdjacent;
  const float* cos = nullptr;  // [M][half]
  const float* sin = nullptr;  // [M][half]
  int32_t half = 0;            // 2 * half <= head_dim; dimensions beyond are copied
  const SequenceRows* sequences = nullptr;
  int32_t sequence_count = 0;
  KvArena kv;
  int32_t layer = 0;
};

// Causal attention with grouped queries over paged blocks: the row at position p attends to tokens 0..p of its
// sequence, whose keys and values are all stored. Query head h reads kv head h / (heads / kv_heads). y[M][heads *
// head_dim] = softmax(scale * q . K^T) . V
struct AttentionArgs {
  const float* q = nullptr;  // [M][heads * head_dim]
  int64_t q_stride = 0;
  float* y = nullptr;
  int64_t y_stride = 0;
  int32_t heads = 0;  // a multiple of kv_heads
  float scale = 0;    // usually 1 / sqrt(head_dim)
  const SequenceRows* sequences = nullptr;
  int32_t sequence_count = 0;
  KvArena kv;
  int32_t layer = 0;
};

// Blocks to[i] become copies of blocks from[i]; no block of `from` is one of `to`, and those of `to` differ.
struct CopyBlocksArgs {
  KvArena kv;
  const int32_t* from = nullptr;  // [count]
  const int32_t* to = nullptr;    // [count]
  int32_t count = 0;
};

class Ops {
 public:
  virtual ~Ops() = default;

  virtual void embedding(const EmbeddingArgs& args) = 0;
  virtual void linear(const LinearArgs& args) = 0;
  virtual void rms_norm(const RmsNormArgs& args) = 0;
  virtual void swiglu(const SwiGluArgs& args) = 0;
  virtual void add(const AddArgs& args) = 0;
  virtual void rope_angles(const RopeAnglesArgs& args) = 0;
  virtual void rope_store(const RopeStoreArgs& args) = 0;
  virtual void attention(const AttentionArgs& args) = 0;
  virtual void copy_blocks(const CopyBlocksArgs& args) = 0;
};

}  // namespace warmpath
