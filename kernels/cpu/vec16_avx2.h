// V: sixteen floats in two AVX2 registers. vec16_scalar.h documents the operations.
#pragma once

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

namespace warmpath {
namespace {

struct V {
  __m256 a, b;
};

inline V v_set1(float x) {
  const __m256 r = _mm256_set1_ps(x);
  return {r, r};
}
inline V v_zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
inline V v_load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
inline __m256i lane_numbers() { return _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7); }
inline __m256i first_lanes(int n) { return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), lane_numbers()); }
inline V v_load_n(const float* p, int n) {
  if (n >= 16) return v_load(p);
  return {_mm256_maskload_ps(p, first_lanes(n)),
          n > 8 ? _mm256_maskload_ps(p + 8, first_lanes(n - 8)) : _mm256_setzero_ps()};
}
inline void v_store(float* p, V x) {
  _mm256_storeu_ps(p, x.a);
  _mm256_storeu_ps(p + 8, x.b);
}
inline void v_store_n(float* p, V x, int n) {
  if (n >= 16) return v_store(p, x);
  _mm256_maskstore_ps(p, first_lanes(n), x.a);
  if (n > 8) _mm256_maskstore_ps(p + 8, first_lanes(n - 8), x.b);
}
inline V v_load_half(const uint16_t* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
          _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)))};
}
inline V v_load_bf16(const uint16_t* p) {
  const auto widen = [](const uint16_t* from) {
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))), 16));
  };
  return {widen(p), widen(p + 8)};
}
inline V v_load_uint8(const uint8_t* p) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)),
          _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_unpackhi_epi64(bytes, bytes)))};
}
inline V v_load_int8(const uint8_t* p) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)),
          _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_unpackhi_epi64(bytes, bytes)))};
}
inline void v_store_half_n(uint16_t* p, V x, int n) {
  alignas(32) uint16_t halves[16];
  uint16_t* to = n >= 16 ? p : halves;
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_cvtps_ph(x.a, _MM_FROUND_TO_NEAREST_INT));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 8), _mm256_cvtps_ph(x.b, _MM_FROUND_TO_NEAREST_INT));
  for (int i = 0; n < 16 && i < n; ++i) p[i] = halves[i];
}
inline V v_add(V x, V y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
inline V v_sub(V x, V y) { return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
inline V v_mul(V x, V y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
inline V v_div(V x, V y) { return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
inline V v_fma(V x, V y, V z) { return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)}; }
inline V v_max(V x, V y) { return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }
inline V v_min(V x, V y) { return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)}; }
inline V v_abs(V x) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_andnot_ps(sign, x.a), _mm256_andnot_ps(sign, x.b)};
}
inline __m256 times_power_of_two8(__m256 x, __m256 shifted) {
  return _mm256_castsi256_ps(
      _mm256_add_epi32(_mm256_castps_si256(x), _mm256_slli_epi32(_mm256_castps_si256(shifted), 23)));
}
inline V v_times_power_of_two(V x, V shifted) {
  return {times_power_of_two8(x.a, shifted.a), times_power_of_two8(x.b, shifted.b)};
}
inline V v_keep_first(V x, int n, float fill) {
  const __m256 f = _mm256_set1_ps(fill);
  return {_mm256_blendv_ps(f, x.a, _mm256_castsi256_ps(first_lanes(n))),
          _mm256_blendv_ps(f, x.b, _mm256_castsi256_ps(first_lanes(n - 8)))};
}
inline V v_zero_below(V x, V y, float limit) {
  const __m256 l = _mm256_set1_ps(limit);
  return {_mm256_and_ps(x.a, _mm256_cmp_ps(y.a, l, _CMP_GE_OQ)), _mm256_and_ps(x.b, _mm256_cmp_ps(y.b, l, _CMP_GE_OQ))};
}
inline float v_sum(V x) {
  const __m256 s = _mm256_add_ps(x.a, x.b);
  __m128 q = _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
  q = _mm_add_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_add_ss(q, _mm_shuffle_ps(q, q, 1)));
}
inline float v_max_lane(V x) {
  const __m256 s = _mm256_max_ps(x.a, x.b);
  __m128 q = _mm_max_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
  q = _mm_max_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_max_ss(q, _mm_shuffle_ps(q, q, 1)));
}
inline V v_swap_pairs(V x) { return {_mm256_permute_ps(x.a, 0xb1), _mm256_permute_ps(x.b, 0xb1)}; }
inline V v_load_twice_n(const float* p, int n) {
  const __m256 s = n >= 8 ? _mm256_loadu_ps(p) : _mm256_maskload_ps(p, first_lanes(n));
  return {_mm256_permutevar8x32_ps(s, _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3)),
          _mm256_permutevar8x32_ps(s, _mm256_setr_epi32(4, 4, 5, 5, 6, 6, 7, 7))};
}
inline V v_negate_even(V x) {
  const __m256 sign = _mm256_castsi256_ps(_mm256_set1_epi64x(0x0000000080000000ll));
  return {_mm256_xor_ps(x.a, sign), _mm256_xor_ps(x.b, sign)};
}
inline int32_t v_store_int8(int8_t* p, V x) {
  __m256i words = _mm256_packs_epi32(_mm256_cvtps_epi32(x.a), _mm256_cvtps_epi32(x.b));
  words = _mm256_permute4x64_epi64(words, 0xd8);  // the pack worked in 128-bit halves
  const __m128i q = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), q);
  const __m256i pairs = _mm256_madd_epi16(_mm256_cvtepi8_epi16(q), _mm256_set1_epi16(1));
  __m128i s = _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
  s = _mm_add_epi32(s, _mm_unpackhi_epi64(s, s));
  return _mm_cvtsi128_si32(s) + _mm_extract_epi32(s, 1);
}
inline void v_store_int16(int16_t* p, V x) {
  const __m256i words = _mm256_packs_epi32(_mm256_cvtps_epi32(x.a), _mm256_cvtps_epi32(x.b));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(words, 0xd8));
}

struct I {
  __m256i a, b;
};
inline I i_zero() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
inline I i_load_pairs(const int16_t* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 16))};
}
inline I i_set_pair(const int16_t* p) {
  int32_t pair;
  memcpy(&pair, p, sizeof pair);
  const __m256i r = _mm256_set1_epi32(pair);
  return {r, r};
}
// In assembly because g++ 12 otherwise copies every sum each round.
inline void add_words(__m256i& sum, __m256i x) { asm("vpaddd %1, %0, %0" : "+x"(sum) : "x"(x)); }
inline void i_dot_pairs(I& sum, I x, I y) {
  add_words(sum.a, _mm256_madd_epi16(x.a, y.a));
  add_words(sum.b, _mm256_madd_epi16(x.b, y.b));
}
inline V v_from(I x) { return {_mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b)}; }
inline void v_prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0); }

}  // namespace
}  // namespace warmpath
