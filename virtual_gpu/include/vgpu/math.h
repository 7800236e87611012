// abs, min, max and the like, as CUDA has them.
#pragma once

// Not <cmath> alone: these put all overloads of abs, isnan and the like where a kernel finds them.
#include <math.h>
#include <stdlib.h>

#include <algorithm>
#include <cmath>

#include "intrinsics.h"

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
// Of two types, as CUDA has them: C++'s usual conversions, and a call of another pair is ambiguous.
#define VGPU_MIN_MAX(a_type, b_type, type)                                                        \
  inline type min(a_type a, b_type b) { return min(static_cast<type>(a), static_cast<type>(b)); } \
  inline type min(b_type a, a_type b) { return min(static_cast<type>(a), static_cast<type>(b)); } \
  inline type max(a_type a, b_type b) { return max(static_cast<type>(a), static_cast<type>(b)); } \
  inline type max(b_type a, a_type b) { return max(static_cast<type>(a), static_cast<type>(b)); }
VGPU_MIN_MAX(int, unsigned int, unsigned int)
VGPU_MIN_MAX(long, unsigned long, unsigned long)
VGPU_MIN_MAX(long long, unsigned long long, unsigned long long)
VGPU_MIN_MAX(float, double, double)
#undef VGPU_MIN_MAX
