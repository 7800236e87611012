// Arithmetic of device code beyond C++. CUDA Math API, "Single Precision Intrinsics", "Type Casting
// Intrinsics" and "Half Arithmetic Functions".
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <limits>

#include "gpu_test.hpp"

namespace semantics {
namespace {

using ArithmeticTest = GpuTest;

__global__ void round_to_integers(const float* in, int* out, int count) {
  for (int i = 0; i < count; ++i) {
    out[4 * i] = __float2int_rn(in[i]);
    out[4 * i + 1] = __float2int_rz(in[i]);
    out[4 * i + 2] = __float2int_rd(in[i]);
    out[4 * i + 3] = __float2int_ru(in[i]);
  }
}

TEST_F(ArithmeticTest, FloatsAreRoundedAsTheNameSaysAndStayInRange) {
  constexpr int kMax = std::numeric_limits<int>::max(), kMin = std::numeric_limits<int>::min();
  const std::vector<float> in = {0.5f, 1.5f, -2.5f, -0.25f, 3e9f, -3e9f, NAN, INFINITY, 8388609.0f};
  const DeviceArray<float> from(in);
  const DeviceArray<int> to(4 * in.size());
  round_to_integers<<<1, 1>>>(from.data(), to.data(), static_cast<int>(in.size()));
  const std::vector<int> expected = {0,       0,       0,       1,     //
                                     2,       1,       1,       2,     //
                                     -2,      -2,      -3,      -2,    //
                                     0,       0,       -1,      0,     //
                                     kMax,    kMax,    kMax,    kMax,  //
                                     kMin,    kMin,    kMin,    kMin,  //
                                     0,       0,       0,       0,     //
                                     kMax,    kMax,    kMax,    kMax,  //
                                     8388609, 8388609, 8388609, 8388609};
  const std::vector<int> values = to.values();
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(values[i], expected[i]) << in[i / 4]
                                      << (i % 4 == 0   ? " _rn"
                                          : i % 4 == 1 ? " _rz"
                                          : i % 4 == 2 ? " _rd"
                                                       : " _ru");
  }
}

__global__ void reinterpret(float* out, unsigned int* bits) {
  out[0] = __int_as_float(0x40490fdb);
  out[1] = __uint_as_float(0xff800000u);
  bits[0] = static_cast<unsigned int>(__float_as_int(-1.0f));
  bits[1] = __float_as_uint(2.0f);
}

TEST_F(ArithmeticTest, BitsOfFloatsAreTheirBits) {
  const DeviceArray<float> floats(2);
  const DeviceArray<unsigned int> bits(2);
  reinterpret<<<1, 1>>>(floats.data(), bits.data());
  EXPECT_EQ(floats.values(), (std::vector<float>{3.14159274f, -INFINITY}));
  EXPECT_EQ(bits.values(), (std::vector<unsigned int>{0xbf800000u, 0x40000000u}));
}

__global__ void approximate(float* out) {
  out[0] = rsqrtf(4.0f);
  out[1] = __fdividef(1.0f, 3.0f);
  out[2] = __half2float(hexp(__float2half(1.0f)));
  out[3] = __half2float(hsqrt(__float2half(2.25f)));
  out[4] = __half2float(hrsqrt(__float2half(0.25f)));
  out[5] = __bfloat162float(hlog(__float2bfloat16(1.0f)));
  out[6] = __expf(0.0f);
  out[7] = __logf(1.0f);
}

TEST_F(ArithmeticTest, FastFunctionsKeepWithinTheirBounds) {
  const DeviceArray<float> out(8);
  approximate<<<1, 1>>>(out.data());
  const std::vector<float> values = out.values();
  const std::vector<float> expected = {0.5f, 1.0f / 3, std::exp(1.0f), 1.5f, 2, 0, 1, 0};
  const std::vector<float> bounds = {1e-6f, 1e-6f, 2e-3f, 1e-3f, 2e-3f, 1e-3f, 1e-6f, 1e-6f};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(values[i], expected[i], bounds[i]) << i;
}

}  // namespace
}  // namespace semantics
