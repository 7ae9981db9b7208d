// What the kernels' tests share: random data, GGUF-encoded random weights, paged caches. Test code only.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/half.h"
#include "kernels/huge_buffer.h"
#include "kernels/kv_layout.h"
#include "kernels/packed_matrix.h"

namespace warmpath::testing {

inline std::vector<float> random_floats(size_t count, uint64_t seed, float sigma = 1.0f) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0.0f, sigma);
  std::vector<float> floats(count);
  for (float& f : floats) f = normal(random);
  return floats;
}

// Rows of `type` as a model file holds them: random quants, plausible scales.
inline std::vector<std::byte> random_weights(TensorType type, int64_t rows, int64_t columns, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0.0f, 0.05f);
  const TensorLayout& layout = *tensor_layout(type);
  std::vector<std::byte> bytes(static_cast<size_t>(rows * columns / layout.block_elements * layout.block_bytes));
  for (size_t at = 0; at < bytes.size(); at += layout.block_bytes) {
    std::byte* block = bytes.data() + at;
    const auto put = [block](size_t offset, auto value) { std::memcpy(block + offset, &value, sizeof value); };
    const auto positive = [&](float mean) { return float_to_half(mean * (1.0f + 10.0f * std::abs(normal(random)))); };
    if (layout.block_elements > 1) {
      for (size_t i = 0; i < layout.block_bytes; ++i) block[i] = static_cast<std::byte>(random());
    }
    switch (type) {
      case TensorType::kF32:
        put(0, normal(random));
        break;
      case TensorType::kF16:
        put(0, float_to_half(normal(random)));
        break;
      case TensorType::kBF16:
        put(0, static_cast<uint16_t>(std::bit_cast<uint32_t>(normal(random)) >> 16));
        break;
      case TensorType::kQ4_0:
        put(0, positive(0.02f));
        break;
      case TensorType::kQ5_0:
        put(0, positive(0.01f));
        break;
      case TensorType::kQ4_1:
        put(0, positive(0.02f));
        put(2, float_to_half(-0.15f + normal(random)));
        break;
      case TensorType::kQ5_1:
        put(0, positive(0.01f));
        put(2, float_to_half(-0.15f + normal(random)));
        break;
      case TensorType::kQ8_0:
        put(0, positive(0.002f));
        break;
      case TensorType::kQ4_K:
        put(0, positive(0.0006f));
        put(2, positive(0.005f));
        break;
      case TensorType::kQ5_K:
        put(0, positive(0.0003f));
        put(2, positive(0.005f));
        break;
      case TensorType::kQ6_K:
        put(208, positive(0.0001f));
        break;
    }
  }
  return bytes;
}

inline PackedMatrix random_matrix(TensorType type, int64_t rows, int64_t columns, Precision precision, uint64_t seed) {
  const std::vector<std::byte> bytes = random_weights(type, rows, columns, seed);
  return std::move(PackedMatrix::pack({type, bytes, rows}, columns, precision).value());
}

// max |a - b|, and that over max |b|.
struct Difference {
  double absolute = 0;
  double relative = 0;
};

template <typename A, typename B>
Difference difference(const std::vector<A>& a, const std::vector<B>& b) {
  Difference d;
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double gap = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    d.absolute = gap > d.absolute || std::isnan(gap) ? gap : d.absolute;
    largest = std::max(largest, std::abs(static_cast<double>(b[i])));
  }
  d.relative = d.absolute / (largest > 0 ? largest : 1);
  return d;
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// A KV arena whose every byte starts as a NaN, and a shuffled block table a sequence.
class PagedCache {
 public:
  PagedCache(KvLayout layout, int32_t blocks, uint64_t seed)
      : layout_(layout), buffer_(HugeBuffer::allocate(static_cast<size_t>(layout.block_bytes() * blocks))) {
    std::memset(buffer_.data(), 0xff, buffer_.size());
    free_.resize(static_cast<size_t>(blocks));
    for (int32_t b = 0; b < blocks; ++b) free_[static_cast<size_t>(b)] = b;
    std::shuffle(free_.begin(), free_.end(), std::mt19937_64(seed));
  }

  KvArena arena() { return {buffer_.data(), layout_}; }
  std::vector<int32_t> table(int32_t tokens) {
    const auto count = static_cast<size_t>((tokens + KvLayout::kTokens - 1) / KvLayout::kTokens);
    std::vector<int32_t> table(free_.end() - static_cast<std::ptrdiff_t>(count), free_.end());
    free_.resize(free_.size() - count);
    return table;
  }

 private:
  KvLayout layout_;
  HugeBuffer buffer_;
  std::vector<int32_t> free_;
};

}  // namespace warmpath::testing
