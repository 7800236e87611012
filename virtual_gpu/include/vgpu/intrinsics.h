// Functions of CUDA's math library that C does not have, and intrinsics. The fast ones are as exact as C's,
// which their error bounds allow. Directed rounding (_rz, _rd, _ru) of float arithmetic uses double.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "types.h"

namespace vgpu {

/// `value` is an integer already: CUDA converts it to the nearest representable one, and NaN to 0.
template <class Integer, class Float>
Integer saturated(Float whole) {
  if (std::isnan(whole)) return 0;
  if (whole >= static_cast<Float>(std::numeric_limits<Integer>::max()))
    return std::numeric_limits<Integer>::max();
  if (whole <= static_cast<Float>(std::numeric_limits<Integer>::min()))
    return std::numeric_limits<Integer>::min();
  return static_cast<Integer>(whole);
}

/// `exact` as a float or double, rounded in the direction of `mode`: n(earest), z(ero), d(own), u(p).
template <class To, class From>
To rounded(From exact, char mode) {
  const To nearest = static_cast<To>(exact);
  const bool above = static_cast<From>(nearest) > exact, below = static_cast<From>(nearest) < exact;
  const bool down = mode == 'd' || (mode == 'z' && exact > 0), up = mode == 'u' || (mode == 'z' && exact < 0);
  if (above && down) return std::nextafter(nearest, -std::numeric_limits<To>::infinity());
  if (below && up) return std::nextafter(nearest, std::numeric_limits<To>::infinity());
  return nearest;
}

}  // namespace vgpu

// Functions of float and double. (Doxygen takes the uses of this macro for declarations of std::cos and
// others.)
/// @cond
#define VGPU_UNARY(name, expression)                                         \
  inline double name(double x) { return expression; }                        \
  inline float name(float x) { return static_cast<float>(name(double{x})); } \
  inline float name##f(float x) { return name(x); }
VGPU_UNARY(rsqrt, 1.0 / std::sqrt(x))
VGPU_UNARY(rcbrt, 1.0 / std::cbrt(x))
VGPU_UNARY(sinpi, std::sin(M_PI* std::fmod(x, 2.0)))
VGPU_UNARY(cospi, std::cos(M_PI* std::fmod(x, 2.0)))
VGPU_UNARY(normcdf, 0.5 * std::erfc(-x * M_SQRT1_2))
#undef VGPU_UNARY
/// @endcond
// glibc has exp10(double) and exp10f, but no overload for float.
inline float exp10(float x) { return ::exp10f(x); }
inline double rhypot(double x, double y) { return 1.0 / std::hypot(x, y); }
inline float rhypotf(float x, float y) { return 1.0f / std::hypot(x, y); }
inline double norm3d(double x, double y, double z) { return std::hypot(x, y, z); }
inline float norm3df(float x, float y, float z) { return std::hypot(x, y, z); }
inline void sincos(float x, float* sine, float* cosine) { *sine = std::sin(x), *cosine = std::cos(x); }
inline void sincospi(double x, double* sine, double* cosine) { *sine = sinpi(x), *cosine = cospi(x); }
inline void sincospif(float x, float* sine, float* cosine) { *sine = sinpi(x), *cosine = cospi(x); }
inline float fdividef(float a, float b) { return a / b; }

// Fast ones
inline float __saturatef(float x) { return x > 1 ? 1.0f : x > 0 ? x : 0.0f; }
inline float __fdividef(float a, float b) { return a / b; }
inline float __sinf(float x) { return std::sin(x); }
inline float __cosf(float x) { return std::cos(x); }
inline float __tanf(float x) { return std::tan(x); }
inline void __sincosf(float x, float* sine, float* cosine) { sincos(x, sine, cosine); }
inline float __expf(float x) { return std::exp(x); }
inline float __exp10f(float x) { return ::exp10f(x); }
inline float __logf(float x) { return std::log(x); }
inline float __log2f(float x) { return std::log2(x); }
inline float __log10f(float x) { return std::log10(x); }
inline float __powf(float x, float y) { return std::pow(x, y); }
inline float __frsqrt_rn(float x) { return rsqrtf(x); }

