// Attention of a few query rows over one split of a 16-bit integer cache (kv_layout.h), written once over I and V.
// Included by kernels_*.cc, which sets kIntRows and kIntTile. Every product and sum over dimensions or tokens is exact
// in 32 bits:
//
//   score  |q| * |k| <= (32767 + 4)^2 < 2^31, by Cauchy and Schwarz; then times both scales, as f32
//   value  the weights w of a row, already times the value scales, are rounded to integers whose sum is at most 2^18 +
//   128 (half
//          a unit of rounding each) and which are at most 32767; |v| <= 8000, so the sum stays below 2^31
#pragma once

#include "kernels/cpu/attention_float.inl"
#include "kernels/cpu/row_kernels.inl"

namespace warmpath {
namespace {

inline const int16_t* elements(const uint8_t* plane) { return reinterpret_cast<const int16_t*>(plane + 64); }
inline V scales(const uint8_t* plane) { return v_load(reinterpret_cast<const float*>(plane)); }

template <int Rows, int Blocks, bool Prefetch>
inline void int_score_tile(const AttentionSplit& split, int32_t row, int32_t block, int32_t blocks) {
  const int32_t dim = split.head_dim;
  const int16_t* q = split.q16 + static_cast<int64_t>(row) * dim;
  I dot[Rows][Blocks];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 16
    for (int b = 0; b < Blocks; ++b) dot[r][b] = i_zero();
  }
  for (int32_t pair = 0; pair < dim / 2; ++pair) {
    I key[Blocks];
#pragma GCC unroll 16
    for (int b = 0; b < Blocks; ++b) key[b] = i_load_pairs(elements(split.k[block + b]) + 32 * pair);
    if constexpr (Prefetch) {
#pragma GCC unroll 16
      for (int b = 0; b < Blocks; ++b) {
        const int32_t next = block + Blocks + b;
        v_prefetch((next < blocks ? split.k[next] : split.k[block + b]) + 64 * pair);
        v_prefetch(split.v[block + b] + 64 * pair);
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      const I query = i_set_pair(q + static_cast<int64_t>(r) * dim + 2 * pair);
#pragma GCC unroll 16
      for (int b = 0; b < Blocks; ++b) i_dot_pairs(dot[r][b], query, key[b]);
    }
  }
#pragma GCC unroll 16
  for (int b = 0; b < Blocks; ++b) {
    const V key_scale = scales(split.k[block + b]);
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      const V scale = v_mul(key_scale, v_set1(split.q16_scale[row + r]));
      v_store(split.scores + (row + r) * static_cast<int64_t>(kScoreStride) + 16 * (block + b),
              v_mul(v_from(dot[r][b]), scale));
    }
  }
}

template <int Rows, bool Prefetch>
inline void int_scores_of(const AttentionSplit& split, int32_t row, int32_t blocks) {
  constexpr int kBlocks = kIntTile / Rows < 1 ? 1 : kIntTile / Rows > 4 ? 4 : kIntTile / Rows;
  int32_t b = 0;
  for (; b + kBlocks <= blocks; b += kBlocks) int_score_tile<Rows, kBlocks, Prefetch>(split, row, b, blocks);
  for (; b < blocks; ++b) int_score_tile<Rows, 1, Prefetch>(split, row, b, blocks);
}

// Turns a row's scores into integer weights, in the same memory (16 bits a token); returns what one unit is worth.
inline float int_soften(const AttentionSplit& split, int32_t row, int32_t blocks) {
  float* scores = split.scores + row * static_cast<int64_t>(kScoreStride);
  auto* weights = reinterpret_cast<int16_t*>(scores);
  const int32_t valid = split.valid[row];
  if (valid <= 0) {
    for (int32_t b = 0; b < blocks; ++b) v_store_int16(weights + 16 * b, v_zero());
    return 0;
  }
  const int32_t whole = valid / 16;
  V largest = v_set1(-INFINITY);
  for (int32_t b = 0; b < whole; ++b) largest = v_max(v_load(scores + 16 * b), largest);
  if (valid % 16 != 0) largest = v_max(v_keep_first(v_load(scores + 16 * whole), valid % 16, -INFINITY), largest);
  const float max = v_max_lane(largest);
  const V m = v_set1(max);
  V sum = v_zero();
  V weight_sum = v_zero();
  V weight_max = v_zero();
  const auto soften = [&](V p, int32_t b, V value_scales) {
    const V weight = v_mul(p, value_scales);
    v_store(scores + 16 * b, weight);
    sum = v_add(sum, p);
    weight_sum = v_add(weight_sum, weight);
    weight_max = v_max(weight, weight_max);
  };
  for (int32_t b = 0; b < whole; ++b) soften(v_exp2(v_sub(v_load(scores + 16 * b), m)), b, scales(split.v[b]));
  if (valid % 16 != 0) {
    const int n = valid % 16;
    soften(v_keep_first(v_exp2(v_sub(v_load(scores + 16 * whole), m)), n, 0.0f), whole,
           v_keep_first(scales(split.v[whole]), n, 0.0f));
  }
  split.max[row] = max;
  split.sum[row] = v_sum(sum);
  const float total = v_sum(weight_sum);
  const float top = v_max_lane(weight_max);
  // Where the unit cannot be represented the values are zero for every purpose.
  const bool flat = !(top > 1e-30f);
  const float by_total = flat ? 0.0f : 262144.0f / total;
  const float by_top = flat ? 0.0f : 32767.0f / top;
  const float inverse = by_total < by_top ? by_total : by_top;
  const V f = v_set1(inverse);
  const int32_t seen = (valid + 15) / 16;
  for (int32_t b = 0; b < seen; ++b) v_store_int16(weights + 16 * b, v_mul(v_load(scores + 16 * b), f));
  for (int32_t b = seen; b < blocks; ++b) v_store_int16(weights + 16 * b, v_zero());
  return flat ? 0.0f : 1.0f / inverse;
}

template <int Rows, int Vectors>
inline void int_value_tile(const AttentionSplit& split, int32_t row, int32_t blocks, int32_t d, const float* unit) {
  const auto* weights = reinterpret_cast<const int16_t*>(split.scores + row * static_cast<int64_t>(kScoreStride));
  I sum[Rows][Vectors];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v) sum[r][v] = i_zero();
  }
  for (int32_t b = 0; b < blocks; ++b, weights += 16) {
    const int16_t* values = elements(split.v[b]) + 2 * d;
    for (int pair = 0; pair < 8; ++pair, values += 2 * split.head_dim) {
      I value[Vectors];
#pragma GCC unroll 16
      for (int v = 0; v < Vectors; ++v) value[v] = i_load_pairs(values + 32 * v);
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) {
        const I weight = i_set_pair(weights + r * 2 * kScoreStride + 2 * pair);
#pragma GCC unroll 16
        for (int v = 0; v < Vectors; ++v) i_dot_pairs(sum[r][v], weight, value[v]);
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
    float* out = split.out + (row + r) * static_cast<int64_t>(split.head_dim) + d;
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v) v_store(out + 16 * v, v_mul(v_from(sum[r][v]), v_set1(unit[r])));
  }
}

