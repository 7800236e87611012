// The common part of CUDA's 16-bit types: cuda_fp16.h and cuda_bf16.h define their names. Arithmetic is that
// of CUDA: every operation rounds its exact result once, to nearest, ties to even.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "atomics.h"
#include "types.h"

namespace vgpu {

/// IEEE 754 binary16: 5 bits of exponent, 10 of mantissa. No branches, so that loops over it are vectorised.
struct HalfFormat {
  static float to_float(std::uint16_t bits) {
    const std::uint32_t magnitude = bits & 0x7fffu;
    // Shifted into place, the exponent is short by 127 - 15; multiplying also normalises subnormal numbers.
    const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
    const std::uint32_t special = magnitude >= 0x7c00u ? 0x7f800000u : 0u;  // infinity and NaN
    const std::uint32_t sign = (bits & 0x8000u) << 16;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(scaled) | special | sign);
  }
  static std::uint16_t from_float(float value) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t magnitude = bits & 0x7fffffffu, sign = bits >> 16 & 0x8000u;
    // A carry out of the mantissa goes into the exponent, from the largest number to infinity too.
    const std::uint32_t normal = (magnitude - (112u << 23) + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
    // Next to 0.5 the distance of two floats is that of two subnormal halves: the addition rounds.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    const std::uint32_t subnormal =
        std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(0.5f);
    std::uint32_t rounded = magnitude < (113u << 23) ? subnormal : normal;
    rounded = magnitude >= (143u << 23) ? 0x7c00u : rounded;  // from 65536 on, and infinity
    rounded = magnitude > 0x7f800000u ? 0x7fffu : rounded | sign;
    return static_cast<std::uint16_t>(rounded);
  }
};

/// bfloat16: the upper half of a float.
struct Bfloat16Format {
  static float to_float(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
  static std::uint16_t from_float(float value) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    return static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : rounded);
  }
};

// Rounding twice can differ from rounding once. It does not if the first rounding is "to odd": of the two
// neighbours of an inexact result, the one whose last bit is set.

inline float round_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  if (std::isnan(value) || nearest == value) return nearest;
  std::uint32_t bits = std::bit_cast<std::uint32_t>(nearest);
  if (std::fabs(static_cast<double>(nearest)) > std::fabs(value)) --bits;  // towards zero
  return std::bit_cast<float>(bits | 1u);
}

template <class Integer>
float integer_round_to_odd(Integer value) {
  constexpr Integer kExact = Integer{1} << (sizeof(Integer) < 8 ? 0 : 53);  // a double holds these
  bool fits = sizeof(Integer) < 8 || value <= kExact;
  if constexpr (std::numeric_limits<Integer>::is_signed)
    fits = fits && (sizeof(Integer) < 8 || value >= -kExact);
  if (fits) return round_to_odd(static_cast<double>(value));
  const Integer kept = value >> 12 | static_cast<Integer>((value & 0xfff) != 0);
  return round_to_odd(static_cast<double>(kept) * 4096);
}

/// a * b + c, for numbers of 16 bits, rounded to odd.
inline float multiply_add_round_to_odd(float a, float b, float c) {
  const double product = static_cast<double>(a) * b;  // exact
  const double sum = product + c;
  const double part = sum - product;
  const double error = (product - (sum - part)) + (c - part);  // what the sum lacks, exactly (Knuth)
  if (!std::isfinite(sum) || error == 0) return round_to_odd(sum);
  std::uint64_t bits = std::bit_cast<std::uint64_t>(sum);
  if ((error < 0) != (sum < 0)) --bits;  // the sum is too large: towards zero
  return round_to_odd(std::bit_cast<double>(bits | 1u));
}

/// Towards zero; what is out of range becomes the nearest integer there is. NaN gives 0, or in 64 bits the
/// highest bit, as CUDA's conversions do.
template <class Integer>
Integer to_integer(float value) {
  using Limits = std::numeric_limits<Integer>;
  if (std::isnan(value))
    return sizeof(Integer) < 8 ? Integer{0} : static_cast<Integer>(std::uint64_t{1} << 63);
  if (value >= std::ldexp(1.0f, Limits::digits)) return Limits::max();
  if (value <= static_cast<float>(Limits::min())) return Limits::min();
  return static_cast<Integer>(value);
}

