// The AVX2 + FMA + F16C table. Compiled with its own -m flags: nothing with external linkage but avx2_kernels(), and no
// header of the standard library beyond C's, so that no AVX code reaches the rest of the program.
//
// Integer products: vpmaddubsw multiplies unsigned by signed bytes and adds pairs in 16 bits. For 4-bit weights a pair
// is at most 2 * 15 * 127 = 3,810, so the eight pairs of a quant block add up exactly in 16 bits (30,480) and are
// widened once.
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
#include "kernels/cpu/product_f32.inl"
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

template <int Rows>
inline void q4_tile(const PanelProduct& product, int32_t panel, int32_t row) {
  const int32_t blocks = product.columns / 32;
  const uint8_t* bytes = product.panel + panel * product.panel_bytes;
  const int8_t* x = product.x8.q + static_cast<int64_t>(row) * product.columns;
  const float* scale = product.x8.scale + static_cast<int64_t>(row) * blocks;
  const float* sum = product.x8.sum + static_cast<int64_t>(row) * blocks;
  const __m256i low_nibbles = _mm256_set1_epi8(15);
  const __m256i ones = _mm256_set1_epi16(1);
  V acc[Rows];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) acc[r] = v_zero();
  for (int32_t block = 0; block < blocks; ++block, bytes += 320, x += 32) {
    __m256i dot[Rows][2];
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) dot[r][0] = dot[r][1] = _mm256_setzero_si256();
#pragma GCC unroll 4
    for (int group = 0; group < 4; ++group) {
      const __m256i a = load_bytes(bytes + 64 + 64 * group);
      const __m256i b = load_bytes(bytes + 96 + 64 * group);
      const __m256i a_low = _mm256_and_si256(a, low_nibbles);
      const __m256i b_low = _mm256_and_si256(b, low_nibbles);
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) {
        const __m256i four = broadcast4(x + static_cast<int64_t>(r) * product.columns + 4 * group);
        add_halves(dot[r][0], _mm256_maddubs_epi16(a_low, four));
        add_halves(dot[r][1], _mm256_maddubs_epi16(b_low, four));
      }
      const __m256i a_high = _mm256_and_si256(_mm256_srli_epi16(a, 4), low_nibbles);
      const __m256i b_high = _mm256_and_si256(_mm256_srli_epi16(b, 4), low_nibbles);
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) {
        const __m256i four = broadcast4(x + static_cast<int64_t>(r) * product.columns + 4 * group + 16);
        add_halves(dot[r][0], _mm256_maddubs_epi16(a_high, four));
        add_halves(dot[r][1], _mm256_maddubs_epi16(b_high, four));
      }
    }
    const V w_scale = v_load_half(reinterpret_cast<const uint16_t*>(bytes));
    const V w_min = v_load_half(reinterpret_cast<const uint16_t*>(bytes) + 16);
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      const V dots = to_floats(_mm256_madd_epi16(dot[r][0], ones), _mm256_madd_epi16(dot[r][1], ones));
      const int64_t index = static_cast<int64_t>(r) * blocks + block;
      acc[r] = v_fma(dots, v_mul(w_scale, v_set1(scale[index])), acc[r]);
      acc[r] = v_fma(w_min, v_set1(sum[index]), acc[r]);
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
  const uint8_t* scales = product.panel + panel * product.panel_bytes;
  const uint8_t* bytes = scales + (blocks * 32 + 63) / 64 * 64;
  const int8_t* x = product.x8.q + static_cast<int64_t>(row) * product.columns;
  const float* scale = product.x8.scale + static_cast<int64_t>(row) * blocks;
  const __m256i ones = _mm256_set1_epi16(1);
  V acc[Rows];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) acc[r] = v_zero();
  for (int32_t block = 0; block < blocks; ++block, bytes += 512, x += 32) {
    __m256i dot[Rows][2];
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) dot[r][0] = dot[r][1] = _mm256_setzero_si256();
#pragma GCC unroll 8
    for (int step = 0; step < 8; ++step) {
      const __m256i a = load_bytes(bytes + 64 * step);
      const __m256i b = load_bytes(bytes + 64 * step + 32);
      const __m256i a_abs = _mm256_abs_epi8(a);
      const __m256i b_abs = _mm256_abs_epi8(b);
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) {
        const __m256i four = broadcast4(x + static_cast<int64_t>(r) * product.columns + 4 * step);
        const __m256i a_pairs = _mm256_maddubs_epi16(a_abs, _mm256_sign_epi8(four, a));
        const __m256i b_pairs = _mm256_maddubs_epi16(b_abs, _mm256_sign_epi8(four, b));
        add_words(dot[r][0], _mm256_madd_epi16(a_pairs, ones));
        add_words(dot[r][1], _mm256_madd_epi16(b_pairs, ones));
      }
    }
    const V w_scale = v_load_half(reinterpret_cast<const uint16_t*>(scales) + 16 * block);
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      const V factor = v_mul(w_scale, v_set1(scale[static_cast<int64_t>(r) * blocks + block]));
      acc[r] = v_fma(to_floats(dot[r][0], dot[r][1]), factor, acc[r]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) finish_panel(product, panel, row + r, acc[r]);
}

void product_q4(const PanelProduct& product) {
  for (int32_t panel = 0; panel < product.panels; ++panel) {
    int32_t row = 0;
    for (; row + 4 <= product.rows; row += 4) q4_tile<4>(product, panel, row);
    if (row + 2 <= product.rows) q4_tile<2>(product, panel, row), row += 2;
    if (row < product.rows) q4_tile<1>(product, panel, row);
  }
}

void product_q8(const PanelProduct& product) {
  for (int32_t panel = 0; panel < product.panels; ++panel) {
    int32_t row = 0;
    for (; row + 3 <= product.rows; row += 3) q8_tile<3>(product, panel, row);
    for (; row < product.rows; ++row) q8_tile<1>(product, panel, row);
  }
}

}  // namespace

const CpuKernels& avx2_kernels() {
  static constexpr CpuKernels kTable = {
      rms_norm_row, swiglu_row,      add_row,        quantize_row, product_q4,           product_q8,
      product_f32,  rope_adjacent,   rope_halves,    to_f16,       quantize16_by_length, quantize16_by_largest,
      scale_row,    attention_split, attention_merge};
  return kTable;
}

}  // namespace warmpath
