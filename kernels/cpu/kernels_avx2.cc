// The AVX2 + FMA + F16C table. Compiled with its own -m flags: nothing with external linkage but avx2_kernels(), and no
// header of the standard library beyond C's, so that no AVX code reaches the rest of the program.
//
// Integer products: vpmaddubsw multiplies unsigned by signed bytes and adds pairs in 16 bits. For 4-bit weights a pair
// is at most 2 * 15 * 127 = 3,810, so the eight pairs of a quant block add up exactly in 16 bits (30,480) and are
// widened once; of 5-bit weights four pairs do (31,496), of 6-bit ones two (32,004).
#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/vec16_avx2.h"
#include "kernels/ops.h"

namespace warmpath {
namespace {

// A V is two of the sixteen registers.
constexpr int kScoreTile = 6;
constexpr int kValueTile = 6;
constexpr int kAttentionRows = 6;
constexpr int kIntRows = 4;  // rows of kInt16 attention in registers
constexpr int kIntTile = 4;  // rows x vectors there
constexpr int kFloatRows = 6;

}  // namespace
}  // namespace warmpath

#include "kernels/cpu/attention_float.inl"
#include "kernels/cpu/attention_int16.inl"
#include "kernels/cpu/product_float.inl"
#include "kernels/cpu/row_kernels.inl"

namespace warmpath {
namespace {

inline __m256i load_bytes(const uint8_t* p) { return _mm256_load_si256(reinterpret_cast<const __m256i*>(p)); }

// Four bytes of a row, in every 32-bit lane.
inline __m256i broadcast4(const int8_t* p) {
  int32_t word;
  memcpy(&word, p, sizeof word);
  return _mm256_set1_epi32(word);
}

inline V to_floats(__m256i a, __m256i b) { return {_mm256_cvtepi32_ps(a), _mm256_cvtepi32_ps(b)}; }

// In assembly because g++ 12 otherwise reorders the sums and keeps every product on the stack.
inline void add_halves(__m256i& sum, __m256i x) { asm("vpaddw %1, %0, %0" : "+x"(sum) : "x"(x)); }

// Thirty-two bytes of the quants of step `Step` of a block (quants_of_step() of kernels_avx512.cc).
template <QuantPanel P, int Step>
inline __m256i quants_of_step(__m256i low, __m256i high) {
  const __m256i shifted = Step < 4 ? low : _mm256_srli_epi16(low, 4);
  const __m256i nibbles = _mm256_and_si256(shifted, _mm256_set1_epi8(15));
  if constexpr (P.bits == 4) return nibbles;
  constexpr int kFrom = P.bits == 5 ? Step : Step % 4 * 2;
  const __m256i upper = kFrom < 4 ? _mm256_slli_epi16(high, 4 - kFrom) : _mm256_srli_epi16(high, kFrom - 4);
  return _mm256_or_si256(nibbles, _mm256_and_si256(upper, _mm256_set1_epi8(P.bits == 5 ? 0x10 : 0x30)));
}

// dot[r] += the 16-bit sums of pairs of step `Step`. `low` is the block's first nibble vector, `high` that of this
// step.
template <QuantPanel P, int Step, int Rows>
inline void add_step(__m256i (&dot)[Rows][2], const uint8_t* low, const uint8_t* high, const int8_t* x,
                     int64_t stride) {
  const uint8_t* bytes = low + 64 * (Step % 4);
  const __m256i zero = _mm256_setzero_si256();
  const __m256i a = quants_of_step<P, Step>(load_bytes(bytes), P.bits == 4 ? zero : load_bytes(high));
  const __m256i b = quants_of_step<P, Step>(load_bytes(bytes + 32), P.bits == 4 ? zero : load_bytes(high + 32));
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
    const __m256i four = broadcast4(x + r * stride + 4 * Step);
    add_halves(dot[r][0], _mm256_maddubs_epi16(a, four));
    add_halves(dot[r][1], _mm256_maddubs_epi16(b, four));
  }
}

template <int Rows>
inline void clear(__m256i (&dot)[Rows][2]) {
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) dot[r][0] = dot[r][1] = _mm256_setzero_si256();
}

// words[r] += the 16-bit sums, widened; they start again from zero.
template <int Rows>
inline void widen(__m256i (&words)[Rows][2], __m256i (&dot)[Rows][2]) {
  const __m256i ones = _mm256_set1_epi16(1);
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
    add_words(words[r][0], _mm256_madd_epi16(dot[r][0], ones));
    add_words(words[r][1], _mm256_madd_epi16(dot[r][1], ones));
  }
  clear(dot);
}

