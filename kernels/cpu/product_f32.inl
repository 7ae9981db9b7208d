// Rows times f32 panels, over V: one fused multiply-add per column, columns in turn. kFloatRows rows share a panel's
// loads.
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

template <int Rows>
inline void f32_tile(const PanelProduct& product, int32_t panel, int32_t row) {
  const float* weights = reinterpret_cast<const float*>(product.panel + panel * product.panel_bytes);
  const float* x = product.x + row * product.x_stride;
  V acc[Rows];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) acc[r] = v_zero();
  for (int32_t k = 0; k < product.columns; ++k) {
    const V w = v_load(weights + 16 * k);
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) acc[r] = v_fma(v_set1(x[r * product.x_stride + k]), w, acc[r]);
  }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) finish_panel(product, panel, row + r, acc[r]);
}

void product_f32(const PanelProduct& product) {
  for (int32_t panel = 0; panel < product.panels; ++panel) {
    int32_t row = 0;
    for (; row + kFloatRows <= product.rows; row += kFloatRows) f32_tile<kFloatRows>(product, panel, row);
    for (; row < product.rows; ++row) f32_tile<1>(product, panel, row);
  }
}

}  // namespace
}  // namespace warmpath
