#include "kernels/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/isa.h"

namespace warmpath {
namespace {

TEST(Half, EveryValueSurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = half_to_float(half);
    if (std::isnan(value)) {
      EXPECT_EQ(float_to_half(value), half | 0x200) << bits;  // a quiet NaN
      continue;
    }
    ASSERT_EQ(float_to_half(value), half) << bits;
    // The value by definition.
    const int exponent = (half >> 10) & 31;
    const double mantissa = half & 1023;
    const double magnitude = exponent == 31  ? INFINITY
                             : exponent == 0 ? std::ldexp(mantissa, -24)
                                             : std::ldexp(1024 + mantissa, exponent - 25);
    ASSERT_EQ(static_cast<double>(value), (half & 0x8000) != 0 ? -magnitude : magnitude) << bits;
  }
}

TEST(Half, RoundsToNearestEven) {
  EXPECT_EQ(float_to_half(1.0f + 0x1p-11f), 0x3c00);             // half way: to even
  EXPECT_EQ(float_to_half(1.0f + 3 * 0x1p-11f), 0x3c02);         // half way: to even, up
  EXPECT_EQ(float_to_half(1.0f + 0x1p-11f + 0x1p-20f), 0x3c01);  // above
  EXPECT_EQ(float_to_half(65519.0f), 0x7bff);
  EXPECT_EQ(float_to_half(65520.0f), 0x7c00);
  EXPECT_EQ(float_to_half(0x1p-25f), 0x0000);
  EXPECT_EQ(float_to_half(0x1.000002p-25f), 0x0001);
  EXPECT_EQ(float_to_half(-0.0f), 0x8000);
}

// The machine's own conversion, where it has one, agrees: cached keys are the same bytes on every path.
TEST(Half, TheVectorPathsAgreeWithIt) {
  std::vector<float> values;
  for (uint32_t bits = 0; bits < 0xff800000u; bits += 65521) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    if (!std::isnan(value) && std::abs(value) <= 65504.0f) values.push_back(value);
  }
  std::vector<uint16_t> expected;
  for (float value : values) expected.push_back(float_to_half(value));
  for (Isa isa : supported_isas()) {
    std::vector<uint16_t> halves(values.size());
    kernels_of(isa).to_f16(values.data(), static_cast<int32_t>(values.size()), halves.data());
    EXPECT_EQ(halves, expected) << isa_name(isa);
  }
}

}  // namespace
}  // namespace warmpath
