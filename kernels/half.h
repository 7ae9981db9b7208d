// 16-bit floats in software, the very bits that F16C and the GPU make (round to nearest even, subnormals kept).
// Internal linkage: this header is included by files with differing -m flags. Thread safety: pure functions.
#pragma once

#include <stdint.h>
#include <string.h>

namespace warmpath {
namespace {

[[maybe_unused]] inline float half_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1fu;
  uint32_t mantissa = half & 0x3ffu;
  uint32_t bits = sign;
  if (exponent == 0x1f) {
    bits |= 0x7f800000u | (mantissa << 13) | (mantissa != 0 ? 0x400000u : 0u);
  } else if (exponent != 0) {
    bits |= ((exponent + 112) << 23) | (mantissa << 13);
  } else if (mantissa != 0) {
    uint32_t shift = 113;
    for (; (mantissa & 0x400u) == 0; mantissa <<= 1) --shift;
    bits |= (shift << 23) | ((mantissa & 0x3ffu) << 13);
  }
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

[[maybe_unused]] inline uint16_t float_to_half(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  bits &= 0x7fffffffu;
  if (bits > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | ((bits >> 13) & 0x3ffu));
  if (bits >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // rounds beyond 65504
  if (bits < 0x33000001u) return sign;                                    // at most half the smallest subnormal
  uint32_t shift = 13;
  uint32_t mantissa = bits;
  uint32_t bias = 112u << 23;
  if (bits < 0x38800000u) {  // a subnormal half
    shift = 126 - (bits >> 23);
    mantissa = (bits & 0x7fffffu) | 0x800000u;
    bias = 0;
  }
  mantissa -= bias;
  const uint32_t rest = mantissa & ((1u << shift) - 1u);
  const uint32_t middle = 1u << (shift - 1);
  uint32_t half = mantissa >> shift;
  if (rest > middle || (rest == middle && (half & 1u) != 0)) ++half;
  return static_cast<uint16_t>(sign | half);
}

}  // namespace
}  // namespace warmpath
