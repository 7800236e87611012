// half and bfloat16 on the host: conversions, rounding, arithmetic. CUDA Math API, "Half Precision
// Intrinsics" and "Bfloat16 Precision Intrinsics".
#include "sixteen_bit.hpp"

#include <cstring>
#include <random>
#include <type_traits>

namespace semantics {
namespace {

/// Samples of all patterns: zeros, subnormal, normal and special values.
template <class Type>
std::vector<int> some_patterns() {
  std::vector<int> patterns;
  for (const int bits :
       {0, 1, 2, 3, (1 << Type::kMantissaBits) - 1, 1 << Type::kMantissaBits,
        Reference<Type>::kBias << Type::kMantissaBits, (Reference<Type>::kBias << Type::kMantissaBits) + 1,
        Reference<Type>::kInfinityBits - 1, Reference<Type>::kInfinityBits,
        Reference<Type>::kInfinityBits + 1}) {
    patterns.push_back(bits);
    patterns.push_back(bits | 0x8000);
  }
  std::mt19937 random(17);
  for (int i = 0; i < 100; ++i) patterns.push_back(static_cast<int>(random() & 0xffff));
  return patterns;
}

/// On the host, without a GPU.
template <class T>
class SixteenBitTest : public testing::Test {};
TYPED_TEST_SUITE(SixteenBitTest, Types);

TYPED_TEST(SixteenBitTest, Layout) {
  using Number = typename TypeParam::Number;
  using Pair = typename TypeParam::Pair;
  static_assert(sizeof(Number) == 2 && alignof(Number) == 2 && sizeof(Pair) == 4 && alignof(Pair) == 4);
  static_assert(std::is_trivially_copyable_v<Number> && std::is_trivially_default_constructible_v<Number>);
  const Pair pair = TypeParam::pair(1, 2);
  unsigned short halves[2];
  std::memcpy(halves, &pair, sizeof(pair));
  EXPECT_EQ(halves[0], TypeParam::bits(TypeParam::from_float(1)));
  EXPECT_EQ(halves[1], TypeParam::bits(TypeParam::from_float(2)));
}

TYPED_TEST(SixteenBitTest, EveryPatternHasItsValue) {
  using Expected = Reference<TypeParam>;
  for (int bits = 0; bits < Expected::kPatterns; ++bits) {
    const auto number = TypeParam::from_bits(static_cast<unsigned short>(bits));
    ASSERT_EQ(TypeParam::bits(number), bits);
    const float value = TypeParam::to_float(number);
    ASSERT_EQ(static_cast<bool>(__hisnan(number)), Expected::is_nan(bits)) << bits;
    if (Expected::is_nan(bits)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_TRUE(Expected::is_nan(TypeParam::bits(TypeParam::from_float(value)))) << bits;
      continue;
    }
    ASSERT_EQ(value, Expected::value(bits)) << bits;
    ASSERT_EQ(std::signbit(value), (bits & 0x8000) != 0) << bits;
    ASSERT_EQ(TypeParam::bits(TypeParam::from_float(value)), bits);
    ASSERT_EQ(TypeParam::bits(TypeParam::from_double(value)), bits);
  }
}

TYPED_TEST(SixteenBitTest, FloatsAreRoundedToTheNearest) {
  for (const float value : boundaries<TypeParam, float>()) {
    const int expected = Reference<TypeParam>::nearest(value);
    ASSERT_EQ(TypeParam::bits(TypeParam::from_float(value)), expected) << std::hexfloat << value;
    ASSERT_EQ(TypeParam::bits(TypeParam::from_float_rn(value)), expected) << std::hexfloat << value;
    ASSERT_EQ(TypeParam::bits(typename TypeParam::Number(value)), expected) << std::hexfloat << value;
  }
  EXPECT_TRUE(std::isnan(TypeParam::to_float(TypeParam::from_float(kNan))));
  EXPECT_TRUE(std::isnan(TypeParam::to_float(TypeParam::from_float(-kNan))));
}

// Rounded to float first, values next to a midpoint would become the midpoint.
TYPED_TEST(SixteenBitTest, DoublesAreRoundedOnce) {
  for (const double value : boundaries<TypeParam, double>()) {
    ASSERT_EQ(TypeParam::bits(TypeParam::from_double(value)), Reference<TypeParam>::nearest(value))
        << std::hexfloat << value;
  }
  EXPECT_EQ(TypeParam::to_float(TypeParam::from_double(1e300)), kInfinity);
  EXPECT_EQ(TypeParam::to_float(TypeParam::from_double(-1e-300)), 0);
}

TYPED_TEST(SixteenBitTest, IntegersAreRoundedOnce) {
  using Number = typename TypeParam::Number;
  const auto expect = [](auto integer) {
    EXPECT_EQ(TypeParam::bits(Number(integer)), Reference<TypeParam>::nearest(static_cast<double>(integer)))
        << integer;
  };
  for (int size = 0; size < 31; ++size) {
    for (const int more : {-1, 0, 1, 1 << size >> 9, 1 << size >> 12, (1 << size >> 9) + 1}) {
      expect((1 << size) + more);
      expect(-(1 << size) - more);
      expect(static_cast<unsigned int>((1 << size) + more));
      expect(static_cast<short>((1 << size >> 16) + more));
    }
  }
  expect(~0u);
  expect(std::numeric_limits<int>::min());
  // A double holds at most 53 bits of these; without the last 1 they would be midpoints.
  const double above = 0x1p60 + 0x1p53, below = 0x1p60;
  EXPECT_EQ(TypeParam::bits(Number((1LL << 60) + (1LL << 52) + 1)), Reference<TypeParam>::nearest(above));
  EXPECT_EQ(TypeParam::bits(Number((1LL << 60) + (1LL << 52))), Reference<TypeParam>::nearest(below));
  EXPECT_EQ(TypeParam::bits(Number((1LL << 60) + (1LL << 52) - 1)), Reference<TypeParam>::nearest(below));
  EXPECT_EQ(TypeParam::bits(Number(-(1LL << 60) - (1LL << 52) - 1)), Reference<TypeParam>::nearest(-above));
  EXPECT_EQ(TypeParam::bits(Number((1ULL << 60) + (1ULL << 52) + 1)), Reference<TypeParam>::nearest(above));
}

TYPED_TEST(SixteenBitTest, IntegersAreCutOffAndSaturate) {
  using Number = typename TypeParam::Number;
  EXPECT_EQ(static_cast<int>(Number(2.75f)), 2);
  EXPECT_EQ(static_cast<int>(Number(-2.75f)), -2);
  EXPECT_EQ(static_cast<unsigned int>(Number(-2.75f)), 0u);
  EXPECT_EQ(static_cast<signed char>(Number(1000.0f)), 127);
  EXPECT_EQ(static_cast<signed char>(Number(-1000.0f)), -128);
  EXPECT_EQ(static_cast<unsigned short>(Number(kInfinity)), 65535);
  EXPECT_EQ(static_cast<short>(Number(-kInfinity)), -32768);
  EXPECT_EQ(static_cast<int>(Number(kInfinity)), std::numeric_limits<int>::max());
  EXPECT_EQ(static_cast<int>(Number(-kInfinity)), std::numeric_limits<int>::min());
  EXPECT_EQ(static_cast<int>(Number(kNan)), 0);
  EXPECT_EQ(static_cast<long long>(Number(kInfinity)), std::numeric_limits<long long>::max());
  EXPECT_EQ(static_cast<unsigned long long>(Number(kInfinity)), ~0ull);
}

TYPED_TEST(SixteenBitTest, ArithmeticRoundsEachResult) {
  using Expected = Reference<TypeParam>;
  const auto expect = [](auto result, double exact) {
    const int bits = TypeParam::bits(result);
    if (std::isnan(exact)) {
      ASSERT_TRUE(Expected::is_nan(bits));
    } else {
      ASSERT_EQ(bits, Expected::nearest(exact));
    }
  };
  // A double has more than twice as many bits, so rounding its result equals rounding the exact one.
  for (const int left : some_patterns<TypeParam>()) {
    for (const int right : some_patterns<TypeParam>()) {
      const auto a = TypeParam::from_bits(static_cast<unsigned short>(left));
      const auto b = TypeParam::from_bits(static_cast<unsigned short>(right));
      const double x = Expected::value(left), y = Expected::value(right);
      expect(a + b, x + y);
      expect(__hadd(a, b), x + y);
      expect(a - b, x - y);
      expect(__hsub(a, b), x - y);
      expect(a * b, x * y);
      expect(__hmul(a, b), x * y);
      expect(a / b, x / y);
      if (this->HasFatalFailure()) FAIL() << std::hex << left << " and " << right;
    }
  }
}

TYPED_TEST(SixteenBitTest, ComparisonsAreThoseOfTheValues) {
  using Expected = Reference<TypeParam>;
  for (const int left : some_patterns<TypeParam>()) {
    for (const int right : some_patterns<TypeParam>()) {
      const auto a = TypeParam::from_bits(static_cast<unsigned short>(left));
      const auto b = TypeParam::from_bits(static_cast<unsigned short>(right));
      const double x = Expected::value(left), y = Expected::value(right);
      ASSERT_EQ(a == b, x == y);
      ASSERT_EQ(a != b, x != y);
      ASSERT_EQ(a < b, x < y);
      ASSERT_EQ(a <= b, x <= y);
      ASSERT_EQ(a > b, x > y);
      ASSERT_EQ(a >= b, x >= y);
      ASSERT_EQ(__heq(a, b), x == y);
      ASSERT_EQ(__hne(a, b), x < y || x > y);  // false for NaN, unlike !=
      ASSERT_EQ(__hlt(a, b), x < y);
      ASSERT_EQ(__hle(a, b), x <= y);
      ASSERT_EQ(__hgt(a, b), x > y);
      ASSERT_EQ(__hge(a, b), x >= y);
    }
  }
}

TYPED_TEST(SixteenBitTest, MaximumAndMinimum) {
  using Number = typename TypeParam::Number;
  const auto bits = [](Number number) { return TypeParam::bits(number); };
  const Number zero(0.0f), minus_zero(-0.0f), one(1.0f), nan(kNan);
  EXPECT_EQ(bits(__hmax(one, zero)), bits(one));
  EXPECT_EQ(bits(__hmin(one, zero)), bits(zero));
  for (const auto& [a, b] : {std::pair{zero, minus_zero}, {minus_zero, zero}}) {
    EXPECT_EQ(bits(__hmax(a, b)), bits(zero));
    EXPECT_EQ(bits(__hmin(a, b)), bits(minus_zero));
  }
  EXPECT_EQ(bits(__hmax(nan, one)), bits(one));
  EXPECT_EQ(bits(__hmin(one, nan)), bits(one));
  EXPECT_TRUE(__hisnan(__hmax(nan, nan)));
  EXPECT_EQ(__hisinf(Number(kInfinity)), 1);
  EXPECT_EQ(__hisinf(Number(-kInfinity)), -1);
  EXPECT_EQ(__hisinf(nan), 0);
  EXPECT_EQ(bits(__hneg(one)), bits(Number(-1.0f)));
  EXPECT_EQ(bits(__habs(Number(-1.0f))), bits(one));
}

TYPED_TEST(SixteenBitTest, ConversionsThatProgramsRelyOn) {
  using Number = typename TypeParam::Number;
  Number number = 1.5f;
  number = 3;
  number += Number(0.5f);
  ++number;
  number++;
  number = -number;
  const float value = number;
  const double wider = number;
  EXPECT_EQ(value, -5.5f);
  EXPECT_EQ(wider, -5.5);
  EXPECT_EQ(static_cast<float>(number--), -5.5f);
  EXPECT_EQ(static_cast<float>(--number), -7.5f);
  EXPECT_TRUE(number ? true : false);
  EXPECT_FALSE(Number(-0.0f) ? true : false);
  EXPECT_TRUE(Number(kNan) ? true : false);
  EXPECT_EQ(TypeParam::bits(Number{}), 0);
}

TYPED_TEST(SixteenBitTest, Pairs) {
  using Pair = typename TypeParam::Pair;
  const auto expect = [](Pair pair, float x, float y) {
    const float2 both = TypeParam::floats(pair), parts = TypeParam::low_and_high(pair);
    EXPECT_EQ(both.x, x);
    EXPECT_EQ(both.y, y);
    EXPECT_EQ(parts.x, x);
    EXPECT_EQ(parts.y, y);
    EXPECT_EQ(static_cast<float>(pair.x), x);
    EXPECT_EQ(static_cast<float>(pair.y), y);
  };
  const Pair a = TypeParam::pair(1, -2), b = TypeParam::same(4);
  expect(a, 1, -2);
  expect(b, 4, 4);
  expect(a + b, 5, 2);
  expect(a - b, -3, -6);
  expect(a * b, 4, -8);
  expect(a / b, 0.25f, -0.5f);
  expect(__hadd2(a, b), 5, 2);
  expect(__hmul2(a, b), 4, -8);
  expect(__hmax2(a, TypeParam::same(0)), 1, 0);
  expect(__hneg2(a), -1, 2);
  Pair sum = a;
  sum += b;
  expect(sum, 5, 2);
}

TEST(SixteenBitConversionsTest, BetweenTheTwo) {
  EXPECT_EQ(static_cast<float>(__nv_bfloat16(__half(257.0f))), 256.0f);
  EXPECT_EQ(static_cast<float>(__half(__nv_bfloat16(70000.0f))), kInfinity);
}

}  // namespace
}  // namespace semantics
