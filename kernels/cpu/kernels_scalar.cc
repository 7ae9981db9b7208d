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
#include "kernels/cpu/product_f32.inl"
#include "kernels/cpu/row_kernels.inl"

namespace warmpath {
namespace {

// The quant of panel row `lane` at column `column` of the block, from the nibbles of a kQ4 block.
inline int32_t q4_at(const uint8_t* quants, int lane, int column) {
  const int step = column / 4;
  const uint8_t byte = quants[(step % 4) * 64 + lane * 4 + column % 4];
  return step < 4 ? byte & 15 : byte >> 4;
}

template <bool Q4>
void product_quantized(const PanelProduct& product) {
  const int32_t blocks = product.columns / 32;
  for (int32_t panel = 0; panel < product.panels; ++panel) {
    const uint8_t* bytes = product.panel + panel * product.panel_bytes;
    for (int32_t row = 0; row < product.rows; ++row) {
      V acc = v_zero();
      for (int32_t block = 0; block < blocks; ++block) {
        const uint8_t* q4 = bytes + block * 320;
        const uint16_t* scales = reinterpret_cast<const uint16_t*>(Q4 ? q4 : bytes + block * 32);
        const int8_t* q8 = reinterpret_cast<const int8_t*>(bytes + (blocks * 32 + 63) / 64 * 64 + block * 512);
        const int8_t* x = product.x8.q + (row * static_cast<int64_t>(blocks) + block) * 32;
        V dot;
        for (int lane = 0; lane < 16; ++lane) {
          int32_t sum = 0;
          for (int k = 0; k < 32; ++k) sum += (Q4 ? q4_at(q4 + 64, lane, k) : q8[k / 4 * 64 + lane * 4 + k % 4]) * x[k];
          dot.lane[lane] = static_cast<float>(sum);
        }
        const int64_t index = row * static_cast<int64_t>(blocks) + block;
        acc = v_fma(dot, v_mul(v_load_half(scales), v_set1(product.x8.scale[index])), acc);
        if (Q4) acc = v_fma(v_load_half(scales + 16), v_set1(product.x8.sum[index]), acc);
      }
      finish_panel(product, panel, row, acc);
    }
  }
}

}  // namespace

const CpuKernels& scalar_kernels() {
  static constexpr CpuKernels kTable = {
      rms_norm_row, swiglu_row,      add_row,        quantize_row, product_quantized<true>, product_quantized<false>,
      product_f32,  rope_adjacent,   rope_halves,    to_f16,       quantize16_by_length,    quantize16_by_largest,
      scale_row,    attention_split, attention_merge};
  return kTable;
}

}  // namespace warmpath
