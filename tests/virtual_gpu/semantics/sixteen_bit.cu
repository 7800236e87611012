// half and bfloat16: conversions, rounding, arithmetic. CUDA Math API, "Half Precision Intrinsics" and
// "Bfloat16 Precision Intrinsics". The reference knows no bits of a float: it looks in a table of all values.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>

#include "gpu_test.hpp"

namespace semantics {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kNan = std::numeric_limits<float>::quiet_NaN();

struct Half {
  using Number = __half;
  using Pair = __half2;
  static constexpr int kExponentBits = 5, kMantissaBits = 10;
  __host__ __device__ static Number from_bits(unsigned short bits) { return __ushort_as_half(bits); }
  __host__ __device__ static unsigned short bits(Number number) { return __half_as_ushort(number); }
  __host__ __device__ static Number from_float(float value) { return __float2half(value); }
  static Number from_float_rn(float value) { return __float2half_rn(value); }
  static Number from_double(double value) { return __double2half(value); }
  __host__ __device__ static float to_float(Number number) { return __half2float(number); }
  __host__ __device__ static Pair pair(float x, float y) { return __floats2half2_rn(x, y); }
  static Pair same(float value) { return __float2half2_rn(value); }
  __host__ __device__ static float2 floats(Pair pair) { return __half22float2(pair); }
  static float2 low_and_high(Pair pair) { return {__low2float(pair), __high2float(pair)}; }
};
struct Bfloat16 {
  using Number = __nv_bfloat16;
  using Pair = __nv_bfloat162;
  static constexpr int kExponentBits = 8, kMantissaBits = 7;
  __host__ __device__ static Number from_bits(unsigned short bits) { return __ushort_as_bfloat16(bits); }
  __host__ __device__ static unsigned short bits(Number number) { return __bfloat16_as_ushort(number); }
  __host__ __device__ static Number from_float(float value) { return __float2bfloat16(value); }
  static Number from_float_rn(float value) { return __float2bfloat16_rn(value); }
  static Number from_double(double value) { return __double2bfloat16(value); }
  __host__ __device__ static float to_float(Number number) { return __bfloat162float(number); }
  __host__ __device__ static Pair pair(float x, float y) { return __floats2bfloat162_rn(x, y); }
  static Pair same(float value) { return __float2bfloat162_rn(value); }
  __host__ __device__ static float2 floats(Pair pair) { return __bfloat1622float2(pair); }
  static float2 low_and_high(Pair pair) { return {__low2float(pair), __high2float(pair)}; }
};

/// What IEEE 754 says about a format with so many bits, in doubles.
template <class Type>
struct Reference {
  static constexpr int kBias = (1 << (Type::kExponentBits - 1)) - 1;
  static constexpr int kInfinityBits = ((1 << Type::kExponentBits) - 1) << Type::kMantissaBits;
  static constexpr int kPatterns = 65536;

