// Attention of a few query rows over one split of a float cache (f16 or f32), written once over V. Included by
// kernels_*.cc, which sets kScoreTile (scores held in registers: rows x 16-token blocks) and kValueTile (outputs: rows
// x 16 dimensions).
//
// Three passes over the split, scores in between in L1: scores of 16 tokens a vector (K is transposed, so there is no
// horizontal sum), 2^(s - max) and its sum, values of 16 dimensions a vector. The order of each row's sums is fixed:
// scores over the dimensions in turn; values over the tokens in turn; the exponentials' sum lane by lane, then the
// tree.
#pragma once

#include "kernels/cpu/row_kernels.inl"

namespace warmpath {
namespace {

inline V load_element16(const float* p) { return v_load(p); }
inline V load_element16(const uint16_t* p) { return v_load_half(p); }

// Scores of `Rows` rows against `Blocks` blocks of 16 tokens.
template <int Rows, int Blocks, typename Element>
inline void score_tile(const float* q, int32_t head_dim, const uint8_t* const* k, float* scores) {
  V sum[Rows][Blocks];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 16
    for (int b = 0; b < Blocks; ++b) sum[r][b] = v_zero();
  }
  for (int32_t d = 0; d < head_dim; ++d) {
    V key[Blocks];
#pragma GCC unroll 16
    for (int b = 0; b < Blocks; ++b) key[b] = load_element16(reinterpret_cast<const Element*>(k[b]) + 16 * d);
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      const V query = v_set1(q[r * head_dim + d]);
#pragma GCC unroll 16
      for (int b = 0; b < Blocks; ++b) sum[r][b] = v_fma(query, key[b], sum[r][b]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 16
    for (int b = 0; b < Blocks; ++b) v_store(scores + r * kScoreStride + 16 * b, sum[r][b]);
  }
}

template <int Rows, typename Element>
inline void scores_of(const AttentionSplit& split, int32_t row, int32_t blocks) {
  constexpr int kBlocks = kScoreTile / Rows < 1 ? 1 : kScoreTile / Rows > 4 ? 4 : kScoreTile / Rows;
  const float* q = split.q + static_cast<int64_t>(row) * split.head_dim;
  float* scores = split.scores + static_cast<int64_t>(row) * kScoreStride;
  int32_t b = 0;
  for (; b + kBlocks <= blocks; b += kBlocks) {
    score_tile<Rows, kBlocks, Element>(q, split.head_dim, split.k + b, scores + 16 * b);
  }
  for (; b < blocks; ++b) score_tile<Rows, 1, Element>(q, split.head_dim, split.k + b, scores + 16 * b);
}

// Turns a row's scores into exponentials; those of tokens that it does not see become zero.
inline void soften(float* scores, int32_t valid, int32_t blocks, float* max_out, float* sum_out) {
  V largest = v_set1(-INFINITY);
  const int32_t whole = valid / 16;
  for (int32_t b = 0; b < whole; ++b) largest = v_max(largest, v_load(scores + 16 * b));
  if (valid % 16 != 0) largest = v_max(v_keep_first(v_load(scores + 16 * whole), valid % 16, -INFINITY), largest);
  const float max = v_max_lane(largest);
  const V m = v_set1(max);
  V sum = v_zero();
  for (int32_t b = 0; b < whole; ++b) {
    const V p = v_exp2(v_sub(v_load(scores + 16 * b), m));
    v_store(scores + 16 * b, p);
    sum = v_add(sum, p);
  }
  for (int32_t b = whole; b < blocks; ++b) {
    const V p = v_keep_first(v_exp2(v_sub(v_load(scores + 16 * b), m)), valid - 16 * b, 0.0f);
    v_store(scores + 16 * b, p);
    if (b == whole) sum = v_add(sum, p);
  }
  *max_out = max;
  *sum_out = v_sum(sum);
}

// out[Rows][16 * Vectors] = exponentials . values, over `tokens` tokens, from dimension `d`.
template <int Rows, int Vectors, typename Element>
inline void value_tile(const AttentionSplit& split, int32_t row, int32_t tokens, int32_t d) {
  const float* p = split.scores + static_cast<int64_t>(row) * kScoreStride;
  V sum[Rows][Vectors];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v) sum[r][v] = v_zero();
  }
  for (int32_t first = 0; first < tokens; first += 16) {
    const Element* values = reinterpret_cast<const Element*>(split.v[first / 16]) + d;
    const int32_t count = tokens - first < 16 ? tokens - first : 16;
    for (int32_t t = 0; t < count; ++t, values += split.head_dim) {
      V value[Vectors];
#pragma GCC unroll 16
      for (int v = 0; v < Vectors; ++v) value[v] = load_element16(values + 16 * v);
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) {
        const V weight = v_set1(p[r * kScoreStride + first + t]);
#pragma GCC unroll 16
        for (int v = 0; v < Vectors; ++v) sum[r][v] = v_fma(weight, value[v], sum[r][v]);
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v)
      v_store(split.out + (row + r) * static_cast<int64_t>(split.head_dim) + d + 16 * v, sum[r][v]);
  }
}

template <int Rows, typename Element>
inline void values_of(const AttentionSplit& split, int32_t row, int32_t tokens) {
  constexpr int kVectors = kValueTile / Rows >= 4 ? 4 : kValueTile / Rows >= 2 ? 2 : 1;
  int32_t d = 0;
  for (; d + 16 * kVectors <= split.head_dim; d += 16 * kVectors)
    value_tile<Rows, kVectors, Element>(split, row, tokens, d);
  for (; d < split.head_dim; d += 16) value_tile<Rows, 1, Element>(split, row, tokens, d);
}

template <int Rows, typename Element>
void attend(const AttentionSplit& split, int32_t row) {
  int32_t tokens = 0;
  for (int r = 0; r < Rows; ++r) tokens = split.valid[row + r] > tokens ? split.valid[row + r] : tokens;
  if (tokens == 0) return;
  const int32_t blocks = (tokens + 15) / 16;
  scores_of<Rows, Element>(split, row, blocks);
  for (int r = 0; r < Rows; ++r) {
    float* scores = split.scores + static_cast<int64_t>(row + r) * kScoreStride;
    float max = 0;
    float sum = 0;
    if (split.valid[row + r] > 0) {
      soften(scores, split.valid[row + r], blocks, &max, &sum);
      split.max[row + r] = max;
      split.sum[row + r] = sum;
    } else {
      for (int32_t b = 0; b < blocks; ++b) v_store(scores + 16 * b, v_zero());
    }
  }
  values_of<Rows, Element>(split, row, tokens);
}

template <typename Element>
void attention_rows(const AttentionSplit& split) {
  int32_t row = 0;
  for (; row + kAttentionRows <= split.rows; row += kAttentionRows) attend<kAttentionRows, Element>(split, row);
  for (; row + 3 <= split.rows; row += 3) attend<3, Element>(split, row);
  for (; row < split.rows; ++row) attend<1, Element>(split, row);
}

}  // namespace
}  // namespace warmpath
