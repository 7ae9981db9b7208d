// The quants of panels (kernels/panel_layout.h) as bytes of AVX-512 registers: what the AVX-512 and the AMX table read
// in the same way. Included by kernels_avx512.cc and kernels_amx.cc. Thread safety: pure functions.
#pragma once

#include <immintrin.h>
#include <stdint.h>

#include "kernels/panel_layout.h"

namespace warmpath {
namespace {

inline __m512i load_bytes(const uint8_t* p) { return _mm512_load_si512(p); }

// The quants of step `Step` of a block, 64 bytes. `low` is the vector that holds them, `high` the one with their upper
// bits, which move to bit 4 of every byte.
template <QuantPanel P, int Step>
inline __m512i quants_of_step(__m512i low, __m512i high) {
  const __m512i shifted = Step < 4 ? low : _mm512_srli_epi16(low, 4);
  const __m512i nibbles = _mm512_and_si512(shifted, _mm512_set1_epi8(15));
  if constexpr (P.bits == 4) return nibbles;
  constexpr int kFrom = P.bits == 5 ? Step : Step % 4 * 2;
  const __m512i upper = kFrom < 4 ? _mm512_slli_epi16(high, 4 - kFrom) : _mm512_srli_epi16(high, kFrom - 4);
  const __m512i mask = _mm512_set1_epi8(P.bits == 5 ? 0x10 : 0x30);
  return _mm512_ternarylogic_epi32(nibbles, upper, mask, 0xf8);  // nibbles | (upper & mask)
}

}  // namespace
}  // namespace warmpath