  /// Of a pattern without sign. The one of infinity stands for the number that would come next.
  static double magnitude(int bits) {
    const int exponent = bits >> Type::kMantissaBits, mantissa = bits & ((1 << Type::kMantissaBits) - 1);
    const int leading = exponent == 0 ? 0 : 1 << Type::kMantissaBits;
    return std::ldexp(leading + mantissa, std::max(exponent, 1) - kBias - Type::kMantissaBits);
  }
  static bool is_nan(int bits) { return (bits & 0x7fff) > kInfinityBits; }
  static double value(int bits) {
    const double size = (bits & 0x7fff) == kInfinityBits ? kInfinity : magnitude(bits & 0x7fff);
    return is_nan(bits) ? kNan : (bits & 0x8000) != 0 ? -size : size;
  }
  /// The nearest number's pattern; of two the one whose last bit is 0.
  static int nearest(double wanted) {
    static const std::vector<double> table = [] {
      std::vector<double> values;
      for (int bits = 0; bits <= kInfinityBits; ++bits) values.push_back(magnitude(bits));
      return values;
    }();
    const int sign = std::signbit(wanted) ? 0x8000 : 0;
    const double size = std::fabs(wanted);
    if (size >= table.back()) return sign | kInfinityBits;
    const int above = static_cast<int>(std::upper_bound(table.begin(), table.end(), size) - table.begin());
    const double down = size - table[above - 1], up = table[above] - size;  // exact: the two are near
    const int last_bit = (above - 1) & 1;
    return sign | (up < down || (up == down && last_bit == 1) ? above : above - 1);
  }
};

/// Around every place where the rounding changes: the number, the middle to the next one, and their
/// neighbours.
template <class Type, class Float>
std::vector<Float> boundaries() {
  std::vector<Float> values;
  const auto add = [&](Float value) {
    const Float infinity = std::numeric_limits<Float>::infinity();
    for (const Float near : {value, std::nextafter(value, infinity), std::nextafter(value, -infinity)}) {
      values.push_back(near);
      values.push_back(-near);
    }
  };
  for (int bits = 0; bits < Reference<Type>::kInfinityBits; ++bits) {
    const double low = Reference<Type>::magnitude(bits), high = Reference<Type>::magnitude(bits + 1);
    add(static_cast<Float>(low));
    add(static_cast<Float>(low + (high - low) / 2));
  }
  for (const float value : {65504.f, 65519.99f, 65520.f, 65536.f, 1e-30f, 3.3895e38f, kInfinity,
                            std::numeric_limits<float>::max(), std::numeric_limits<float>::denorm_min()}) {
    values.push_back(value);
    values.push_back(-value);
  }
  return values;
}

/// Some of all patterns: zeros, subnormal, normal and special ones.
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

/// On the host, so that they need no GPU.
template <class T>
class SixteenBitTest : public testing::Test {};
using Types = testing::Types<Half, Bfloat16>;
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

// Rounded to float first, those next to a middle would fall on it.
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
  // A double holds no more than 53 bits of these; without the last 1 they would be in the middle.
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
  // A double has more than twice as many bits: rounding its result again is rounding the exact one.
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

// ---- in kernels -----------------------------------------------------------------------------------------

template <class T>
class SixteenBitKernelTest : public GpuTest {};
TYPED_TEST_SUITE(SixteenBitKernelTest, Types);

template <class Type>
__global__ void narrow(const float* from, unsigned short* to, int count) {
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < count;
       i += static_cast<int>(gridDim.x * blockDim.x)) {
    to[i] = Type::bits(Type::from_float(from[i]));
  }
}
template <class Type>
__global__ void widen(float* to) {
  const unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = Type::to_float(Type::from_bits(static_cast<unsigned short>(i)));
}

TYPED_TEST(SixteenBitKernelTest, EveryPatternHasItsValue) {
  using Expected = Reference<TypeParam>;
  const DeviceArray<float> out(Expected::kPatterns, 0.0f);
  widen<TypeParam><<<Expected::kPatterns / 256, 256>>>(out.data());
  const std::vector<float> values = out.values();
  for (int bits = 0; bits < Expected::kPatterns; ++bits) {
    if (Expected::is_nan(bits)) {
      ASSERT_TRUE(std::isnan(values[bits])) << bits;
    } else {
      ASSERT_EQ(values[bits], Expected::value(bits)) << bits;
      ASSERT_EQ(std::signbit(values[bits]), (bits & 0x8000) != 0) << bits;
    }
  }
}

TYPED_TEST(SixteenBitKernelTest, FloatsAreRoundedToTheNearest) {
  std::vector<float> values = boundaries<TypeParam, float>();
  const DeviceArray<float> from(values);
  const DeviceArray<unsigned short> to(values.size());
  narrow<TypeParam><<<32, 256>>>(from.data(), to.data(), static_cast<int>(values.size()));
  const std::vector<unsigned short> patterns = to.values();
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(patterns[i], Reference<TypeParam>::nearest(values[i])) << std::hexfloat << values[i];
}

