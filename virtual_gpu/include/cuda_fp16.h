// half and half2, by CUDA's names. What is not declared here is not supported: using it is a compile error.
#pragma once

#include "vgpu/sixteen_bit.h"

struct __nv_bfloat16;

struct __half_raw {
  unsigned short x;
};
struct __half : vgpu::SixteenBit<__half, __half_raw, vgpu::HalfFormat> {
  using SixteenBit::SixteenBit;
  __half() = default;
  explicit __half(__nv_bfloat16 value);  // in cuda_bf16.h
};
struct alignas(4) __half2 : vgpu::SixteenBitPair<__half2, __half> {
  using SixteenBitPair::SixteenBitPair;
  __half2() = default;
};
using half = __half;
using half2 = __half2;
static_assert(sizeof(__half) == 2 && sizeof(__half2) == 4, "CUDA's layout");

// Without a suffix or with _rn: rounded to nearest, ties to even. _rz: towards zero.
inline __half __float2half(float value) { return value; }
inline __half __float2half_rn(float value) { return value; }
inline __half __double2half(double value) { return value; }
inline __half __int2half_rn(int value) { return value; }
inline __half __uint2half_rn(unsigned int value) { return value; }
inline float __half2float(__half value) { return value; }
inline int __half2int_rz(__half value) { return value; }
inline unsigned int __half2uint_rz(__half value) { return value; }
inline unsigned short __half_as_ushort(__half value) { return static_cast<__half_raw>(value).x; }
inline short __half_as_short(__half value) { return static_cast<short>(__half_as_ushort(value)); }
inline __half __ushort_as_half(unsigned short bits) { return __half_raw{bits}; }
inline __half __short_as_half(short bits) { return __half_raw{static_cast<unsigned short>(bits)}; }

inline __half2 make_half2(__half x, __half y) { return {x, y}; }
inline __half2 __halves2half2(__half x, __half y) { return {x, y}; }
inline __half2 __half2half2(__half value) { return {value, value}; }
inline __half2 __float2half2_rn(float value) { return {value, value}; }
inline __half2 __floats2half2_rn(float x, float y) { return {x, y}; }
inline __half2 __float22half2_rn(float2 value) { return {value.x, value.y}; }
inline float2 __half22float2(__half2 value) { return {value.x, value.y}; }
inline __half __low2half(__half2 value) { return value.x; }
inline __half __high2half(__half2 value) { return value.y; }