/// A 16-bit number: the base of `Number`. Conversions, operators and functions are found through it, as
/// CUDA declares them.
template <class Number, class Raw, class Format>
class SixteenBit {
 public:
  SixteenBit() = default;  // leaves it uninitialised
  SixteenBit(const Raw& raw) : bits_(raw.x) {}
  SixteenBit(float value) : bits_(Format::from_float(value)) {}
  SixteenBit(double value) : bits_(Format::from_float(round_to_odd(value))) {}
  SixteenBit(short value) : SixteenBit(integer_round_to_odd(value)) {}
  SixteenBit(unsigned short value) : SixteenBit(integer_round_to_odd(value)) {}
  SixteenBit(int value) : SixteenBit(integer_round_to_odd(value)) {}
  SixteenBit(unsigned int value) : SixteenBit(integer_round_to_odd(value)) {}
  SixteenBit(long value) : SixteenBit(integer_round_to_odd(value)) {}
  SixteenBit(unsigned long value) : SixteenBit(integer_round_to_odd(value)) {}
  SixteenBit(long long value) : SixteenBit(integer_round_to_odd(value)) {}
  SixteenBit(unsigned long long value) : SixteenBit(integer_round_to_odd(value)) {}

  operator Raw() const { return {bits_}; }
  operator float() const { return Format::to_float(bits_); }
  operator bool() const { return (bits_ & 0x7fff) != 0; }
  operator char() const { return to_integer<char>(*this); }
  operator signed char() const { return to_integer<signed char>(*this); }
  operator unsigned char() const { return to_integer<unsigned char>(*this); }
  operator short() const { return to_integer<short>(*this); }
  operator unsigned short() const { return to_integer<unsigned short>(*this); }
  operator int() const { return to_integer<int>(*this); }
  operator unsigned int() const { return to_integer<unsigned int>(*this); }
  operator long() const { return to_integer<long>(*this); }
  operator unsigned long() const { return to_integer<unsigned long>(*this); }
  operator long long() const { return to_integer<long long>(*this); }
  operator unsigned long long() const { return to_integer<unsigned long long>(*this); }

  // A float holds sum and product of two such numbers well enough that rounding it again changes nothing.
  friend Number __hadd(Number a, Number b) { return value(a) + value(b); }
  friend Number __hsub(Number a, Number b) { return value(a) - value(b); }
  friend Number __hmul(Number a, Number b) { return value(a) * value(b); }
  friend Number __hdiv(Number a, Number b) { return value(a) / value(b); }
  friend Number __hfma(Number a, Number b, Number c) {
    return multiply_add_round_to_odd(value(a), value(b), value(c));
  }
  friend Number __hneg(Number a) { return -value(a); }
  friend Number __habs(Number a) { return std::fabs(value(a)); }
  /// Of a number and NaN the number, of both zeros the positive one.
  friend Number __hmax(Number a, Number b) {
    if (value(a) == value(b)) return std::signbit(value(a)) ? b : a;
    return std::fmax(value(a), value(b));
  }
  friend Number __hmin(Number a, Number b) {
    if (value(a) == value(b)) return std::signbit(value(a)) ? a : b;
    return std::fmin(value(a), value(b));
  }
  friend Number hexp(Number a) { return std::exp(value(a)); }
  friend Number hlog(Number a) { return std::log(value(a)); }
  friend Number hsqrt(Number a) { return std::sqrt(value(a)); }
  friend Number hrsqrt(Number a) { return 1.0f / std::sqrt(value(a)); }
  friend bool __hisnan(Number a) { return std::isnan(value(a)); }
  /// 1 for infinity, -1 for minus infinity, else 0.
  friend int __hisinf(Number a) { return std::isinf(value(a)) ? (value(a) > 0 ? 1 : -1) : 0; }
  friend bool __heq(Number a, Number b) { return value(a) == value(b); }
  friend bool __hne(Number a, Number b) { return value(a) < value(b) || value(a) > value(b); }  // not of NaN
  friend bool __hlt(Number a, Number b) { return value(a) < value(b); }
  friend bool __hle(Number a, Number b) { return value(a) <= value(b); }
  friend bool __hgt(Number a, Number b) { return value(a) > value(b); }
  friend bool __hge(Number a, Number b) { return value(a) >= value(b); }
  friend Number atomicAdd(Number* address, Number addend) {
    return atomic_update<kDeviceScope>(address, {"atomicAdd", __ATOMIC_RELAXED, {}},
                                       [addend](Number old) { return old + addend; });
  }

