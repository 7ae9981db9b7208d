// The plain C++ table: the twin of the vector ones, and the obvious form of the integer products.
#include <math.h>
#include <stdint.h>

#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/vec16_scalar.h"
#include "kernels/ops.h"

namespace warmpath {
namespace {

constexpr int kScoreTile = 4;
constexpr int kValueTile = 4;
constexpr int kAttentionRows = 4;
constexpr int kIntRows = 4;  // rows of kInt16 attention in registers
constexpr int kIntTile = 4;  // rows x vectors there
constexpr int kFloatRows = 4;

}  // namespace
}  // namespace warmpath

#include "kernels/cpu/attention_float.inl"
#include "kernels/cpu/attention_int16.inl"
#include "kernels/cpu/product_float.inl"
#include "kernels/cpu/row_kernels.inl"

namespace warmpath {
namespace {

// The quant of panel row `lane` at `column` of block `b` of a group.
template <QuantPanel P>
inline int32_t quant_at(const uint8_t* group, int b, int lane, int column) {
  const int step = column / 4;
  const int byte = lane * 4 + column % 4;
  const uint8_t* low = group + P.low_offset(b);
  const uint8_t* high = group + P.high_offset(b);
  int32_t q = step < 4 ? low[step * 64 + byte] & 15 : low[(step - 4) * 64 + byte] >> 4;
  if (P.bits == 5) q |= (high[byte] >> step & 1) << 4;
  if (P.bits == 6) q = (q | (high[step / 4 * 64 + byte] >> (step % 4 * 2) & 3) << 4) - 32;
  return q;
}

// The integer products of columns [first, end) of a block, lane by lane.
template <QuantPanel P>
inline V dot_of(const uint8_t* group, int b, const int8_t* x, int first, int end) {
  V dot;
  for (int lane = 0; lane < 16; ++lane) {
    int32_t sum = 0;
    for (int k = first; k < end; ++k) sum += quant_at<P>(group, b, lane, k) * x[k];
    dot.lane[lane] = static_cast<float>(sum);
  }
  return dot;
}

template <QuantPanel P>
void product_quants(const PanelProduct& product) {
  const int32_t blocks = product.columns / 32;
  for (int32_t panel = 0; panel < product.panels; ++panel) {
    for (int32_t row = 0; row < product.rows; ++row) {
      V acc = v_zero();
      for (int32_t block = 0; block < blocks; ++block) {
        const int b = block % P.blocks;
        const uint8_t* group = product.panel + panel * product.panel_bytes + block / P.blocks * P.group_bytes();
        const int64_t index = row * static_cast<int64_t>(blocks) + block;
        const int8_t* x = product.x8.q + row * product.x8.stride + block * 32;
        const V x_scale = v_set1(product.x8.scale[index]);
        const V scale = v_load_half(reinterpret_cast<const uint16_t*>(group));
        const V min = v_load_half(reinterpret_cast<const uint16_t*>(group + kPanelMinOffset));
        const uint8_t* sub_scale = group + kPanelSubScaleOffset;
        if (P.bits == 6) {
          for (int half = 0; half < 2; ++half) {
            const V w_scale = v_mul(scale, v_load_int8(sub_scale + 16 * (2 * b + half)));
            acc = v_fma(dot_of<P>(group, b, x, 16 * half, 16 * half + 16), v_mul(w_scale, x_scale), acc);
          }
          continue;
        }
        const V w_scale = P.scaled_twice() ? v_mul(scale, v_load_uint8(sub_scale + 16 * b)) : scale;
        const V w_min = P.scaled_twice() ? v_mul(min, v_load_uint8(group + kPanelSubMinOffset + 16 * b)) : min;
        acc = v_fma(dot_of<P>(group, b, x, 0, 32), v_mul(w_scale, x_scale), acc);
        acc = v_fma(w_min, v_set1(product.x8.sum[index]), acc);
      }
      finish_panel(product, panel, row, acc);
    }
  }
}

void product_q8(const PanelProduct& product) {
  const int32_t blocks = product.columns / 32;
  for (int32_t panel = 0; panel < product.panels; ++panel) {
    const uint8_t* bytes = product.panel + panel * product.panel_bytes;
    for (int32_t row = 0; row < product.rows; ++row) {
      V acc = v_zero();
      for (int32_t block = 0; block < blocks; ++block) {
        const int8_t* q8 = reinterpret_cast<const int8_t*>(bytes + panel_q8_quants(block));
        const int64_t index = row * static_cast<int64_t>(blocks) + block;
        const int8_t* x = product.x8.q + row * product.x8.stride + block * 32;
        V dot;
        for (int lane = 0; lane < 16; ++lane) {
          int32_t sum = 0;
          for (int k = 0; k < 32; ++k) sum += q8[k / 4 * 64 + lane * 4 + k % 4] * x[k];
          dot.lane[lane] = static_cast<float>(sum);
        }
        const V w_scale = v_load_half(reinterpret_cast<const uint16_t*>(bytes + panel_q8_scales(block)));
        acc = v_fma(dot, v_mul(w_scale, v_set1(product.x8.scale[index])), acc);
      }
      finish_panel(product, panel, row, acc);
    }
  }
}

}  // namespace

const CpuKernels& scalar_kernels() {
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
