// Arithmetic that CUDA adds to C++ in device code.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "types.h"

#define VGPU_MIN_MAX(type)                                  \
  inline type min(type a, type b) { return b < a ? b : a; } \
  inline type max(type a, type b) { return a < b ? b : a; }
VGPU_MIN_MAX(int)
VGPU_MIN_MAX(unsigned int)
VGPU_MIN_MAX(long)
VGPU_MIN_MAX(unsigned long)
VGPU_MIN_MAX(long long)
VGPU_MIN_MAX(unsigned long long)
#undef VGPU_MIN_MAX
// Like fminf and fmaxf: a NaN loses.
inline float min(float a, float b) { return std::fmin(a, b); }
inline float max(float a, float b) { return std::fmax(a, b); }
inline double min(double a, double b) { return std::fmin(a, b); }
inline double max(double a, double b) { return std::fmax(a, b); }

inline int __popc(unsigned int bits) { return std::popcount(bits); }
inline int __popcll(unsigned long long bits) { return std::popcount(bits); }
inline int __clz(int bits) { return std::countl_zero(static_cast<unsigned int>(bits)); }
inline int __clzll(long long bits) { return std::countl_zero(static_cast<unsigned long long>(bits)); }
inline int __ffs(int bits) { return __builtin_ffs(bits); }
inline int __ffsll(long long bits) { return __builtin_ffsll(bits); }

inline float rsqrtf(float value) { return 1.0f / std::sqrt(value); }
inline double rsqrt(double value) { return 1.0 / std::sqrt(value); }
// The fast ones are exact here, which their error bounds allow.
inline float __fdividef(float a, float b) { return a / b; }
inline float __expf(float value) { return std::exp(value); }
inline float __logf(float value) { return std::log(value); }

inline int __float_as_int(float value) { return std::bit_cast<int>(value); }
inline float __int_as_float(int bits) { return std::bit_cast<float>(bits); }
inline unsigned int __float_as_uint(float value) { return std::bit_cast<unsigned int>(value); }
inline float __uint_as_float(unsigned int bits) { return std::bit_cast<float>(bits); }

namespace vgpu {
/// Of a number that is whole already: CUDA takes the nearest integer that there is, and 0 for NaN.
template <class Integer>
Integer saturated(float whole) {
  if (std::isnan(whole)) return 0;
  if (whole >= static_cast<float>(std::numeric_limits<Integer>::max()))
    return std::numeric_limits<Integer>::max();
  if (whole <= static_cast<float>(std::numeric_limits<Integer>::min()))
    return std::numeric_limits<Integer>::min();
  return static_cast<Integer>(whole);
}
}  // namespace vgpu
// _rn: to the nearest, ties to even; _rz: towards zero; _rd: down; _ru: up.
inline int __float2int_rn(float value) { return vgpu::saturated<int>(std::nearbyint(value)); }
inline int __float2int_rz(float value) { return vgpu::saturated<int>(std::trunc(value)); }
inline int __float2int_rd(float value) { return vgpu::saturated<int>(std::floor(value)); }
inline int __float2int_ru(float value) { return vgpu::saturated<int>(std::ceil(value)); }
inline unsigned int __float2uint_rn(float value) {
  return vgpu::saturated<unsigned int>(std::nearbyint(value));
}
inline float __int2float_rn(int value) { return static_cast<float>(value); }

template <class T>
T __ldg(const T* pointer) {
  return *pointer;
}