// A decode waits for memory, the processor's own prefetchers stop at each page of 4 KB, and the work on 5 and 6 bits is
// too long for the next page's first loads to be under way by themselves (Q6_K: 11 GB/s without, 17 with).
template <int Bytes>
inline void prefetch_ahead(const uint8_t* block) {
#pragma GCC unroll 8
  for (int line = 0; line < Bytes; line += 64) v_prefetch(block + 2048 + line);
}

template <QuantPanel P, int Rows>
inline void quant_tile(const PanelProduct& product, int32_t panel, int32_t row) {
  const int32_t blocks = product.columns / 32;
  const int64_t stride = product.x8.stride;
  const uint8_t* group = product.panel + panel * product.panel_bytes;
  const int8_t* x = product.x8.q + row * stride;
  const float* scale = product.x8.scale + static_cast<int64_t>(row) * blocks;
  const float* sum = product.x8.sum + static_cast<int64_t>(row) * blocks;
  const int32_t* q_sum = product.x8.q_sum + static_cast<int64_t>(row) * 2 * blocks;
  const __m256i ones = _mm256_set1_epi16(1);
  V acc[Rows];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) acc[r] = v_zero();
  for (int32_t first = 0; first < blocks; first += P.blocks, group += P.group_bytes()) {
    for (int32_t b = 0; b < P.blocks; ++b, x += 32) {
      const uint8_t* low = group + P.low_offset(b);
      const uint8_t* high = group + P.high_offset(b);
      const uint8_t* sub_scale = group + kPanelSubScaleOffset;
      if constexpr (Rows == 1) prefetch_ahead<P.block_bytes()>(low);
      __m256i dot[Rows][2];
      clear(dot);
      if constexpr (P.bits == 6) {
#pragma GCC unroll 2
        for (int half = 0; half < 2; ++half) {
          __m256i words[Rows][2];
#pragma GCC unroll 16
          for (int r = 0; r < Rows; ++r) {
            const int64_t index = static_cast<int64_t>(r) * blocks + first + b;
            words[r][0] = words[r][1] = _mm256_set1_epi32(-32 * q_sum[2 * index + half]);
          }
          if (half == 0) {
            add_step<P, 0>(dot, low, high, x, stride);
            add_step<P, 1>(dot, low, high, x, stride);
            widen(words, dot);
            add_step<P, 2>(dot, low, high, x, stride);
            add_step<P, 3>(dot, low, high, x, stride);
            widen(words, dot);
          } else {
            add_step<P, 4>(dot, low, high + 64, x, stride);
            add_step<P, 5>(dot, low, high + 64, x, stride);
            widen(words, dot);
            add_step<P, 6>(dot, low, high + 64, x, stride);
            add_step<P, 7>(dot, low, high + 64, x, stride);
            widen(words, dot);
          }
          const V w_scale = v_mul(v_load_half(reinterpret_cast<const uint16_t*>(group)),
                                  v_load_int8(sub_scale + 16 * (2 * b + half)));
#pragma GCC unroll 16
          for (int r = 0; r < Rows; ++r) {
            const V factor = v_mul(w_scale, v_set1(scale[static_cast<int64_t>(r) * blocks + first + b]));
            acc[r] = v_fma(to_floats(words[r][0], words[r][1]), factor, acc[r]);
          }
        }
      } else {
        __m256i words[Rows][2];
        add_step<P, 0>(dot, low, high, x, stride);
        add_step<P, 1>(dot, low, high, x, stride);
        add_step<P, 2>(dot, low, high, x, stride);
        add_step<P, 3>(dot, low, high, x, stride);
        if constexpr (P.bits == 5) {
          clear(words);
          widen(words, dot);
        }
        add_step<P, 4>(dot, low, high, x, stride);
        add_step<P, 5>(dot, low, high, x, stride);
        add_step<P, 6>(dot, low, high, x, stride);
        add_step<P, 7>(dot, low, high, x, stride);
        if constexpr (P.bits == 5) widen(words, dot);
        V w_scale = v_load_half(reinterpret_cast<const uint16_t*>(group));
        V w_min = v_load_half(reinterpret_cast<const uint16_t*>(group + kPanelMinOffset));
        if constexpr (P.scaled_twice()) {
          w_scale = v_mul(w_scale, v_load_uint8(sub_scale + 16 * b));
          w_min = v_mul(w_min, v_load_uint8(group + kPanelSubMinOffset + 16 * b));
        }
#pragma GCC unroll 16
        for (int r = 0; r < Rows; ++r) {
          const V dots = P.bits == 5
                             ? to_floats(words[r][0], words[r][1])
                             : to_floats(_mm256_madd_epi16(dot[r][0], ones), _mm256_madd_epi16(dot[r][1], ones));
          const int64_t index = static_cast<int64_t>(r) * blocks + first + b;
          acc[r] = v_fma(dots, v_mul(w_scale, v_set1(scale[index])), acc[r]);
          acc[r] = v_fma(w_min, v_set1(sum[index]), acc[r]);
        }
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) finish_panel(product, panel, row + r, acc[r]);
}

// 8-bit weights: |w| is the unsigned side and w's sign moves to x (never -128, so negating it is exact). A pair is at
// most 2 * 128 * 127 = 32,512: it fits 16 bits, a sum of two pairs does not.
template <int Rows>
inline void q8_tile(const PanelProduct& product, int32_t panel, int32_t row) {
  const int32_t blocks = product.columns / 32;
  const uint8_t* bytes = product.panel + panel * product.panel_bytes;
  const int64_t stride = product.x8.stride;
  const int8_t* x = product.x8.q + row * stride;
  const float* scale = product.x8.scale + static_cast<int64_t>(row) * blocks;
  const __m256i ones = _mm256_set1_epi16(1);
  V acc[Rows];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) acc[r] = v_zero();
  for (int32_t block = 0; block < blocks; ++block, x += 32) {
    const uint8_t* quants = bytes + panel_q8_quants(block);
    __m256i dot[Rows][2];
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) dot[r][0] = dot[r][1] = _mm256_setzero_si256();
#pragma GCC unroll 8
    for (int step = 0; step < 8; ++step) {
      const __m256i a = load_bytes(quants + 64 * step);
      const __m256i b = load_bytes(quants + 64 * step + 32);
      const __m256i a_abs = _mm256_abs_epi8(a);
      const __m256i b_abs = _mm256_abs_epi8(b);
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) {
        const __m256i four = broadcast4(x + r * stride + 4 * step);
        const __m256i a_pairs = _mm256_maddubs_epi16(a_abs, _mm256_sign_epi8(four, a));
        const __m256i b_pairs = _mm256_maddubs_epi16(b_abs, _mm256_sign_epi8(four, b));
        add_words(dot[r][0], _mm256_madd_epi16(a_pairs, ones));
        add_words(dot[r][1], _mm256_madd_epi16(b_pairs, ones));
      }
    }
    const V w_scale = v_load_half(reinterpret_cast<const uint16_t*>(bytes + panel_q8_scales(block)));
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      const V factor = v_mul(w_scale, v_set1(scale[static_cast<int64_t>(r) * blocks + block]));
      acc[r] = v_fma(to_floats(dot[r][0], dot[r][1]), factor, acc[r]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) finish_panel(product, panel, row + r, acc[r]);
}

