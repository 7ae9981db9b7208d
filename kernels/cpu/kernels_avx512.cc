// The AVX-512 (F, BW, VL, DQ, VNNI) table. Compiled with its own -m flags; the rules of kernels_avx2.cc hold.
//
// Integer products: vpdpbusd adds four unsigned-by-signed byte products into each of sixteen 32-bit lanes, one lane a
// panel row. 8-bit weights become unsigned by flipping their top bit (w + 128); the accumulator starts at -128 * sum(x)
// instead of zero, so the sum is exact.
#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/vec16_avx512.h"
#include "kernels/ops.h"

namespace warmpath {
namespace {

constexpr int kScoreTile = 12;
constexpr int kValueTile = 24;
constexpr int kAttentionRows = 12;
constexpr int kIntRows = 12;  // rows of kInt16 attention in registers
constexpr int kIntTile = 24;  // rows x vectors there
constexpr int kFloatRows = 12;

}  // namespace
}  // namespace warmpath

#include "kernels/cpu/attention_float.inl"
#include "kernels/cpu/attention_int16.inl"
#include "kernels/cpu/product_f32.inl"
#include "kernels/cpu/row_kernels.inl"

namespace warmpath {
namespace {

inline __m512i load_bytes(const uint8_t* p) { return _mm512_load_si512(p); }

// sum + the four unsigned bytes of each lane of w times the four bytes at x. In assembly because g++ 12 copies and
// spills the accumulators of the intrinsic, and does not know its broadcast form.
inline void add_dot4(__m512i& sum, __m512i w, const int8_t* x) {
  typedef int32_t __attribute__((may_alias, aligned(1))) Word;
  asm("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(w), "m"(*reinterpret_cast<const Word*>(x)));
}

template <int Rows>
void q4_tile(const PanelProduct& product, int32_t panel, int32_t row) {
  const int32_t blocks = product.columns / 32;
  const uint8_t* bytes = product.panel + panel * product.panel_bytes;
  const int8_t* x = product.x8.q + static_cast<int64_t>(row) * product.columns;
  const float* scale = product.x8.scale + static_cast<int64_t>(row) * blocks;
  const float* sum = product.x8.sum + static_cast<int64_t>(row) * blocks;
  const __m512i low_nibbles = _mm512_set1_epi8(15);
  V acc[Rows];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) acc[r] = v_zero();
  for (int32_t block = 0; block < blocks; ++block, bytes += 320, x += 32) {
    __m512i dot[Rows];
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) dot[r] = _mm512_setzero_si512();
#pragma GCC unroll 4
    for (int group = 0; group < 4; ++group) {
      const __m512i w = load_bytes(bytes + 64 + 64 * group);
      const __m512i low = _mm512_and_si512(w, low_nibbles);
      const __m512i high = _mm512_and_si512(_mm512_srli_epi16(w, 4), low_nibbles);
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) {
        add_dot4(dot[r], low, x + static_cast<int64_t>(r) * product.columns + 4 * group);
      }
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) {
        add_dot4(dot[r], high, x + static_cast<int64_t>(r) * product.columns + 4 * group + 16);
      }
    }
    const V w_scale = v_load_half(reinterpret_cast<const uint16_t*>(bytes));
    const V w_min = v_load_half(reinterpret_cast<const uint16_t*>(bytes) + 16);
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      const int64_t index = static_cast<int64_t>(r) * blocks + block;
      acc[r] = v_fma(_mm512_cvtepi32_ps(dot[r]), v_mul(w_scale, v_set1(scale[index])), acc[r]);
      acc[r] = v_fma(w_min, v_set1(sum[index]), acc[r]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) finish_panel(product, panel, row + r, acc[r]);
}

template <int Rows>
void q8_tile(const PanelProduct& product, int32_t panel, int32_t row) {
  const int32_t blocks = product.columns / 32;
  const uint8_t* scales = product.panel + panel * product.panel_bytes;
  const uint8_t* bytes = scales + (blocks * 32 + 63) / 64 * 64;
  const int8_t* x = product.x8.q + static_cast<int64_t>(row) * product.columns;
  const float* scale = product.x8.scale + static_cast<int64_t>(row) * blocks;
  const int32_t* q_sum = product.x8.q_sum + static_cast<int64_t>(row) * blocks;
  const __m512i top_bits = _mm512_set1_epi8(static_cast<char>(0x80));
  V acc[Rows];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) acc[r] = v_zero();
  for (int32_t block = 0; block < blocks; ++block, bytes += 512, x += 32) {
    __m512i dot[Rows];
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) dot[r] = _mm512_set1_epi32(-128 * q_sum[static_cast<int64_t>(r) * blocks + block]);
#pragma GCC unroll 8
    for (int step = 0; step < 8; ++step) {
      const __m512i w = _mm512_xor_si512(load_bytes(bytes + 64 * step), top_bits);
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) {
        add_dot4(dot[r], w, x + static_cast<int64_t>(r) * product.columns + 4 * step);
      }
    }
    const V w_scale = v_load_half(reinterpret_cast<const uint16_t*>(scales) + 16 * block);
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      const V factor = v_mul(w_scale, v_set1(scale[static_cast<int64_t>(r) * blocks + block]));
      acc[r] = v_fma(_mm512_cvtepi32_ps(dot[r]), factor, acc[r]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) finish_panel(product, panel, row + r, acc[r]);
}

using Tile = void (*)(const PanelProduct& product, int32_t panel, int32_t row);
// By number of rows; a remainder runs as one tile too.
constexpr Tile kQ4Tiles[] = {nullptr,    q4_tile<1>, q4_tile<2>, q4_tile<3>,  q4_tile<4>,  q4_tile<5>, q4_tile<6>,
                             q4_tile<7>, q4_tile<8>, q4_tile<9>, q4_tile<10>, q4_tile<11>, q4_tile<12>};
constexpr Tile kQ8Tiles[] = {nullptr,    q8_tile<1>, q8_tile<2>, q8_tile<3>, q8_tile<4>,
                             q8_tile<5>, q8_tile<6>, q8_tile<7>, q8_tile<8>};

template <int32_t Count>
void product_by_tiles(const PanelProduct& product, const Tile (&tiles)[Count]) {
  // Tiles of nearly equal height: 16 rows are two of 8, not one of 12 and one of 4.
  const int32_t parts = (product.rows + Count - 2) / (Count - 1);
  for (int32_t panel = 0; panel < product.panels; ++panel) {
    for (int32_t part = 0; part < parts; ++part) {
      const int32_t row = product.rows * part / parts;
      tiles[product.rows * (part + 1) / parts - row](product, panel, row);
    }
  }
}

void product_q4(const PanelProduct& product) { product_by_tiles(product, kQ4Tiles); }
void product_q8(const PanelProduct& product) { product_by_tiles(product, kQ8Tiles); }

}  // namespace

const CpuKernels& avx512_kernels() {
  static constexpr CpuKernels kTable = {
      rms_norm_row, swiglu_row,      add_row,        quantize_row, product_q4,           product_q8,
      product_f32,  rope_adjacent,   rope_halves,    to_f16,       quantize16_by_length, quantize16_by_largest,
      scale_row,    attention_split, attention_merge};
  return kTable;
}

}  // namespace warmpath
