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
#include "kernels/cpu/quants_avx512.h"
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
#include "kernels/cpu/product_float.inl"
#include "kernels/cpu/row_kernels.inl"

namespace warmpath {
namespace {

// sum + the four unsigned bytes of each lane of w times the four bytes at x. In assembly because g++ 12 copies and
// spills the accumulators of the intrinsic, and does not know its broadcast form.
inline void add_dot4(__m512i& sum, __m512i w, const int8_t* x) {
  typedef int32_t __attribute__((may_alias, aligned(1))) Word;
  asm("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(w), "m"(*reinterpret_cast<const Word*>(x)));
}

// dot[r] += step `Step` of a block times its four columns of the rows at x.
template <QuantPanel P, int Step, int Rows>
inline void add_step(__m512i (&dot)[Rows], __m512i low, __m512i high, const int8_t* x, int64_t stride) {
  const __m512i w = quants_of_step<P, Step>(low, high);
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) add_dot4(dot[r], w, x + r * stride + 4 * Step);
}

template <QuantPanel P, int Rows>
void quant_tile(const PanelProduct& product, int32_t panel, int32_t row) {
  const int32_t blocks = product.columns / 32;
  const int64_t stride = product.x8.stride;
  const uint8_t* group = product.panel + panel * product.panel_bytes;
  const int8_t* x = product.x8.q + row * stride;
  const float* scale = product.x8.scale + static_cast<int64_t>(row) * blocks;
  const float* sum = product.x8.sum + static_cast<int64_t>(row) * blocks;
  const int32_t* q_sum = product.x8.q_sum + static_cast<int64_t>(row) * 2 * blocks;
  V acc[Rows];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) acc[r] = v_zero();
  for (int32_t first = 0; first < blocks; first += P.blocks, group += P.group_bytes()) {
    for (int32_t b = 0; b < P.blocks; ++b, x += 32) {
      const uint8_t* low = group + P.low_offset(b);
      const uint8_t* high = group + P.high_offset(b);
      const uint8_t* sub_scale = group + kPanelSubScaleOffset;
      V w_scale = v_load_half(reinterpret_cast<const uint16_t*>(group));
      __m512i dot[Rows];
      if constexpr (P.bits == 6) {
#pragma GCC unroll 2
        for (int half = 0; half < 2; ++half) {
#pragma GCC unroll 16
          for (int r = 0; r < Rows; ++r) {
            dot[r] = _mm512_set1_epi32(-32 * q_sum[2 * (static_cast<int64_t>(r) * blocks + first + b) + half]);
          }
          const __m512i upper = load_bytes(high + 64 * half);
          if (half == 0) {
            add_step<P, 0>(dot, load_bytes(low), upper, x, stride);
            add_step<P, 1>(dot, load_bytes(low + 64), upper, x, stride);
            add_step<P, 2>(dot, load_bytes(low + 128), upper, x, stride);
            add_step<P, 3>(dot, load_bytes(low + 192), upper, x, stride);
          } else {
            add_step<P, 4>(dot, load_bytes(low), upper, x, stride);
            add_step<P, 5>(dot, load_bytes(low + 64), upper, x, stride);
            add_step<P, 6>(dot, load_bytes(low + 128), upper, x, stride);
            add_step<P, 7>(dot, load_bytes(low + 192), upper, x, stride);
          }
          const V half_scale = v_mul(w_scale, v_load_int8(sub_scale + 16 * (2 * b + half)));
#pragma GCC unroll 16
          for (int r = 0; r < Rows; ++r) {
            const V factor = v_mul(half_scale, v_set1(scale[static_cast<int64_t>(r) * blocks + first + b]));
            acc[r] = v_fma(_mm512_cvtepi32_ps(dot[r]), factor, acc[r]);
          }
        }
      } else {
#pragma GCC unroll 16
        for (int r = 0; r < Rows; ++r) dot[r] = _mm512_setzero_si512();
        const __m512i upper = P.bits == 5 ? load_bytes(high) : _mm512_setzero_si512();
        const __m512i w0 = load_bytes(low);
        add_step<P, 0>(dot, w0, upper, x, stride);
        add_step<P, 4>(dot, w0, upper, x, stride);
        const __m512i w1 = load_bytes(low + 64);
        add_step<P, 1>(dot, w1, upper, x, stride);
        add_step<P, 5>(dot, w1, upper, x, stride);
        const __m512i w2 = load_bytes(low + 128);
        add_step<P, 2>(dot, w2, upper, x, stride);
        add_step<P, 6>(dot, w2, upper, x, stride);
        const __m512i w3 = load_bytes(low + 192);
        add_step<P, 3>(dot, w3, upper, x, stride);
        add_step<P, 7>(dot, w3, upper, x, stride);
        V w_min = v_load_half(reinterpret_cast<const uint16_t*>(group + kPanelMinOffset));
        if constexpr (P.scaled_twice()) {
          w_scale = v_mul(w_scale, v_load_uint8(sub_scale + 16 * b));
          w_min = v_mul(w_min, v_load_uint8(group + kPanelSubMinOffset + 16 * b));
        }
#pragma GCC unroll 16
        for (int r = 0; r < Rows; ++r) {
          const int64_t index = static_cast<int64_t>(r) * blocks + first + b;
          acc[r] = v_fma(_mm512_cvtepi32_ps(dot[r]), v_mul(w_scale, v_set1(scale[index])), acc[r]);
          acc[r] = v_fma(w_min, v_set1(sum[index]), acc[r]);
        }
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) finish_panel(product, panel, row + r, acc[r]);
}

template <int Rows>
void q8_tile(const PanelProduct& product, int32_t panel, int32_t row) {
  const int32_t blocks = product.columns / 32;
  const uint8_t* bytes = product.panel + panel * product.panel_bytes;
  const int64_t stride = product.x8.stride;
  const int8_t* x = product.x8.q + row * stride;
  const float* scale = product.x8.scale + static_cast<int64_t>(row) * blocks;
  const int32_t* q_sum = product.x8.q_sum + static_cast<int64_t>(row) * 2 * blocks;
  const __m512i top_bits = _mm512_set1_epi8(static_cast<char>(0x80));
  V acc[Rows];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) acc[r] = v_zero();
  for (int32_t block = 0; block < blocks; ++block, x += 32) {
    const uint8_t* quants = bytes + panel_q8_quants(block);
    __m512i dot[Rows];
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      const int32_t* halves = q_sum + 2 * (static_cast<int64_t>(r) * blocks + block);
      dot[r] = _mm512_set1_epi32(-128 * (halves[0] + halves[1]));
    }
#pragma GCC unroll 8
    for (int step = 0; step < 8; ++step) {
      const __m512i w = _mm512_xor_si512(load_bytes(quants + 64 * step), top_bits);
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) {
        add_dot4(dot[r], w, x + r * stride + 4 * step);
      }
    }
    const V w_scale = v_load_half(reinterpret_cast<const uint16_t*>(bytes + panel_q8_scales(block)));
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
template <QuantPanel P>
constexpr Tile kQuantTiles[] = {nullptr,          quant_tile<P, 1>, quant_tile<P, 2>,  quant_tile<P, 3>,
                                quant_tile<P, 4>, quant_tile<P, 5>, quant_tile<P, 6>,  quant_tile<P, 7>,
                                quant_tile<P, 8>, quant_tile<P, 9>, quant_tile<P, 10>, quant_tile<P, 11>,
                                quant_tile<P, 12>};
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

template <QuantPanel P>
void product_quants(const PanelProduct& product) {
  product_by_tiles(product, kQuantTiles<P>);
}
void product_q8(const PanelProduct& product) { product_by_tiles(product, kQ8Tiles); }

}  // namespace

const CpuKernels& avx512_kernels() {
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
