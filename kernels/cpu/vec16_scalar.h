// V: sixteen floats, in plain C++. See vec16_avx2.h and vec16_avx512.h: the same names, the same bits.
// Included by one kernels_*.cc only; everything has internal linkage, because those files are compiled with -m flags
// that must not leak into the rest of the program through a shared inline function.
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernels/half.h"

namespace warmpath {
namespace {

struct V {
  float lane[16];
};

#define WARMPATH_LANES for (int i = 0; i < 16; ++i)

inline V v_set1(float x) {
  V r;
  WARMPATH_LANES r.lane[i] = x;
  return r;
}
inline V v_zero() { return v_set1(0.0f); }
inline V v_load(const float* p) {
  V r;
  memcpy(r.lane, p, sizeof r.lane);
  return r;
}
// Lanes from n on are zero.
inline V v_load_n(const float* p, int n) {
  V r = v_zero();
  memcpy(r.lane, p, sizeof(float) * static_cast<size_t>(n));
  return r;
}
inline void v_store(float* p, V a) { memcpy(p, a.lane, sizeof a.lane); }
inline void v_store_n(float* p, V a, int n) { memcpy(p, a.lane, sizeof(float) * static_cast<size_t>(n)); }
inline V v_load_half(const uint16_t* p) {
  V r;
  WARMPATH_LANES r.lane[i] = half_to_float(p[i]);
  return r;
}
inline V v_load_bf16(const uint16_t* p) {
  V r;
  WARMPATH_LANES {
    const uint32_t bits = static_cast<uint32_t>(p[i]) << 16;
    memcpy(&r.lane[i], &bits, sizeof bits);
  }
  return r;
}
inline V v_load_uint8(const uint8_t* p) {
  V r;
  WARMPATH_LANES r.lane[i] = static_cast<float>(p[i]);
  return r;
}
inline V v_load_int8(const uint8_t* p) {
  V r;
  WARMPATH_LANES r.lane[i] = static_cast<float>(static_cast<int8_t>(p[i]));
  return r;
}
inline void v_store_half_n(uint16_t* p, V a, int n) {
  for (int i = 0; i < n; ++i) p[i] = float_to_half(a.lane[i]);
}
inline V v_add(V a, V b) {
  WARMPATH_LANES a.lane[i] += b.lane[i];
  return a;
}
inline V v_sub(V a, V b) {
  WARMPATH_LANES a.lane[i] -= b.lane[i];
  return a;
}
inline V v_mul(V a, V b) {
  WARMPATH_LANES a.lane[i] *= b.lane[i];
  return a;
}
inline V v_div(V a, V b) {
  WARMPATH_LANES a.lane[i] /= b.lane[i];
  return a;
}
// a * b + c, rounded once.
inline V v_fma(V a, V b, V c) {
  WARMPATH_LANES c.lane[i] = fmaf(a.lane[i], b.lane[i], c.lane[i]);
  return c;
}
inline V v_max(V a, V b) {
  WARMPATH_LANES a.lane[i] = a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i];
  return a;
}
inline V v_min(V a, V b) {
  WARMPATH_LANES a.lane[i] = a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i];
  return a;
}
inline V v_abs(V a) {
  WARMPATH_LANES a.lane[i] = fabsf(a.lane[i]);
  return a;
}
// a * 2^n, where `shifted` is n + 1.5 * 2^23 (its low bits are the integer n), for a in [1/2, 2) and n in [-125, 126].
inline V v_times_power_of_two(V a, V shifted) {
  WARMPATH_LANES {
    uint32_t bits;
    uint32_t power;
    memcpy(&bits, &a.lane[i], sizeof bits);
    memcpy(&power, &shifted.lane[i], sizeof power);
    bits += power << 23;
    memcpy(&a.lane[i], &bits, sizeof bits);
  }
  return a;
}
// Lanes from n on become `fill`.
inline V v_keep_first(V a, int n, float fill) {
  for (int i = n < 0 ? 0 : n; i < 16; ++i) a.lane[i] = fill;
  return a;
}
// a where x >= limit, else zero.
inline V v_zero_below(V a, V x, float limit) {
  WARMPATH_LANES a.lane[i] = x.lane[i] >= limit ? a.lane[i] : 0.0f;
  return a;
}
// The lanes in a fixed tree: 8 + 8, 4 + 4, 2 + 2, 1 + 1.
inline float v_sum(V a) {
  for (int step = 8; step > 0; step /= 2) {
    for (int i = 0; i < step; ++i) a.lane[i] += a.lane[i + step];
  }
  return a.lane[0];
}
inline float v_max_lane(V a) {
  float m = a.lane[0];
  for (int i = 1; i < 16; ++i) m = m > a.lane[i] ? m : a.lane[i];
  return m;
}
// 1 0 3 2 5 4 ...
inline V v_swap_pairs(V a) {
  V r;
  WARMPATH_LANES r.lane[i] = a.lane[i ^ 1];
  return r;
}
// p0 p0 p1 p1 ... of the n pairs that exist, n <= 8; zero beyond.
inline V v_load_twice_n(const float* p, int n) {
  V r = v_zero();
  for (int i = 0; i < 2 * n; ++i) r.lane[i] = p[i / 2];
  return r;
}
// -a0 a1 -a2 a3 ...
inline V v_negate_even(V a) {
  for (int i = 0; i < 16; i += 2) a.lane[i] = -a.lane[i];
  return a;
}
// Rounds to nearest even, stores as int8, returns the sum. |a| <= 127.5 or the result is unspecified.
inline int32_t v_store_int8(int8_t* p, V a) {
  int32_t sum = 0;
  WARMPATH_LANES {
    const float r = rintf(a.lane[i]);
    p[i] = r >= -128.0f && r <= 127.0f ? static_cast<int8_t>(r) : int8_t{-128};
    sum += p[i];
  }
  return sum;
}
// Rounds to nearest even and stores as int16, saturated.
inline void v_store_int16(int16_t* p, V a) {
  WARMPATH_LANES {
    const float r = rintf(a.lane[i]);
    p[i] = r >= 32767.0f ? int16_t{32767} : r >= -32768.0f ? static_cast<int16_t>(r) : int16_t{-32768};
  }
}

// Sixteen 32-bit integers, or sixteen pairs of 16-bit ones.
struct I {
  int32_t lane[16];
};
inline I i_zero() { return {}; }
inline I i_load_pairs(const int16_t* p) {
  I r;
  memcpy(r.lane, p, sizeof r.lane);
  return r;
}
// One pair, in every lane.
inline I i_set_pair(const int16_t* p) {
  I r;
  WARMPATH_LANES memcpy(&r.lane[i], p, sizeof r.lane[i]);
  return r;
}
// sum += a.first * b.first + a.second * b.second
inline void i_dot_pairs(I& sum, I a, I b) {
  WARMPATH_LANES {
    const auto first = [](int32_t pair) { return static_cast<int32_t>(static_cast<int16_t>(pair)); };
    const auto second = [](int32_t pair) { return pair >> 16; };
    sum.lane[i] += first(a.lane[i]) * first(b.lane[i]) + second(a.lane[i]) * second(b.lane[i]);
  }
}
inline V v_from(I a) {
  V r;
  WARMPATH_LANES r.lane[i] = static_cast<float>(a.lane[i]);
  return r;
}
inline void v_prefetch(const void*) {}

#undef WARMPATH_LANES

}  // namespace
}  // namespace warmpath
