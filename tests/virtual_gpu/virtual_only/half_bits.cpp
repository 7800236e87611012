// The runtime's own conversions between float and the 16-bit types: all values, and the roundings between
// them.
#include "half_bits.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace virtual_only {
namespace {

struct Format {
  float (*widen)(std::uint16_t);
  std::uint16_t (*round)(float);
  std::uint16_t infinity;
  int fraction, bias;
};
const Format kF16{vgpu::float_from_f16, vgpu::f16_from_float, 0x7c00, 10, 15};
const Format kBf16{vgpu::float_from_bf16, vgpu::bf16_from_float, 0x7f80, 7, 127};

class HalfBitsTest : public testing::TestWithParam<Format> {};
INSTANTIATE_TEST_SUITE_P(Formats, HalfBitsTest, testing::Values(kF16, kBf16));

/// The value that the bits stand for, by the format's definition.
double meaning(const Format& format, std::uint16_t bits) {
  const int exponent = (bits & 0x7fff) >> format.fraction, fraction = bits & ((1 << format.fraction) - 1);
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - format.bias - format.fraction);
  return sign * std::ldexp((1 << format.fraction) + fraction, exponent - format.bias - format.fraction);
}

TEST_P(HalfBitsTest, EveryValueWidensAndComesBack) {
  const Format& format = GetParam();
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float wide = format.widen(half);
    const unsigned magnitude = bits & 0x7fff;
    if (magnitude > format.infinity) {
      ASSERT_TRUE(std::isnan(wide)) << bits;
      ASSERT_TRUE(std::isnan(format.widen(format.round(wide)))) << bits;
      continue;
    }
    if (magnitude == format.infinity) {
      ASSERT_EQ(wide, bits & 0x8000 ? -INFINITY : INFINITY);
    } else {
      ASSERT_EQ(wide, meaning(format, half)) << bits;
    }
    ASSERT_EQ(std::signbit(wide), (bits & 0x8000) != 0);
    ASSERT_EQ(format.round(wide), half) << bits;
  }
}

// Between two neighbours: the middle goes to the even one, what is off the middle to the nearer one.
TEST_P(HalfBitsTest, RoundsToNearestTiesToEven) {
  const Format& format = GetParam();
  for (std::uint16_t low = 0; low + 1 < format.infinity; ++low) {
    const std::uint16_t high = low + 1, even = low % 2 == 0 ? low : high;
    const auto middle = static_cast<float>((meaning(format, low) + meaning(format, high)) / 2);
    ASSERT_EQ(format.round(middle), even) << low;
    ASSERT_EQ(format.round(-middle), even | 0x8000) << low;
    ASSERT_EQ(format.round(std::nextafter(middle, INFINITY)), high) << low;
    ASSERT_EQ(format.round(std::nextafter(middle, 0.0f)), low) << low;
  }
}

TEST_P(HalfBitsTest, TooLargeBecomesInfinite) {
  const Format& format = GetParam();
  const std::uint16_t largest = format.infinity - 1;
  const double step = meaning(format, largest) - meaning(format, largest - 1);
  const auto limit = static_cast<float>(meaning(format, largest) + step / 2);
  EXPECT_EQ(format.round(limit), format.infinity);
  EXPECT_EQ(format.round(-limit), format.infinity | 0x8000);
  EXPECT_EQ(format.round(std::nextafter(limit, 0.0f)), largest);
  EXPECT_EQ(format.round(INFINITY), format.infinity);
  EXPECT_TRUE(std::isnan(format.widen(format.round(std::numeric_limits<float>::quiet_NaN()))));
}

}  // namespace
}  // namespace virtual_only
