// PackedMatrix: a weight matrix [rows N][columns K], repacked from the model file at load into panels of 16 rows, the
// shape that every instruction set's kernels read (kernels/panel_layout.h). Nothing is rounded: a panel holds the very
// numbers of the file.
//
//   kind          made of          bits a weight (in the file)     weight
//   kQ4           Q4_0, Q4_1       5 (4.5, 5)                      scale * q + min
//   kQ5           Q5_0, Q5_1       6 (5.5, 6)                      scale * q + min
//   kQ8           Q8_0             8.5 (8.5)                       scale * q
//   kQ4K          Q4_K             4.625 (4.5)                     (scale * s) * q - min * m
//   kQ5K          Q5_K             5.625 (5.5)                     (scale * s) * q - min * m
//   kQ6K          Q6_K             6.625 (6.5625)                  (scale * s) * (q - 32)
//   kF16, kBF16   F16, BF16        16
//   kF32          F32, or dequantized
//
// Precision::kFloat dequantizes to f32 (16-bit floats stay as they are): the reference path. Precision::kQuantized
// keeps quantized weights and multiplies them with activations rounded to 8 bits per 32 columns. Rows beyond N are
// zero.
//
// Thread safety: immutable after pack(); movable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "kernels/huge_buffer.h"
#include "kernels/panel_layout.h"
#include "model_file/gguf_types.h"

namespace warmpath {

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

  // The panels that weights of `type` become.
  static PanelKind panel_kind(TensorType type, Precision precision);
  // Memory of a matrix.
  static int64_t bytes_of(PanelKind kind, int64_t rows, int64_t columns);
  static bool is_float(PanelKind kind) { return kind >= PanelKind::kF16; }

  // The parts become one matrix, one below the other (q, k, v; gate, up); their panel kinds must be equal. Types other
  // than the supported ones (model_file/gguf_types.h) are refused by name.
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