template <QuantPanel P>
void product_quants(const PanelProduct& product) {
  for (int32_t panel = 0; panel < product.panels; ++panel) {
    int32_t row = 0;
    for (; row + 4 <= product.rows; row += 4) quant_tile<P, 4>(product, panel, row);
    if (row + 2 <= product.rows) quant_tile<P, 2>(product, panel, row), row += 2;
    if (row < product.rows) quant_tile<P, 1>(product, panel, row);
  }
}

void product_q8(const PanelProduct& product) {
  for (int32_t panel = 0; panel < product.panels; ++panel) {
    int32_t row = 0;
    for (; row + 3 <= product.rows; row += 3) q8_tile<3>(product, panel, row);
    if (row + 2 <= product.rows) q8_tile<2>(product, panel, row), row += 2;
    if (row < product.rows) q8_tile<1>(product, panel, row);
  }
}

}  // namespace

const CpuKernels& avx2_kernels() {
  static constexpr CpuKernels kTable = {
      rms_norm_row,
      swiglu_row,
      add_row,
      quantize_row,
      {product_quants<kPanelQ4>, product_quants<kPanelQ5>, product_q8, product_quants<kPanelQ4K>,
       product_quants<kPanelQ5K>, product_quants<kPanelQ6K>, product_float<Half>, product_float<BFloat16>,
       product_float<float>},
      rope_adjacent,
      rope_halves,
      to_f16,
      quantize16_by_length,
      quantize16_by_largest,
      scale_row,
      attention_split,
      attention_merge};
  return kTable;
}

}  // namespace warmpath