  friend Number operator+(const Number& a, const Number& b) { return __hadd(a, b); }
  friend Number operator-(const Number& a, const Number& b) { return __hsub(a, b); }
  friend Number operator*(const Number& a, const Number& b) { return __hmul(a, b); }
  friend Number operator/(const Number& a, const Number& b) { return __hdiv(a, b); }
  friend Number& operator+=(Number& a, const Number& b) { return a = a + b; }
  friend Number& operator-=(Number& a, const Number& b) { return a = a - b; }
  friend Number& operator*=(Number& a, const Number& b) { return a = a * b; }
  friend Number& operator/=(Number& a, const Number& b) { return a = a / b; }
  friend Number operator+(const Number& a) { return a; }
  friend Number operator-(const Number& a) { return __hneg(a); }
  friend Number& operator++(Number& a) { return a += Number(1.0f); }
  friend Number& operator--(Number& a) { return a -= Number(1.0f); }
  friend Number operator++(Number& a, int) {
    const Number before = a;
    ++a;
    return before;
  }
  friend Number operator--(Number& a, int) {
    const Number before = a;
    --a;
    return before;
  }
  friend bool operator==(const Number& a, const Number& b) { return value(a) == value(b); }
  friend bool operator!=(const Number& a, const Number& b) { return value(a) != value(b); }
  friend bool operator<(const Number& a, const Number& b) { return value(a) < value(b); }
  friend bool operator<=(const Number& a, const Number& b) { return value(a) <= value(b); }
  friend bool operator>(const Number& a, const Number& b) { return value(a) > value(b); }
  friend bool operator>=(const Number& a, const Number& b) { return value(a) >= value(b); }

 private:
  static float value(const Number& number) {
    return Format::to_float(static_cast<const SixteenBit&>(number).bits_);
  }

  std::uint16_t bits_;
};

/// Two of them, element by element: the base of `Pair`.
template <class Pair, class Number>
struct SixteenBitPair {
  Number x, y;

  SixteenBitPair() = default;
  SixteenBitPair(const Number& x_, const Number& y_) : x(x_), y(y_) {}

  friend Pair __hadd2(Pair a, Pair b) { return {a.x + b.x, a.y + b.y}; }
  friend Pair __hsub2(Pair a, Pair b) { return {a.x - b.x, a.y - b.y}; }
  friend Pair __hmul2(Pair a, Pair b) { return {a.x * b.x, a.y * b.y}; }
  friend Pair __h2div(Pair a, Pair b) { return {a.x / b.x, a.y / b.y}; }
  friend Pair __hfma2(Pair a, Pair b, Pair c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; }
  friend Pair __hmax2(Pair a, Pair b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; }
  friend Pair __hmin2(Pair a, Pair b) { return {__hmin(a.x, b.x), __hmin(a.y, b.y)}; }
  friend Pair __hneg2(Pair a) { return {-a.x, -a.y}; }
  friend Pair __habs2(Pair a) { return {__habs(a.x), __habs(a.y)}; }
  friend float __low2float(Pair a) { return a.x; }
  friend float __high2float(Pair a) { return a.y; }
  /// Both at once here; CUDA promises it for each of the two only.
  friend Pair atomicAdd(Pair* address, Pair addend) {
    return atomic_update<kDeviceScope>(address, {"atomicAdd", __ATOMIC_RELAXED, {}},
                                       [addend](Pair old) { return old + addend; });
  }

  friend Pair operator+(const Pair& a, const Pair& b) { return __hadd2(a, b); }
  friend Pair operator-(const Pair& a, const Pair& b) { return __hsub2(a, b); }
  friend Pair operator*(const Pair& a, const Pair& b) { return __hmul2(a, b); }
  friend Pair operator/(const Pair& a, const Pair& b) { return __h2div(a, b); }
  friend Pair operator-(const Pair& a) { return __hneg2(a); }
  friend Pair& operator+=(Pair& a, const Pair& b) { return a = a + b; }
  friend Pair& operator-=(Pair& a, const Pair& b) { return a = a - b; }
  friend Pair& operator*=(Pair& a, const Pair& b) { return a = a * b; }
  friend Pair& operator/=(Pair& a, const Pair& b) { return a = a / b; }
};

}  // namespace vgpu
