#include "kernels/packed_matrix.h"

#include <bit>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "base/check.h"
#include "kernels/half.h"
#include "kernels/quant_block.h"

namespace warmpath {
namespace {

constexpr int64_t kLanes = PackedMatrix::kPanelRows;

constexpr int64_t round_up_64(int64_t bytes) { return (bytes + 63) / 64 * 64; }

// nullopt for 8-bit and float panels.
constexpr std::optional<QuantPanel> quant_panel(PanelKind kind) {
  switch (kind) {
    case PanelKind::kQ4:
      return kPanelQ4;
    case PanelKind::kQ5:
      return kPanelQ5;
    case PanelKind::kQ4K:
      return kPanelQ4K;
    case PanelKind::kQ5K:
      return kPanelQ5K;
    case PanelKind::kQ6K:
      return kPanelQ6K;
    default:
      return std::nullopt;
  }
}

int64_t panel_bytes_of(PanelKind kind, int64_t columns) {
  if (const auto panel = quant_panel(kind)) return columns / panel->columns() * panel->group_bytes();
  const int64_t blocks = columns / PackedMatrix::kQuantColumns;
  switch (kind) {
    case PanelKind::kQ8:
      return panel_q8_bytes(blocks);
    case PanelKind::kF32:
      return columns * kLanes * 4;
    default:
      return round_up_64(columns * kLanes * 2);
  }
}

// Q4_0 and Q5_0 are scale * (q - zero): the minimum is exact but for scales beyond 4095, which no weight has.
uint16_t minimum_of(TensorType type, const QuantBlock& block) {
  switch (type) {
    case TensorType::kQ4_0:
      return float_to_half(-8.0f * half_to_float(block.scale));
    case TensorType::kQ5_0:
      return float_to_half(-16.0f * half_to_float(block.scale));
    case TensorType::kQ4_K:
    case TensorType::kQ5_K:
      return block.min ^ 0x8000;  // it is subtracted
    default:
      return block.min;
  }
}

void pack_quant_row(TensorType type, const std::byte* source, int64_t columns, int64_t lane, const QuantPanel& panel,
                    uint8_t* group) {
  QuantBlock block;
  for (int64_t index = 0; index < columns / 32; ++index) {
    const auto b = static_cast<int32_t>(index % panel.blocks);
    read_quant_block(type, source, index, block);
    if (b == 0) {
      auto* halves = reinterpret_cast<uint16_t*>(group);
      halves[lane] = block.scale;
      halves[kLanes + lane] = minimum_of(type, block);
    }
    if (panel.bits == 6) {
      for (int64_t half = 0; half < 2; ++half) {
        group[kPanelSubScaleOffset + (2 * b + half) * kLanes + lane] = block.sub_scale[half];
      }
    } else if (panel.scaled_twice()) {
      group[kPanelSubScaleOffset + b * kLanes + lane] = block.sub_scale[0];
      group[kPanelSubMinOffset + b * kLanes + lane] = block.sub_min;
    }
    auto* low = reinterpret_cast<uint32_t*>(group + panel.low_offset(b));
    for (int64_t j = 0; j < 4; ++j) {
      low[16 * j + lane] = (block.quants[j] & 0x0f0f0f0f) | (block.quants[j + 4] & 0x0f0f0f0f) << 4;
    }
    auto* high = reinterpret_cast<uint32_t*>(group + panel.high_offset(b));
    if (panel.bits == 5) {
      uint32_t bits = 0;
      for (int64_t s = 0; s < 8; ++s) bits |= (block.quants[s] >> 4 & 0x01010101) << s;
      high[lane] = bits;
    } else if (panel.bits == 6) {
      for (int64_t half = 0; half < 2; ++half) {
        uint32_t bits = 0;
        for (int64_t s = 0; s < 4; ++s) bits |= (block.quants[4 * half + s] >> 4 & 0x03030303) << (2 * s);
        high[16 * half + lane] = bits;
      }
    }
    if (b == panel.blocks - 1) group += panel.group_bytes();
  }
}

void pack_q8_row(const std::byte* source, int64_t columns, int64_t lane, uint8_t* panel) {
  const int64_t blocks = columns / 32;
  QuantBlock block;
  for (int64_t index = 0; index < blocks; ++index) {
    read_quant_block(TensorType::kQ8_0, source, index, block);
    reinterpret_cast<uint16_t*>(panel + panel_q8_scales(index))[lane] = block.scale;
    auto* quants = reinterpret_cast<uint32_t*>(panel + panel_q8_quants(index));
    for (int64_t s = 0; s < 8; ++s) quants[16 * s + lane] = block.quants[s];
  }
}

void pack_halves_row(const std::byte* source, int64_t columns, int64_t lane, uint8_t* panel) {
  auto* halves = reinterpret_cast<uint16_t*>(panel);
  for (int64_t k = 0; k < columns; ++k) std::memcpy(halves + k * kLanes + lane, source + 2 * k, 2);
}

// Of the row that `lane` of a panel is; the inverse of pack_quant_row().
void read_quant_row(const QuantPanel& panel, const uint8_t* group, int64_t columns, int64_t lane, float* out) {
  for (int64_t index = 0; index < columns / 32; ++index, out += 32) {
    const auto b = static_cast<int32_t>(index % panel.blocks);
    const auto* halves = reinterpret_cast<const uint16_t*>(group);
    const float scale = half_to_float(halves[lane]);
    const float min = half_to_float(halves[kLanes + lane]);
    const uint8_t* low = group + panel.low_offset(b);
    const uint8_t* high = group + panel.high_offset(b);
    const uint8_t* sub_scale = group + kPanelSubScaleOffset;
    const float factor =
        panel.scaled_twice() && panel.bits < 6 ? scale * static_cast<float>(sub_scale[b * kLanes + lane]) : scale;
    const float offset =
        panel.scaled_twice() ? min * static_cast<float>(group[kPanelSubMinOffset + b * kLanes + lane]) : min;
    for (int64_t column = 0; column < 32; ++column) {
      const int64_t s = column / 4;
      const int64_t byte = lane * 4 + column % 4;
      int q = s < 4 ? low[s * 64 + byte] & 15 : low[(s - 4) * 64 + byte] >> 4;
      if (panel.bits == 6) {
        q |= (high[s / 4 * 64 + byte] >> (s % 4 * 2) & 3) << 4;
        const auto s6 = static_cast<int8_t>(sub_scale[(2 * b + column / 16) * kLanes + lane]);
        out[column] = scale * static_cast<float>(s6) * static_cast<float>(q - 32);
        continue;
      }
      if (panel.bits == 5) q |= (high[byte] >> s & 1) << 4;
      out[column] = factor * static_cast<float>(q) + offset;
    }
    if (b == panel.blocks - 1) group += panel.group_bytes();
  }
}

}  // namespace

int64_t PackedMatrix::bytes_of(PanelKind kind, int64_t rows, int64_t columns) {
  return (rows + kPanelRows - 1) / kPanelRows * panel_bytes_of(kind, columns);
}

PanelKind PackedMatrix::panel_kind(TensorType type, Precision precision) {
  switch (type) {
    case TensorType::kF32:
      return PanelKind::kF32;
    case TensorType::kF16:
      return PanelKind::kF16;
    case TensorType::kBF16:
      return PanelKind::kBF16;
    default:
      break;
  }
  if (precision == Precision::kFloat) return PanelKind::kF32;
  switch (type) {
    case TensorType::kQ5_0:
    case TensorType::kQ5_1:
      return PanelKind::kQ5;
    case TensorType::kQ8_0:
      return PanelKind::kQ8;
    case TensorType::kQ4_K:
      return PanelKind::kQ4K;
    case TensorType::kQ5_K:
      return PanelKind::kQ5K;
    case TensorType::kQ6_K:
      return PanelKind::kQ6K;
    default:
      return PanelKind::kQ4;
  }
}

Result<PackedMatrix> PackedMatrix::pack(std::span<const MatrixPart> parts, int64_t columns, Precision precision) {
  if (parts.empty() || columns <= 0) return invalid_argument("a matrix to pack has no elements");
  PackedMatrix matrix;
  matrix.columns_ = columns;
  for (const MatrixPart& part : parts) {
    const std::string type_name(tensor_type_name(part.type));
    if (!is_supported(part.type)) {
      return unimplemented("weights of type " + type_name +
                           " are not supported; supported: " + std::string(supported_tensor_types()));
    }
    const PanelKind kind = panel_kind(part.type, precision);
    if (matrix.rows_ > 0 && kind != matrix.kind_) {
      return invalid_argument("a " + type_name + " part cannot share a matrix with the others; pack it on its own");
    }
    matrix.kind_ = kind;
    const TensorLayout* layout = tensor_layout(part.type);
    if (columns % layout->block_elements != 0) {
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
  matrix.panel_bytes_ = panel_bytes_of(matrix.kind_, columns);
  matrix.bytes_ = HugeBuffer::allocate(static_cast<size_t>(matrix.bytes()));
  if (matrix.bytes_.data() == nullptr) {
    return resource_exhausted("no memory for " + std::to_string(matrix.bytes()) + " bytes of packed weights");
  }

  const auto quants = quant_panel(matrix.kind_);
  std::vector<float> floats(matrix.kind_ == PanelKind::kF32 ? static_cast<size_t>(columns) : 0);
  int64_t row = 0;
  for (const MatrixPart& part : parts) {
    const int64_t row_bytes = static_cast<int64_t>(part.data.size()) / part.rows;
    for (int64_t i = 0; i < part.rows; ++i, ++row) {
      const std::byte* source = part.data.data() + i * row_bytes;
      uint8_t* panel = matrix.bytes_.data() + row / kLanes * matrix.panel_bytes_;
      const int64_t lane = row % kLanes;
      if (quants) {
        pack_quant_row(part.type, source, columns, lane, *quants, panel);
      } else if (matrix.kind_ == PanelKind::kQ8) {
        pack_q8_row(source, columns, lane, panel);
      } else if (matrix.kind_ == PanelKind::kF32) {
        dequantize_row(part.type, source, columns, floats.data());
        auto* to = reinterpret_cast<float*>(panel);
        for (int64_t k = 0; k < columns; ++k) to[k * kLanes + lane] = floats[static_cast<size_t>(k)];
      } else {
        pack_halves_row(source, columns, lane, panel);
      }
    }
  }
  return matrix;
}

void PackedMatrix::read_row(int64_t row, float* out) const {
  WARMPATH_DCHECK(row >= 0 && row < rows_, "row out of range");
  const uint8_t* bytes = panel(row / kLanes);
  const int64_t lane = row % kLanes;
  if (const auto quants = quant_panel(kind_)) return read_quant_row(*quants, bytes, columns_, lane, out);
  const auto* floats = reinterpret_cast<const float*>(bytes);
  const auto* halves = reinterpret_cast<const uint16_t*>(bytes);
  switch (kind_) {
    case PanelKind::kF16:
      for (int64_t k = 0; k < columns_; ++k) out[k] = half_to_float(halves[k * kLanes + lane]);
      return;
    case PanelKind::kBF16:
      for (int64_t k = 0; k < columns_; ++k) {
        out[k] = std::bit_cast<float>(static_cast<uint32_t>(halves[k * kLanes + lane]) << 16);
      }
      return;
    case PanelKind::kF32:
      for (int64_t k = 0; k < columns_; ++k) out[k] = floats[k * kLanes + lane];
      return;
    default:
      break;
  }
  const int64_t blocks = columns_ / kQuantColumns;
  for (int64_t block = 0; block < blocks; ++block) {
    const float scale = half_to_float(reinterpret_cast<const uint16_t*>(bytes + panel_q8_scales(block))[lane]);
    const auto* quants = reinterpret_cast<const int8_t*>(bytes + panel_q8_quants(block));
    for (int64_t j = 0; j < 32; ++j) {
      out[32 * block + j] = scale * static_cast<float>(quants[j / 4 * 64 + lane * 4 + j % 4]);
    }
  }
}

}  // namespace warmpath
