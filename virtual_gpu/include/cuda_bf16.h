// nv_bfloat16 and nv_bfloat162, by CUDA's names. What is not declared here is not supported: using it is a
// compile error.
#pragma once

#include "cuda_fp16.h"

struct __nv_bfloat16_raw {
  unsigned short x;
};
struct __nv_bfloat16 : vgpu::SixteenBit<__nv_bfloat16, __nv_bfloat16_raw, vgpu::Bfloat16Format> {
  using SixteenBit::SixteenBit;
  __nv_bfloat16() = default;
  explicit __nv_bfloat16(__half value) : SixteenBit(static_cast<float>(value)) {}
};
struct alignas(4) __nv_bfloat162 : vgpu::SixteenBitPair<__nv_bfloat162, __nv_bfloat16> {
  using SixteenBitPair::SixteenBitPair;
  __nv_bfloat162() = default;
};
using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;
static_assert(sizeof(__nv_bfloat16) == 2 && sizeof(__nv_bfloat162) == 4, "CUDA's layout");

inline __half::__half(__nv_bfloat16 value) : SixteenBit(static_cast<float>(value)) {}

// Without a suffix or with _rn: rounded to nearest, ties to even. _rz: towards zero.
inline __nv_bfloat16 __float2bfloat16(float value) { return value; }
inline __nv_bfloat16 __float2bfloat16_rn(float value) { return value; }
inline __nv_bfloat16 __double2bfloat16(double value) { return value; }
inline __nv_bfloat16 __int2bfloat16_rn(int value) { return value; }
inline __nv_bfloat16 __uint2bfloat16_rn(unsigned int value) { return value; }
inline float __bfloat162float(__nv_bfloat16 value) { return value; }
inline int __bfloat162int_rz(__nv_bfloat16 value) { return value; }
inline unsigned int __bfloat162uint_rz(__nv_bfloat16 value) { return value; }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 value) {
  return static_cast<__nv_bfloat16_raw>(value).x;
}
inline short __bfloat16_as_short(__nv_bfloat16 value) {
  return static_cast<short>(__bfloat16_as_ushort(value));
}
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) { return __nv_bfloat16_raw{bits}; }
inline __nv_bfloat16 __short_as_bfloat16(short bits) {
  return __nv_bfloat16_raw{static_cast<unsigned short>(bits)};
}

inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 value) { return {value, value}; }
inline __nv_bfloat162 __float2bfloat162_rn(float value) { return {value, value}; }
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {x, y}; }
inline __nv_bfloat162 __float22bfloat162_rn(float2 value) { return {value.x, value.y}; }
inline float2 __bfloat1622float2(__nv_bfloat162 value) { return {value.x, value.y}; }
inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 value) { return value.x; }
inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 value) { return value.y; }