template <int Rows>
void int_attend(const AttentionSplit& split, int32_t row) {
  int32_t tokens = 0;
  for (int r = 0; r < Rows; ++r) tokens = split.valid[row + r] > tokens ? split.valid[row + r] : tokens;
  if (tokens <= 0) return;
  const int32_t blocks = (tokens + 15) / 16;
  // The first rows of a split meet its planes first; those lie far apart, so the next ones are fetched meanwhile.
  if (row == 0) {
    int_scores_of<Rows, true>(split, row, blocks);
  } else {
    int_scores_of<Rows, false>(split, row, blocks);
  }
  float unit[Rows];
  for (int r = 0; r < Rows; ++r) unit[r] = int_soften(split, row + r, blocks);
  constexpr int kVectors = kIntTile / Rows >= 4 ? 4 : kIntTile / Rows >= 2 ? 2 : 1;
  const int32_t dim = split.head_dim;
  int32_t d = 0;
  for (; d + 16 * kVectors <= dim; d += 16 * kVectors) int_value_tile<Rows, kVectors>(split, row, blocks, d, unit);
  for (; d < dim; d += 16) int_value_tile<Rows, 1>(split, row, blocks, d, unit);
}

void attention_int16(const AttentionSplit& split) {
  int32_t row = 0;
  for (; row + kIntRows <= split.rows; row += kIntRows) int_attend<kIntRows>(split, row);
  for (; row + 3 <= split.rows; row += 3) int_attend<3>(split, row);
  for (; row < split.rows; ++row) int_attend<1>(split, row);
}

void attention_split(const AttentionSplit& split) {
  switch (split.type) {
    case KvType::kInt16:
      return attention_int16(split);
    case KvType::kF16:
      return attention_rows<uint16_t>(split);
    case KvType::kF32:
      return attention_rows<float>(split);
  }
}

void attention_merge(float* out, float* max, float* sum, const float* next_out, float next_max, float next_sum,
                     int32_t head_dim) {
  const float both = *max > next_max ? *max : next_max;
  // One vector holds both powers: the same function makes them on every path.
  float powers[16] = {*max - both, next_max - both};
  v_store(powers, v_exp2(v_load(powers)));
  const V old_factor = v_set1(powers[0]);
  const V next_factor = v_set1(powers[1]);
  for (int32_t d = 0; d < head_dim; d += 16) {
    v_store(out + d, v_fma(v_load(next_out + d), next_factor, v_mul(v_load(out + d), old_factor)));
  }
  *sum = *sum * powers[0] + next_sum * powers[1];
  *max = both;
}

}  // namespace
}  // namespace warmpath
