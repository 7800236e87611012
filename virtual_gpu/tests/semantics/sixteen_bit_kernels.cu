// half and bfloat16 in kernels: conversions, fused operations, shuffles, atomics. CUDA Math API, "Half
// Precision Intrinsics" and "Bfloat16 Precision Intrinsics".
#include "sixteen_bit.hpp"

namespace semantics {
namespace {

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

/// a * b + c, fused; and a + b and a * b, in expressions that the compiler cannot fuse.
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

// a * b is a midpoint between two numbers. In float, adding c would not change it.
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
  // (1 + e)^2 = 1 + 2e + e^2: a rounded product loses the last term; fused with -1 - 2e it remains.
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
  if (blockIdx.x == 0 && threadIdx.x == 0) *warp = mine;
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
