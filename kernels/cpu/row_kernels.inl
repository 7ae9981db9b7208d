// Kernels over one row, written once over V. Included by kernels_*.cc after a vec16_*.h.
#pragma once

namespace warmpath {
namespace {

constexpr float kLog2E = 1.44269504088896341f;

// 2^x. Below -100 the result is zero (the least p that attention sums keeps p * v normal); above 126 it is 2^126.
// The polynomial is the least relative error (1.1e-7) of degree 5 to 2^f on [-1/2, 1/2] with constant 1.
inline V v_exp2(V x) {
  const V clamped = v_max(v_min(x, v_set1(126.0f)), v_set1(-125.0f));
  const V round = v_set1(12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer
  const V shifted = v_add(clamped, round);
  const V f = v_sub(clamped, v_sub(shifted, round));
  V p = v_set1(1.3264727247e-3f);
  p = v_fma(p, f, v_set1(9.6715126882e-3f));
  p = v_fma(p, f, v_set1(5.5507337436e-2f));
  p = v_fma(p, f, v_set1(2.4022242085e-1f));
  p = v_fma(p, f, v_set1(6.9314697760e-1f));
  p = v_fma(p, f, v_set1(1.0f));
  return v_zero_below(v_times_power_of_two(p, shifted), x, -100.0f);
}

void rms_norm_row(const float* x, const float* weight, float eps, int32_t width, float* y) {
  V squares = v_zero();
  int32_t i = 0;
  for (; i + 16 <= width; i += 16) {
    const V v = v_load(x + i);
    squares = v_fma(v, v, squares);
  }
  if (i < width) {
    const V v = v_load_n(x + i, width - i);
    squares = v_fma(v, v, squares);
  }
  const float factor = 1.0f / sqrtf(v_sum(squares) / static_cast<float>(width) + eps);
  const V r = v_set1(factor);
  for (i = 0; i + 16 <= width; i += 16) v_store(y + i, v_mul(v_mul(v_load(x + i), r), v_load(weight + i)));
  if (i < width) {
    const int n = width - i;
    v_store_n(y + i, v_mul(v_mul(v_load_n(x + i, n), r), v_load_n(weight + i, n)), n);
  }
}

// silu(g) * u with silu(g) = g / (1 + e^-g).
inline V v_swiglu(V g, V u) {
  const V e = v_exp2(v_mul(g, v_set1(-kLog2E)));
  return v_mul(v_div(g, v_add(v_set1(1.0f), e)), u);
}

void swiglu_row(const float* gate, const float* up, int32_t width, float* y) {
  int32_t i = 0;
  for (; i + 16 <= width; i += 16) v_store(y + i, v_swiglu(v_load(gate + i), v_load(up + i)));
  if (i < width) v_store_n(y + i, v_swiglu(v_load_n(gate + i, width - i), v_load_n(up + i, width - i)), width - i);
}

void add_row(const float* x, int32_t width, float* y) {
  int32_t i = 0;
  for (; i + 16 <= width; i += 16) v_store(y + i, v_add(v_load(y + i), v_load(x + i)));
  if (i < width) v_store_n(y + i, v_add(v_load_n(y + i, width - i), v_load_n(x + i, width - i)), width - i);
}

void scale_row(const float* x, float factor, int32_t width, float* y) {
  const V f = v_set1(factor);
  int32_t i = 0;
  for (; i + 16 <= width; i += 16) v_store(y + i, v_mul(v_load(x + i), f));
  if (i < width) v_store_n(y + i, v_mul(v_load_n(x + i, width - i), f), width - i);
}

void quantize_row(const float* x, int32_t width, int8_t* q, float* scale, float* sum, int32_t* q_sum) {
  for (int32_t block = 0; block < width / 32; ++block, x += 32, q += 32) {
    const V low = v_load(x);
    const V high = v_load(x + 16);
    const float largest = v_max_lane(v_max(v_abs(low), v_abs(high)));
    const bool flat = !(largest > 1e-30f);  // zeros, or too small for the division
    const float s = flat ? 0.0f : largest / 127.0f;
    const V inverse = v_set1(flat ? 0.0f : 127.0f / largest);
    q_sum[2 * block] = v_store_int8(q, v_mul(low, inverse));
    q_sum[2 * block + 1] = v_store_int8(q + 16, v_mul(high, inverse));
    scale[block] = s;
    sum[block] = s * static_cast<float>(q_sum[2 * block] + q_sum[2 * block + 1]);
  }
}

inline void scale_to_int16(const float* x, int32_t width, float factor, int16_t* q) {
  const V f = v_set1(factor);
  for (int32_t i = 0; i < width; i += 16) v_store_int16(q + i, v_mul(v_load(x + i), f));
}

// REQUIRES width % 16 == 0, here and below.
void quantize16_by_length(const float* x, int32_t width, int16_t* q, float* scale) {
  V squares = v_zero();
  for (int32_t i = 0; i < width; i += 16) squares = v_fma(v_load(x + i), v_load(x + i), squares);
  const float length = sqrtf(v_sum(squares));
  const bool flat = !(length > 1e-15f);
  *scale = flat ? 0.0f : length / 32767.0f;
  scale_to_int16(x, width, flat ? 0.0f : 32767.0f / length, q);
}

void quantize16_by_largest(const float* x, int32_t width, int16_t* q, float* scale) {
  V largest = v_zero();
  for (int32_t i = 0; i < width; i += 16) largest = v_max(v_abs(v_load(x + i)), largest);
  const float max = v_max_lane(largest);
  const bool flat = !(max > 1e-25f);
  *scale = flat ? 0.0f : max / 8000.0f;
  scale_to_int16(x, width, flat ? 0.0f : 8000.0f / max, q);
}

void rope_adjacent(float* x, const float* cos, const float* sin, int32_t half) {
  for (int32_t i = 0; i < half; i += 8) {
    const int32_t n = half - i < 8 ? half - i : 8;
    const V v = v_load_n(x + 2 * i, 2 * n);
    const V turned = v_mul(v_swap_pairs(v), v_negate_even(v_load_twice_n(sin + i, n)));
    v_store_n(x + 2 * i, v_fma(v, v_load_twice_n(cos + i, n), turned), 2 * n);
  }
}

void rope_halves(float* x, const float* cos, const float* sin, int32_t half) {
  for (int32_t i = 0; i < half; i += 16) {
    const int32_t n = half - i < 16 ? half - i : 16;
    const V a = v_load_n(x + i, n);
    const V b = v_load_n(x + half + i, n);
    const V c = v_load_n(cos + i, n);
    const V s = v_load_n(sin + i, n);
    v_store_n(x + i, v_fma(a, c, v_mul(b, v_sub(v_zero(), s))), n);
    v_store_n(x + half + i, v_fma(b, c, v_mul(a, s)), n);
  }
}

void to_f16(const float* x, int32_t width, uint16_t* y) {
  for (int32_t i = 0; i < width; i += 16) {
    const int32_t n = width - i < 16 ? width - i : 16;
    const V v = v_max(v_min(v_load_n(x + i, n), v_set1(65504.0f)), v_set1(-65504.0f));
    v_store_half_n(y + i, v, n);
  }
}

}  // namespace
}  // namespace warmpath
