// PackedMatrix: a weight matrix [rows N][columns K], repacked from the model file at load into panels of 16 rows, the
// shape that every instruction set's kernels read. Bytes of one panel, all runs 64-byte aligned:
//
//   kQ4   f16 scale[K/32][16], f16 min[K/32][16], u4 [K/32][4][64]:   weight = scale * q + min   (5 bits a weight)
//   kQ8   f16 scale[K/32][16], s8 [K/32][8][64]:                      weight = scale * q
//   kF32  f32 [K][16]
//
// A quant block is 32 columns. In a 64-byte group byte 4 * row + i is column 4 * step + i; a kQ4 group j holds step j
// in its low nibbles and step j + 4 in its high ones. kQ4 interleaves the scales with the quants: one quant block of a
// panel is [scale 32 B][min 32 B][u4 256 B]. Rows beyond N are zero.
//
// Precision::kFloat dequantizes everything to f32: the reference path. Precision::kQuantized keeps 4 and 8 bit weights
// as they are (no rounding is added) and multiplies them with activations rounded to 8 bits per 32 columns.
//
// Thread safety: immutable after pack(); movable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "kernels/huge_buffer.h"
#include "model_file/gguf_types.h"

namespace warmpath {

enum class PanelKind : uint8_t { kQ4, kQ8, kF32 };
enum class Precision : uint8_t { kFloat, kQuantized };

// Some rows of a matrix as they lie in the model file.
struct MatrixPart {
  TensorType type = TensorType::kF32;
  std::span<const std::byte> data;  // rows * row bytes of `type`
  int64_t rows = 0;
};

class PackedMatrix {
 public:
  static constexpr int64_t kPanelRows = 16;
  static constexpr int64_t kQuantColumns = 32;

  PackedMatrix() = default;

  // The parts become one matrix, one below the other (q, k, v; gate, up). Types: F32, F16, BF16, Q4_0, Q4_1, Q8_0.
  // With kQuantized, F32, F16 and BF16 stay float, and all parts must end in the same kind of panel.
  static Result<PackedMatrix> pack(std::span<const MatrixPart> parts, int64_t columns, Precision precision);
  static Result<PackedMatrix> pack(const MatrixPart& part, int64_t columns, Precision precision) {
    return pack(std::span<const MatrixPart>(&part, 1), columns, precision);
  }

  PanelKind kind() const { return kind_; }
  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  int64_t panels() const { return (rows_ + kPanelRows - 1) / kPanelRows; }
  int64_t panel_bytes() const { return panel_bytes_; }
  const uint8_t* panel(int64_t index) const { return bytes_.data() + index * panel_bytes_; }
  int64_t bytes() const { return panels() * panel_bytes_; }

  // out[columns] = the dequantized row. REQUIRES 0 <= row < rows().
  void read_row(int64_t row, float* out) const;

 private:
  PanelKind kind_ = PanelKind::kF32;
  int64_t rows_ = 0;
  int64_t columns_ = 0;
  int64_t panel_bytes_ = 0;
  HugeBuffer bytes_;
};

}  // namespace warmpath
