// Rows times panels of floats, over V: one fused multiply-add per column, columns in turn. kFloatRows rows share a
// panel's loads. 16-bit floats are widened as they are loaded, which is exact: all three kinds give the same bits.
#pragma once

namespace warmpath {
namespace {

// y[16] (+)= acc (+ bias), the columns that exist.
inline void finish_panel(const PanelProduct& product, int32_t panel, int32_t row, V acc) {
  const int32_t column = panel * 16;
  const int32_t n = product.valid - column < 16 ? product.valid - column : 16;
  float* y = product.y + row * product.y_stride + column;
  if (product.bias != nullptr) acc = v_add(acc, v_load_n(product.bias + column, n));
  if (product.accumulate) acc = v_add(v_load_n(y, n), acc);
  v_store_n(y, acc, n);
}

inline V load_weights(const float* p) { return v_load(p); }
struct Half {
  uint16_t bits;
};
inline V load_weights(const Half* p) { return v_load_half(&p->bits); }
struct BFloat16 {
  uint16_t bits;
};
inline V load_weights(const BFloat16* p) { return v_load_bf16(&p->bits); }

template <typename Weight, int Rows>
inline void float_tile(const PanelProduct& product, int32_t panel, int32_t row) {
  const auto* weights = reinterpret_cast<const Weight*>(product.panel + panel * product.panel_bytes);
  const float* x = product.x + row * product.x_stride;
  V acc[Rows];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) acc[r] = v_zero();
  for (int32_t k = 0; k < product.columns; ++k) {
    const V w = load_weights(weights + 16 * static_cast<int64_t>(k));
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) acc[r] = v_fma(v_set1(x[r * product.x_stride + k]), w, acc[r]);
  }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) finish_panel(product, panel, row + r, acc[r]);
}

template <typename Weight>
void product_float(const PanelProduct& product) {
  for (int32_t panel = 0; panel < product.panels; ++panel) {
    int32_t row = 0;
    for (; row + kFloatRows <= product.rows; row += kFloatRows) float_tile<Weight, kFloatRows>(product, panel, row);
    for (; row < product.rows; ++row) float_tile<Weight, 1>(product, panel, row);
  }
}

}  // namespace
}  // namespace warmpath
