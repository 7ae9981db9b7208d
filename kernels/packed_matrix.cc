#include "kernels/packed_matrix.h"

#include <cstring>
#include <optional>
#include <string>

#include "base/check.h"
#include "kernels/half.h"

namespace warmpath {
namespace {

constexpr int64_t kLanes = PackedMatrix::kPanelRows;
constexpr int64_t kQ4BlockBytes = 2 * kLanes * 2 + 256;
constexpr int64_t kQ8BlockQuants = 512;

constexpr int64_t round_up_64(int64_t bytes) { return (bytes + 63) / 64 * 64; }

std::optional<PanelKind> panel_kind(TensorType type, Precision precision) {
  switch (type) {
    case TensorType::kF32:
    case TensorType::kF16:
    case TensorType::kBF16:
      return PanelKind::kF32;
    case TensorType::kQ4_0:
    case TensorType::kQ4_1:
      return precision == Precision::kFloat ? PanelKind::kF32 : PanelKind::kQ4;
    case TensorType::kQ8_0:
      return precision == Precision::kFloat ? PanelKind::kF32 : PanelKind::kQ8;
  }
  return std::nullopt;
}

int64_t panel_bytes_of(PanelKind kind, int64_t columns) {
  const int64_t blocks = columns / PackedMatrix::kQuantColumns;
  switch (kind) {
    case PanelKind::kQ4:
      return blocks * kQ4BlockBytes;
    case PanelKind::kQ8:
      return round_up_64(blocks * kLanes * 2) + blocks * kQ8BlockQuants;
    case PanelKind::kF32:
      break;
  }
  return columns * kLanes * 4;
}

template <typename T>
T read_as(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

// Where a panel keeps the quants of one lane: byte `column` of a kQ8 block; byte column % 16 of a kQ4 block, whose low
// nibble is column < 16.
int64_t quant_offset(int64_t column, int64_t lane) { return column / 4 * 64 + lane * 4 + column % 4; }

void pack_q4_row(TensorType type, const std::byte* source, int64_t columns, int64_t lane, uint8_t* panel) {
  const bool has_min = type == TensorType::kQ4_1;
  for (int64_t block = 0; block < columns / 32; ++block, panel += kQ4BlockBytes) {
    auto* scales = reinterpret_cast<uint16_t*>(panel);
    scales[lane] = read_as<uint16_t>(source);
    // Q4_0 is scale * (q - 8): the minimum is exact but for scales beyond 8191, which no weight has.
    scales[kLanes + lane] =
        has_min ? read_as<uint16_t>(source + 2) : float_to_half(-8.0f * half_to_float(scales[lane]));
    source += has_min ? 4 : 2;
    // ggml pairs columns j and j + 16 in a byte, as the panel does.
    for (int64_t j = 0; j < 16; ++j) panel[4 * kLanes + quant_offset(j, lane)] = read_as<uint8_t>(source + j);
    source += 16;
  }
}

void pack_q8_row(const std::byte* source, int64_t columns, int64_t lane, uint8_t* panel) {
  const int64_t blocks = columns / 32;
  auto* scales = reinterpret_cast<uint16_t*>(panel);
  uint8_t* quants = panel + round_up_64(blocks * kLanes * 2);
  for (int64_t block = 0; block < blocks; ++block, source += 34, quants += kQ8BlockQuants) {
    scales[block * kLanes + lane] = read_as<uint16_t>(source);
    for (int64_t j = 0; j < 32; ++j) quants[quant_offset(j, lane)] = read_as<uint8_t>(source + 2 + j);
  }
}

// The float that ggml defines for element `column` of a row.
float element(TensorType type, const std::byte* row, int64_t column) {
  const int64_t block = column / 32;
  const int64_t j = column % 32;
  const auto nibble = [j](const std::byte* quants) {
    const auto byte = read_as<uint8_t>(quants + j % 16);
    return static_cast<float>(j < 16 ? byte & 15 : byte >> 4);
  };
  switch (type) {
    case TensorType::kF32:
      return read_as<float>(row + 4 * column);
    case TensorType::kF16:
      return half_to_float(read_as<uint16_t>(row + 2 * column));
    case TensorType::kBF16: {
      const uint32_t bits = static_cast<uint32_t>(read_as<uint16_t>(row + 2 * column)) << 16;
      float value;
      std::memcpy(&value, &bits, sizeof value);
      return value;
    }
    case TensorType::kQ4_0:
      return half_to_float(read_as<uint16_t>(row + 18 * block)) * (nibble(row + 18 * block + 2) - 8.0f);
    case TensorType::kQ4_1:
      return half_to_float(read_as<uint16_t>(row + 20 * block)) * nibble(row + 20 * block + 4) +
             half_to_float(read_as<uint16_t>(row + 20 * block + 2));
    case TensorType::kQ8_0:
      return half_to_float(read_as<uint16_t>(row + 34 * block)) *
             static_cast<float>(read_as<int8_t>(row + 34 * block + 2 + j));
  }
  return 0;
}

}  // namespace

Result<PackedMatrix> PackedMatrix::pack(std::span<const MatrixPart> parts, int64_t columns, Precision precision) {
  if (parts.empty() || columns <= 0) return invalid_argument("a matrix to pack has no elements");
  PackedMatrix matrix;
  matrix.columns_ = columns;
  std::optional<PanelKind> kind;
  for (const MatrixPart& part : parts) {
    const std::string type_name(tensor_type_name(part.type));
    const std::optional<PanelKind> part_kind = panel_kind(part.type, precision);
    if (!part_kind) {
      return unimplemented("weights of type " + type_name +
                           " are not supported; use a file with F32, F16, BF16, Q4_0, Q4_1 or Q8_0 weights");
    }
    if (kind && *kind != *part_kind) {
      return invalid_argument("a " + type_name + " part cannot share a matrix with the others; pack it on its own");
    }
    kind = part_kind;
    const TensorLayout* layout = tensor_layout(part.type);
    if (layout == nullptr || columns % layout->block_elements != 0) {
      return invalid_argument(std::to_string(columns) + " columns are not whole blocks of " + type_name);
    }
    const int64_t row_bytes = columns / layout->block_elements * layout->block_bytes;
    if (part.rows <= 0 || part.data.size() / static_cast<size_t>(row_bytes) != static_cast<size_t>(part.rows) ||
        part.data.size() % static_cast<size_t>(row_bytes) != 0) {
      return invalid_argument("a " + type_name + " part of " + std::to_string(part.rows) + " x " +
                              std::to_string(columns) + " has " + std::to_string(part.data.size()) + " bytes");
    }
    matrix.rows_ += part.rows;
  }
  matrix.kind_ = *kind;
  matrix.panel_bytes_ = panel_bytes_of(*kind, columns);
  matrix.bytes_ = HugeBuffer::allocate(static_cast<size_t>(matrix.bytes()));
  if (matrix.bytes_.data() == nullptr) {
    return resource_exhausted("no memory for " + std::to_string(matrix.bytes()) + " bytes of packed weights");
  }

  int64_t row = 0;
  for (const MatrixPart& part : parts) {
    const int64_t row_bytes = static_cast<int64_t>(part.data.size()) / part.rows;
    for (int64_t i = 0; i < part.rows; ++i, ++row) {
      const std::byte* source = part.data.data() + i * row_bytes;
      uint8_t* panel = matrix.bytes_.data() + row / kLanes * matrix.panel_bytes_;
      const int64_t lane = row % kLanes;
      if (*kind == PanelKind::kQ4) {
        pack_q4_row(part.type, source, columns, lane, panel);
      } else if (*kind == PanelKind::kQ8) {
        pack_q8_row(source, columns, lane, panel);
      } else {
        auto* floats = reinterpret_cast<float*>(panel);
        for (int64_t k = 0; k < columns; ++k) floats[k * kLanes + lane] = element(part.type, source, k);
      }
    }
  }
  return matrix;
}

void PackedMatrix::read_row(int64_t row, float* out) const {
  WARMPATH_DCHECK(row >= 0 && row < rows_, "row out of range");
  const uint8_t* bytes = panel(row / kLanes);
  const int64_t lane = row % kLanes;
  const int64_t blocks = columns_ / kQuantColumns;
  switch (kind_) {
    case PanelKind::kQ4:
      for (int64_t block = 0; block < blocks; ++block, bytes += kQ4BlockBytes) {
        const auto* scales = reinterpret_cast<const uint16_t*>(bytes);
        const float scale = half_to_float(scales[lane]);
        const float min = half_to_float(scales[kLanes + lane]);
        for (int64_t j = 0; j < 16; ++j) {
          const uint8_t pair = bytes[4 * kLanes + quant_offset(j, lane)];
          out[32 * block + j] = scale * static_cast<float>(pair & 15) + min;
          out[32 * block + 16 + j] = scale * static_cast<float>(pair >> 4) + min;
        }
      }
      return;
    case PanelKind::kQ8: {
      const auto* scales = reinterpret_cast<const uint16_t*>(bytes);
      const auto* quants = reinterpret_cast<const int8_t*>(bytes + round_up_64(blocks * kLanes * 2));
      for (int64_t block = 0; block < blocks; ++block, quants += kQ8BlockQuants) {
        const float scale = half_to_float(scales[block * kLanes + lane]);
        for (int64_t j = 0; j < 32; ++j) {
          out[32 * block + j] = scale * static_cast<float>(quants[quant_offset(j, lane)]);
        }
      }
      return;
    }
    case PanelKind::kF32:
      break;
  }
  const auto* floats = reinterpret_cast<const float*>(bytes);
  for (int64_t k = 0; k < columns_; ++k) out[k] = floats[k * kLanes + lane];
}

}  // namespace warmpath
