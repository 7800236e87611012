// The 16-bit types by their common names, and a reference for them. The reference does not use a float's
// bits, but a table of all values.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <limits>

#include "gpu_test.hpp"

namespace semantics {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline const float kNan = std::numeric_limits<float>::quiet_NaN();

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

/// The values of an IEEE 754 format with these widths, as doubles.
template <class Type>
struct Reference {
  static constexpr int kBias = (1 << (Type::kExponentBits - 1)) - 1;
  static constexpr int kInfinityBits = ((1 << Type::kExponentBits) - 1) << Type::kMantissaBits;
  static constexpr int kPatterns = 65536;

  /// The value of a pattern without sign. The pattern of infinity gives the next number that would follow.
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
  /// The pattern of the nearest number; of two, the one whose last bit is 0.
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
    const double down = size - table[above - 1], up = table[above] - size;  // exact, because they are close
    const int last_bit = (above - 1) & 1;
    return sign | (up < down || (up == down && last_bit == 1) ? above : above - 1);
  }
};

/// Values around each rounding boundary: each number, the midpoint to the next one, and their neighbours.
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

using Types = testing::Types<Half, Bfloat16>;

}  // namespace semantics
