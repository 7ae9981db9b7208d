// ggml's tensor types, read: the numbers that a row of a model file stands for, and the quants behind them.
//
// The formats are those of ggml's block structures (ggml/src/ggml-common.h) as the `gguf` Python package
// (gguf/quants.py) reads them; dequantize_row() gives its very bits. Thread safety: pure functions. Nothing is checked:
// callers have compared the row's bytes with tensor_layout().
#pragma once

#include <cstddef>
#include <cstdint>

#include "model_file/gguf_types.h"

namespace warmpath {

// 32 neighbouring columns of a quantized row. What they stand for, with q the unsigned quant (Q8_0: signed):
//   Q4_0, Q5_0     scale (q - 8 or 16)         Q4_K, Q5_K     (scale sub_scale[0]) q - min sub_min
//   Q4_1, Q5_1     scale q + min               Q6_K           (scale sub_scale[column / 16]) (q - 32)
//   Q8_0           scale q
struct QuantBlock {
  uint32_t quants[8];             // byte i of word s: column 4 s + i
  uint16_t scale;                 // f16
  uint16_t min;                   // f16; 0 for types without
  uint8_t sub_scale[2] = {1, 1};  // Q6_K: signed
  uint8_t sub_min = 0;
};

// Whether `type` is one of Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K.
bool is_quantized(TensorType type);
// Block `block` of the row at `row`. REQUIRES is_quantized(type).
void read_quant_block(TensorType type, const std::byte* row, int64_t block, QuantBlock& out);

// The `columns` floats of a row: a quantized type, F32, F16 or BF16. Whole blocks.
void dequantize_row(TensorType type, const std::byte* row, int64_t columns, float* out);

}  // namespace warmpath
