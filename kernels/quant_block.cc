#include "kernels/quant_block.h"

#include <cstring>

#include "kernels/half.h"

namespace warmpath {
namespace {

constexpr uint32_t kNibbles = 0x0f0f0f0f;
constexpr uint32_t kOnes = 0x01010101;

template <typename T>
T read_as(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

uint32_t word(const std::byte* bytes, int index) { return read_as<uint32_t>(bytes + 4 * index); }

// Byte j: column j in the low nibble, column j + 16 in the high one.
void read_nibbles(const std::byte* bytes, QuantBlock& out) {
  for (int s = 0; s < 4; ++s) {
    out.quants[s] = word(bytes, s) & kNibbles;
    out.quants[s + 4] = word(bytes, s) >> 4 & kNibbles;
  }
}

// Bit j of `bits` is the fifth bit of column j.
void add_fifth_bits(uint32_t bits, QuantBlock& out) {
  for (int s = 0; s < 8; ++s) {
    const uint32_t four = bits >> (4 * s);
    out.quants[s] |= (four & 1) << 4 | (four & 2) << 11 | (four & 4) << 18 | (four & 8) << 25;
  }
}

// The 6-bit scale and minimum of sub-block `b` from the 12 bytes of a Q4_K or Q5_K block: the first four pairs lie in
// six bits of bytes 0-3 and 4-7; of the others the low nibbles are in bytes 8-11 and the top bits above the first
// four's.
void read_sub_scales(const std::byte* packed, int64_t b, QuantBlock& out) {
  const auto at = [packed](int64_t i) { return std::to_integer<uint32_t>(packed[i]); };
  const uint32_t scale = b < 4 ? at(b) & 63 : (at(b + 4) & 15) | at(b - 4) >> 6 << 4;
  const uint32_t min = b < 4 ? at(b + 4) & 63 : at(b + 4) >> 4 | at(b) >> 6 << 4;
  out.sub_scale[0] = out.sub_scale[1] = static_cast<uint8_t>(scale);
  out.sub_min = static_cast<uint8_t>(min);
}

// 64 columns share 32 bytes: sub-block 2 n in their low nibbles, 2 n + 1 in the high ones.
void read_k_nibbles(const std::byte* nibbles, int64_t b, QuantBlock& out) {
  const std::byte* bytes = nibbles + b / 2 * 32;
  for (int s = 0; s < 8; ++s) out.quants[s] = word(bytes, s) >> (b % 2 * 4) & kNibbles;
}

void read_q4_k(const std::byte* block, int64_t b, QuantBlock& out) {
  out.scale = read_as<uint16_t>(block);
  out.min = read_as<uint16_t>(block + 2);
  read_sub_scales(block + 4, b, out);
  read_k_nibbles(block + 16, b, out);
}

void read_q5_k(const std::byte* block, int64_t b, QuantBlock& out) {
  out.scale = read_as<uint16_t>(block);
  out.min = read_as<uint16_t>(block + 2);
  read_sub_scales(block + 4, b, out);
  read_k_nibbles(block + 48, b, out);
  for (int s = 0; s < 8; ++s) out.quants[s] |= (word(block + 16, s) >> b & kOnes) << 4;
}

// Two halves of 128 columns, each 64 bytes of low nibbles and 32 bytes of bit pairs.
void read_q6_k(const std::byte* block, int64_t b, QuantBlock& out) {
  const std::byte* low = block + b / 4 * 64 + b % 2 * 32;
  const std::byte* high = block + 128 + b / 4 * 32;
  for (int s = 0; s < 8; ++s) {
    out.quants[s] = (word(low, s) >> (b % 4 / 2 * 4) & kNibbles) | (word(high, s) >> (b % 4 * 2) & 0x03030303) << 4;
  }
  std::memcpy(out.sub_scale, block + 192 + 2 * b, 2);
  out.scale = read_as<uint16_t>(block + 208);
  out.min = 0;
}

float bf16_to_float(uint16_t half) {
  const uint32_t bits = static_cast<uint32_t>(half) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// The block's 32 floats, as numpy computes them: every product and sum rounded to f32 in this order.
void dequantize_block(TensorType type, const QuantBlock& block, float* out) {
  const float scale = half_to_float(block.scale);
  const float min = half_to_float(block.min);
  const auto* q = reinterpret_cast<const uint8_t*>(block.quants);
  switch (type) {
    case TensorType::kQ4_0:
    case TensorType::kQ5_0: {
      const int zero = type == TensorType::kQ4_0 ? 8 : 16;
      for (int i = 0; i < 32; ++i) out[i] = scale * static_cast<float>(q[i] - zero);
      return;
    }
    case TensorType::kQ4_1:
    case TensorType::kQ5_1:
      for (int i = 0; i < 32; ++i) out[i] = scale * static_cast<float>(q[i]) + min;
      return;
    case TensorType::kQ4_K:
    case TensorType::kQ5_K: {
      const float factor = scale * static_cast<float>(block.sub_scale[0]);
      const float offset = min * static_cast<float>(block.sub_min);
      for (int i = 0; i < 32; ++i) out[i] = factor * static_cast<float>(q[i]) - offset;
      return;
    }
    case TensorType::kQ6_K:
      for (int i = 0; i < 32; ++i) {
        const float factor = scale * static_cast<float>(static_cast<int8_t>(block.sub_scale[i / 16]));
        out[i] = factor * static_cast<float>(q[i] - 32);
      }
      return;
    default:  // Q8_0
      for (int i = 0; i < 32; ++i) out[i] = scale * static_cast<float>(static_cast<int8_t>(q[i]));
      return;
  }
}

}  // namespace

bool is_quantized(TensorType type) {
  switch (type) {
    case TensorType::kF32:
    case TensorType::kF16:
    case TensorType::kBF16:
      return false;
    default:
      return is_supported(type);
  }
}

void read_quant_block(TensorType type, const std::byte* row, int64_t block, QuantBlock& out) {
  switch (type) {
    case TensorType::kQ4_0:
      row += 18 * block;
      out.scale = read_as<uint16_t>(row);
      out.min = 0;
      return read_nibbles(row + 2, out);
    case TensorType::kQ4_1:
      row += 20 * block;
      out.scale = read_as<uint16_t>(row);
      out.min = read_as<uint16_t>(row + 2);
      return read_nibbles(row + 4, out);
    case TensorType::kQ5_0:
      row += 22 * block;
      out.scale = read_as<uint16_t>(row);
      out.min = 0;
      read_nibbles(row + 6, out);
      return add_fifth_bits(read_as<uint32_t>(row + 2), out);
    case TensorType::kQ5_1:
      row += 24 * block;
      out.scale = read_as<uint16_t>(row);
      out.min = read_as<uint16_t>(row + 2);
      read_nibbles(row + 8, out);
      return add_fifth_bits(read_as<uint32_t>(row + 4), out);
    case TensorType::kQ4_K:
      return read_q4_k(row + block / 8 * 144, block % 8, out);
    case TensorType::kQ5_K:
      return read_q5_k(row + block / 8 * 176, block % 8, out);
    case TensorType::kQ6_K:
      return read_q6_k(row + block / 8 * 210, block % 8, out);
    default:  // Q8_0
      row += 34 * block;
      out.scale = read_as<uint16_t>(row);
      out.min = 0;
      std::memcpy(out.quants, row + 2, sizeof out.quants);
      return;
  }
}

void dequantize_row(TensorType type, const std::byte* row, int64_t columns, float* out) {
  switch (type) {
    case TensorType::kF32:
      std::memcpy(out, row, static_cast<size_t>(columns) * sizeof(float));
      return;
    case TensorType::kF16:
      for (int64_t k = 0; k < columns; ++k) out[k] = half_to_float(read_as<uint16_t>(row + 2 * k));
      return;
    case TensorType::kBF16:
      for (int64_t k = 0; k < columns; ++k) out[k] = bf16_to_float(read_as<uint16_t>(row + 2 * k));
      return;
    default:
      QuantBlock block;
      for (int64_t b = 0; b < columns / 32; ++b) {
        read_quant_block(type, row, b, block);
        dequantize_block(type, block, out + 32 * b);
      }
      return;
  }
}

}  // namespace warmpath