// Arithmetic with a direction
#define VGPU_ROUNDED(mode, letter)                                                                          \
  inline float __fadd_##mode(float a, float b) { return vgpu::rounded<float>(double{a} + b, letter); }      \
  inline float __fsub_##mode(float a, float b) { return vgpu::rounded<float>(double{a} - b, letter); }      \
  inline float __fmul_##mode(float a, float b) { return vgpu::rounded<float>(double{a} * b, letter); }      \
  inline float __fdiv_##mode(float a, float b) { return vgpu::rounded<float>(double{a} / b, letter); }      \
  inline float __fmaf_##mode(float a, float b, float c) {                                                   \
    return letter == 'n' ? std::fma(a, b, c) : vgpu::rounded<float>(double{a} * b + c, letter);             \
  }                                                                                                         \
  inline float __fsqrt_##mode(float a) { return vgpu::rounded<float>(std::sqrt(double{a}), letter); }       \
  inline float __frcp_##mode(float a) { return vgpu::rounded<float>(1 / double{a}, letter); }               \
  inline float __double2float_##mode(double a) { return vgpu::rounded<float>(a, letter); }                  \
  inline float __int2float_##mode(int a) { return vgpu::rounded<float>(double(a), letter); }                \
  inline float __uint2float_##mode(unsigned int a) { return vgpu::rounded<float>(double(a), letter); }      \
  inline float __ll2float_##mode(long long a) { return vgpu::rounded<float>((long double)(a), letter); }    \
  inline float __ull2float_##mode(unsigned long long a) {                                                   \
    return vgpu::rounded<float>((long double)(a), letter);                                                  \
  }                                                                                                         \
  inline double __ll2double_##mode(long long a) { return vgpu::rounded<double>((long double)(a), letter); } \
  inline double __ull2double_##mode(unsigned long long a) {                                                 \
    return vgpu::rounded<double>((long double)(a), letter);                                                 \
  }
VGPU_ROUNDED(rn, 'n')
VGPU_ROUNDED(rz, 'z')
VGPU_ROUNDED(rd, 'd')
VGPU_ROUNDED(ru, 'u')
#undef VGPU_ROUNDED
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __dsqrt_rn(double a) { return std::sqrt(a); }
inline double __drcp_rn(double a) { return 1 / a; }
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
inline double __int2double_rn(int a) { return a; }
inline double __uint2double_rn(unsigned int a) { return a; }

// To whole numbers. _rn: to the nearest, ties to even; _rz: towards zero; _rd: down; _ru: up.
#define VGPU_WHOLE(mode, function)                                                                          \
  inline int __float2int_##mode(float x) { return vgpu::saturated<int>(function(x)); }                      \
  inline unsigned int __float2uint_##mode(float x) { return vgpu::saturated<unsigned int>(function(x)); }   \
  inline long long __float2ll_##mode(float x) { return vgpu::saturated<long long>(function(x)); }           \
  inline unsigned long long __float2ull_##mode(float x) {                                                   \
    return vgpu::saturated<unsigned long long>(function(x));                                                \
  }                                                                                                         \
  inline int __double2int_##mode(double x) { return vgpu::saturated<int>(function(x)); }                    \
  inline unsigned int __double2uint_##mode(double x) { return vgpu::saturated<unsigned int>(function(x)); } \
  inline long long __double2ll_##mode(double x) { return vgpu::saturated<long long>(function(x)); }         \
  inline unsigned long long __double2ull_##mode(double x) {                                                 \
    return vgpu::saturated<unsigned long long>(function(x));                                                \
  }
VGPU_WHOLE(rn, std::nearbyint)
VGPU_WHOLE(rz, std::trunc)
VGPU_WHOLE(rd, std::floor)
VGPU_WHOLE(ru, std::ceil)
#undef VGPU_WHOLE