/// a * b + c and, without a multiplication that could become part of another instruction, a + b and a * b.
template <class Type>
__global__ void compute(const float* in, float* out) {
  using Number = typename Type::Number;
  const Number a = in[0], b = in[1], c = in[2];
  out[0] = __hfma(a, b, c);
  out[1] = a + b;
  out[2] = a * b;
  out[3] = b / a;
  const typename Type::Pair pair =
      __hfma2(Type::pair(in[0], in[1]), Type::pair(in[1], in[0]), Type::pair(in[2], in[2]));
  out[4] = Type::floats(pair).x;
  out[5] = Type::floats(pair).y;
}

template <class Type>
void expect_results(const std::vector<float>& in, const std::vector<float>& expected) {
  const DeviceArray<float> from(in), to(6, 0.0f);
  compute<Type><<<1, 1>>>(from.data(), to.data());
  EXPECT_EQ(to.values(), expected);
}

using HalfKernelTest = GpuTest;
using Bfloat16KernelTest = GpuTest;

// a * b is the middle between two numbers. In float, the sum with c would be the same.
TEST_F(HalfKernelTest, FusedMultiplyAddRoundsOnce) {
  const float b = 683.0f / 2048, up = 1 + 0x1p-10f;  // 3 b = 1 + 2^-11
  const float sum = 3 + 0.333984375f, quotient = static_cast<float>(__half(b / 3));
  expect_results<Half>({3, b, 0x1p-24f}, {up, sum, 1, quotient, up, up});
  expect_results<Half>({3, b, -0x1p-24f}, {1, sum, 1, quotient, 1, 1});
}
TEST_F(Bfloat16KernelTest, FusedMultiplyAddRoundsOnce) {
  const float a = 7, b = 37.0f / 256, down = 1 + 0x1p-7f, up = 1 + 0x1p-6f;  // a b = 1 + 3 * 2^-8
  const float sum = 7.15625f, quotient = static_cast<float>(__nv_bfloat16(b / a));
  for (const float c : {0x1p-40f, 0x1p-120f}) {
    expect_results<Bfloat16>({a, b, -c}, {down, sum, up, quotient, down, down});
    expect_results<Bfloat16>({a, b, c}, {up, sum, up, quotient, up, up});
  }
}

TYPED_TEST(SixteenBitKernelTest, ArithmeticRoundsEachResult) {
  const float one_more = 1 + std::ldexp(1.0f, -TypeParam::kMantissaBits);
  // (1 + e)^2 = 1 + 2e + e^2: the last term is lost in a product, not with -1 - 2e added.
  const float product = 1 + std::ldexp(1.0f, 1 - TypeParam::kMantissaBits);
  const float rest = std::ldexp(1.0f, -2 * TypeParam::kMantissaBits);
  expect_results<TypeParam>({one_more, one_more, -product}, {rest, 2 * one_more, product, 1, rest, rest});
}

/// Sums over a warp, and over a grid.
template <class Type>
__global__ void sums(typename Type::Number* number, typename Type::Pair* pair, float* warp) {
  using Number = typename Type::Number;
  Number mine = static_cast<float>(threadIdx.x % 4);
  for (int lanes = 16; lanes > 0; lanes /= 2) mine += __shfl_xor_sync(0xffffffffu, mine, lanes);
  if (threadIdx.x == 0) *warp = mine;
  atomicAdd(number, Number(1.0f));
  atomicAdd(pair, Type::pair(1, -2));
}

TYPED_TEST(SixteenBitKernelTest, ShufflesAndAtomics) {
  const DeviceArray<typename TypeParam::Number> number(1, TypeParam::from_float(0));
  const DeviceArray<typename TypeParam::Pair> pair(1, TypeParam::pair(0, 0));
  const DeviceArray<float> warp(1, 0.0f);
  sums<TypeParam><<<4, 32>>>(number.data(), pair.data(), warp.data());
  EXPECT_EQ(warp.value(), 48);
  EXPECT_EQ(static_cast<float>(number.value()), 128);
  EXPECT_EQ(TypeParam::floats(pair.value()).x, 128);
  EXPECT_EQ(TypeParam::floats(pair.value()).y, -256);
}

}  // namespace
}  // namespace semantics
