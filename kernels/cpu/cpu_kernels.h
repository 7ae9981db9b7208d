// CpuKernels: the innermost loops of one instruction set, as a table of functions. cpu_ops.cc cuts the work into tasks
// and calls them; each table is compiled in its own file with its own -m flags (kernels_*.cc).
//
// Every function handles a row (or a few) without knowing the rest of the batch; that is what makes the operations
// batch invariant. The floating-point ones are written once over a 16-lane vector type (vec16_*.h), with every fused
// multiply-add spelled out and contraction off, so all tables give the same bits.
// Thread safety: pure functions; the caller owns all memory.
#pragma once

#include <cstdint>

#include "kernels/kv_layout.h"
#include "kernels/panel_layout.h"

namespace warmpath {

enum class Isa : uint8_t;  // kernels/cpu/isa.h

// Rows of activations rounded to 8 bits: x = scale * q, one scale per 32 columns, q in [-127, 127].
struct QuantizedRows {
  const int8_t* q = nullptr;       // [rows][stride]
  int64_t stride = 0;              // at least K
  const float* scale = nullptr;    // [rows][K / 32]
  const float* sum = nullptr;      // [rows][K / 32]: scale * (sum of the 32 q), for weights with a minimum
  const int32_t* q_sum = nullptr;  // [rows][K / 16]: the sum of 16 q, for weights stored with an offset
};

// Some rows times some neighbouring panels of a PackedMatrix.
struct PanelProduct {
  const uint8_t* panel = nullptr;  // the first panel
  int64_t panel_bytes = 0;
  int32_t panels = 0;
  int32_t columns = 0;  // K
  int32_t rows = 0;
  QuantizedRows x8;          // quantized panels
  const float* x = nullptr;  // float panels: [rows][K]
  int64_t x_stride = 0;
  float* y = nullptr;  // [rows][valid], the first panel's first column
  int64_t y_stride = 0;
  int32_t valid = 0;            // columns of y that exist: <= 16 * panels
  const float* bias = nullptr;  // [valid] or null
  bool accumulate = false;
};

// Floats between the rows of a split's scores: not a power of two, or the rows would compete for the same cache sets.
inline constexpr int32_t kScoreStride = 256 + 16;

// Queries of one kv head against up to kAttentionSplit tokens. Scores are in base 2: q holds q * scale * log2(e).
struct AttentionSplit {
  const float* q = nullptr;          // [rows][head_dim]; unused with kInt16
  const int16_t* q16 = nullptr;      // kInt16: [rows][head_dim], by quantize16_by_length
  const float* q16_scale = nullptr;  // kInt16: [rows]
  int32_t rows = 0;
  int32_t head_dim = 0;
  const int32_t* valid = nullptr;  // [rows]: how many of the tokens a row sees; may be 0
  KvType type = KvType::kF16;
  const uint8_t* const* k = nullptr;  // [blocks] K planes
  const uint8_t* const* v = nullptr;  // [blocks] V planes
  float* scores = nullptr;            // scratch, [rows][kScoreStride]
  // Out: the softmax's partial state. A row with valid == 0 has none: unspecified.
  float* out = nullptr;  // [rows][head_dim], sum of 2^(s - max) * v
  float* max = nullptr;  // [rows]
  float* sum = nullptr;  // [rows], sum of 2^(s - max)
};

struct CpuKernels {
  // y = x * w / sqrt(mean(x^2) + eps)
  void (*rms_norm_row)(const float* x, const float* weight, float eps, int32_t width, float* y);
  void (*swiglu_row)(const float* gate, const float* up, int32_t width, float* y);
  void (*add_row)(const float* x, int32_t width, float* y);
  // width is a multiple of 32.
  void (*quantize_row)(const float* x, int32_t width, int8_t* q, float* scale, float* sum, int32_t* q_sum);

  void (*product[kPanelKinds])(const PanelProduct& product);  // by PanelKind

  // Rotates pairs (2i, 2i+1), or (i, i + half), of x[2 * half] in place.
  void (*rope_adjacent)(float* x, const float* cos, const float* sin, int32_t half);
  void (*rope_halves)(float* x, const float* cos, const float* sin, int32_t half);
  // Beyond the range of f16 becomes the largest f16, so that no infinity enters the cache.
  void (*to_f16)(const float* x, int32_t width, uint16_t* y);

  // x = scale * q, q in [-32767, 32767], the length of q at most 32767 (and rounding): keys and queries.
  void (*quantize16_by_length)(const float* x, int32_t width, int16_t* q, float* scale);
  // x = scale * q, q in [-8000, 8000]: values.
  void (*quantize16_by_largest)(const float* x, int32_t width, int16_t* q, float* scale);

  void (*scale_row)(const float* x, float factor, int32_t width, float* y);
  void (*attention_split)(const AttentionSplit& split);
  // (out, max, sum) of a row absorbs the next split's.
  void (*attention_merge)(float* out, float* max, float* sum, const float* next_out, float next_max, float next_sum,
                          int32_t head_dim);
};

const CpuKernels& scalar_kernels();
const CpuKernels& avx2_kernels();
const CpuKernels& avx512_kernels();
const CpuKernels& amx_kernels();
const CpuKernels& kernels_of(Isa isa);

}  // namespace warmpath