// Bits
inline int __float_as_int(float value) { return std::bit_cast<int>(value); }
inline float __int_as_float(int bits) { return std::bit_cast<float>(bits); }
inline unsigned int __float_as_uint(float value) { return std::bit_cast<unsigned int>(value); }
inline float __uint_as_float(unsigned int bits) { return std::bit_cast<float>(bits); }
inline long long __double_as_longlong(double value) { return std::bit_cast<long long>(value); }
inline double __longlong_as_double(long long bits) { return std::bit_cast<double>(bits); }
inline int __double2hiint(double x) { return static_cast<int>(__double_as_longlong(x) >> 32); }
inline int __double2loint(double x) { return static_cast<int>(__double_as_longlong(x)); }
inline double __hiloint2double(int high, int low) {
  return std::bit_cast<double>(std::uint64_t{static_cast<std::uint32_t>(high)} << 32 |
                               static_cast<std::uint32_t>(low));
}
inline int __popc(unsigned int bits) { return std::popcount(bits); }
inline int __popcll(unsigned long long bits) { return std::popcount(bits); }
inline int __clz(int bits) { return std::countl_zero(static_cast<unsigned int>(bits)); }
inline int __clzll(long long bits) { return std::countl_zero(static_cast<unsigned long long>(bits)); }
inline int __ffs(int bits) { return __builtin_ffs(bits); }
inline int __ffsll(long long bits) { return __builtin_ffsll(bits); }
inline unsigned long long __brevll(unsigned long long bits) {
  unsigned long long reversed = 0;
  for (int i = 0; i < 64; ++i) reversed |= (bits >> i & 1) << (63 - i);
  return reversed;
}
inline unsigned int __brev(unsigned int bits) { return static_cast<unsigned int>(__brevll(bits) >> 32); }
inline unsigned int __byte_perm(unsigned int x, unsigned int y, unsigned int selector) {
  const std::uint64_t bytes = std::uint64_t{y} << 32 | x;
  unsigned int result = 0;
  for (int i = 0; i < 4; ++i)
    result |= static_cast<unsigned int>(bytes >> (8 * (selector >> (4 * i) & 7)) & 0xff) << (8 * i);
  return result;
}
inline unsigned int __funnelshift_l(unsigned int low, unsigned int high, unsigned int shift) {
  return static_cast<unsigned int>((std::uint64_t{high} << 32 | low) << (shift & 31) >> 32);
}
inline unsigned int __funnelshift_r(unsigned int low, unsigned int high, unsigned int shift) {
  return static_cast<unsigned int>((std::uint64_t{high} << 32 | low) >> (shift & 31));
}

// Whole numbers
inline int __mulhi(int a, int b) { return static_cast<int>(static_cast<long long>(a) * b >> 32); }
inline unsigned int __umulhi(unsigned int a, unsigned int b) {
  return static_cast<unsigned int>(static_cast<unsigned long long>(a) * b >> 32);
}
inline long long __mul64hi(long long a, long long b) { return static_cast<long long>((__int128)a * b >> 64); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>((unsigned __int128)a * b >> 64);
}
inline int __mul24(int a, int b) {  // of the lower 24 bits, with their sign; the lower 32 of the product
  return static_cast<int>(static_cast<unsigned int>((a << 8) >> 8) *
                          static_cast<unsigned int>((b << 8) >> 8));
}
inline unsigned int __umul24(unsigned int a, unsigned int b) { return (a & 0xffffff) * (b & 0xffffff); }
inline int __hadd(int a, int b) { return static_cast<int>((static_cast<long long>(a) + b) >> 1); }
inline int __rhadd(int a, int b) { return static_cast<int>((static_cast<long long>(a) + b + 1) >> 1); }
inline int __dp4a(int a, int b, int sum) {
  for (int i = 0; i < 32; i += 8) sum += static_cast<signed char>(a >> i) * static_cast<signed char>(b >> i);
  return sum;
}

// Loads with a hint
#define VGPU_LOAD(name)      \
  template <class T>         \
  T name(const T* pointer) { \
    return *pointer;         \
  }
VGPU_LOAD(__ldg)
VGPU_LOAD(__ldcg)
VGPU_LOAD(__ldcs)
#undef VGPU_LOAD
