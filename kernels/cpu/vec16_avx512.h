// V: sixteen floats in one AVX-512 register. vec16_scalar.h documents the operations.
#pragma once

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

namespace warmpath {
namespace {

using V = __m512;

inline V v_set1(float x) { return _mm512_set1_ps(x); }
inline V v_zero() { return _mm512_setzero_ps(); }
inline V v_load(const float* p) { return _mm512_loadu_ps(p); }
inline __mmask16 first_lanes(int n) { return static_cast<__mmask16>(n >= 16 ? 0xffffu : n <= 0 ? 0u : (1u << n) - 1u); }
inline V v_load_n(const float* p, int n) { return _mm512_maskz_loadu_ps(first_lanes(n), p); }
inline void v_store(float* p, V a) { _mm512_storeu_ps(p, a); }
inline void v_store_n(float* p, V a, int n) { _mm512_mask_storeu_ps(p, first_lanes(n), a); }
inline V v_load_half(const uint16_t* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
inline V v_load_bf16(const uint16_t* p) {
  return _mm512_castsi512_ps(
      _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))), 16));
}
inline V v_load_uint8(const uint8_t* p) {
  return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}
inline V v_load_int8(const uint8_t* p) {
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}
inline void v_store_half_n(uint16_t* p, V a, int n) {
  _mm256_mask_storeu_epi16(p, first_lanes(n), _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
inline V v_add(V a, V b) { return _mm512_add_ps(a, b); }
inline V v_sub(V a, V b) { return _mm512_sub_ps(a, b); }
inline V v_mul(V a, V b) { return _mm512_mul_ps(a, b); }
inline V v_div(V a, V b) { return _mm512_div_ps(a, b); }
inline V v_fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
inline V v_max(V a, V b) { return _mm512_max_ps(a, b); }
inline V v_min(V a, V b) { return _mm512_min_ps(a, b); }
inline V v_abs(V a) { return _mm512_abs_ps(a); }
inline V v_times_power_of_two(V a, V shifted) {
  return _mm512_castsi512_ps(
      _mm512_add_epi32(_mm512_castps_si512(a), _mm512_slli_epi32(_mm512_castps_si512(shifted), 23)));
}
inline V v_keep_first(V a, int n, float fill) { return _mm512_mask_mov_ps(_mm512_set1_ps(fill), first_lanes(n), a); }
inline V v_zero_below(V a, V x, float limit) {
  return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, _mm512_set1_ps(limit), _CMP_GE_OQ), a);
}
inline float sum8(__m256 s) {
  __m128 q = _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
  q = _mm_add_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_add_ss(q, _mm_shuffle_ps(q, q, 1)));
}
inline float v_sum(V a) { return sum8(_mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1))); }
inline float v_max_lane(V a) { return _mm512_reduce_max_ps(a); }
inline V v_swap_pairs(V a) { return _mm512_permute_ps(a, 0xb1); }
inline V v_load_twice_n(const float* p, int n) {
  const __m512i twice = _mm512_set_epi32(7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0);
  return _mm512_permutexvar_ps(twice, _mm512_maskz_loadu_ps(first_lanes(n), p));
}
inline V v_negate_even(V a) { return _mm512_xor_ps(a, _mm512_castsi512_ps(_mm512_set1_epi64(0x0000000080000000ll))); }
inline int32_t v_store_int8(int8_t* p, V a) {
  const __m128i q = _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(a));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), q);
  return _mm512_reduce_add_epi32(_mm512_cvtepi8_epi32(q));
}
inline void v_store_int16(int16_t* p, V a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtsepi32_epi16(_mm512_cvtps_epi32(a)));
}

using I = __m512i;
inline I i_zero() { return _mm512_setzero_si512(); }
inline I i_load_pairs(const int16_t* p) { return _mm512_loadu_si512(p); }
inline I i_set_pair(const int16_t* p) {
  int32_t pair;
  memcpy(&pair, p, sizeof pair);
  return _mm512_set1_epi32(pair);
}
// In assembly because g++ 12 copies and spills the accumulators of the intrinsic (three times slower in a full tile).
inline void i_dot_pairs(I& sum, I a, I b) { asm("vpdpwssd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b)); }
inline V v_from(I a) { return _mm512_cvtepi32_ps(a); }
inline void v_prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0); }

}  // namespace
}  // namespace warmpath
