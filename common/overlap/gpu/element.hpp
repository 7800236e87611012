// The element types as C++ types: conversions that say how they round, and dispatch on --type.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

#include "overlap/gpu/element_type.hpp"

namespace overlap {

template <typename T>
concept SixteenBit = std::same_as<T, __half> || std::same_as<T, __nv_bfloat16>;

template <typename T>
concept Floating = SixteenBit<T> || std::same_as<T, float>;

/// Every type that --type can choose.
template <typename T>
concept Element = Floating<T> || std::same_as<T, int>;

/// The value of --type that stands for T; visit_type() goes the other way.
template <Element T>
constexpr ElementType type_of() {
  if constexpr (std::same_as<T, int>) return ElementType::kInt32;
  if constexpr (std::same_as<T, __half>) return ElementType::kF16;
  if constexpr (std::same_as<T, __nv_bfloat16>) return ElementType::kBf16;
  if constexpr (std::same_as<T, float>) return ElementType::kF32;
}

/// The largest n such that T holds all integers from -n to n.
template <Element T>
constexpr std::int64_t largest_integer() {
  if constexpr (std::same_as<T, int>) return std::numeric_limits<int>::max();
  if constexpr (std::same_as<T, __half>) return 2048;        // 11 significant bits
  if constexpr (std::same_as<T, __nv_bfloat16>) return 256;  // 8
  if constexpr (std::same_as<T, float>) return 16777216;     // 24
}

/// The value of an element, exactly: a double holds all values of all types.
template <Element T>
double value_of(T element) {
  if constexpr (std::same_as<T, __half>) {
    return static_cast<double>(__half2float(element));
  } else if constexpr (std::same_as<T, __nv_bfloat16>) {
    return static_cast<double>(__bfloat162float(element));
  } else {
    return static_cast<double>(element);
  }
}

/// `value` rounded to T, to nearest, ties to even.
template <Floating T>
T from_float(float value) {
  if constexpr (std::same_as<T, __half>) {
    return __float2half(value);
  } else if constexpr (std::same_as<T, __nv_bfloat16>) {
    return __float2bfloat16(value);
  } else {
    return value;
  }
}

/// `value` rounded to T once, to nearest, ties to even.
template <Floating T>
T from_double(double value) {
  float rounded = static_cast<float>(value);
  if constexpr (SixteenBit<T>) {
    // Two roundings to nearest, to 24 bits and then to 11 or 8, are not always the nearest: the first one may
    // produce a tie. So the first one rounds to odd: of the two floats around the value, the one whose last
    // bit is 1 (Boldo and Melquiond, Emulation of FMA and correctly rounded sums, 2008).
    const bool odd = std::bit_cast<std::uint32_t>(rounded) % 2 == 1;
    if (static_cast<double>(rounded) != value && !std::isnan(value) && !odd) {
      const float infinity = std::numeric_limits<float>::infinity();
      rounded = std::nextafterf(rounded, value > static_cast<double>(rounded) ? infinity : -infinity);
    }
  }
  return from_float<T>(rounded);
}

/// The bits of a 16-bit element.
template <SixteenBit T>
std::uint16_t bits_of(T element) {
  return std::bit_cast<std::uint16_t>(element);
}

/// The 16-bit element with these bits.
template <SixteenBit T>
T from_bits(std::uint16_t bits) {
  return std::bit_cast<T>(bits);
}

/// True for every NaN, whatever its sign and payload; never for an int.
template <Element T>
bool is_nan(T element) {
  if constexpr (SixteenBit<T>) {  // by bits, which is fast: an exponent of all ones and any other bit
    const int exponent = std::same_as<T, __half> ? 0x7C00 : 0x7F80;
    return (bits_of(element) & 0x7FFF) > exponent;
  } else {
    return element != element;
  }
}

/// Stands for the type T where only a value can be passed.
template <typename T>
struct TypeTag {
  using type = T;  ///< the type that it stands for
};

namespace detail {

// Broken copies of chapters are made by the hundred for the tests, and in the race build types make no
// difference: those programs are compiled for the first type only.
#ifdef OVERLAP_FIRST_TYPE_ONLY
inline constexpr bool kAllTypes = false;
#else
inline constexpr bool kAllTypes = true;
#endif
inline constexpr const char* kNotCompiled =
    kAllTypes ? " is not one of the types that the program is compiled for"
              : ": this build of the program, as all with the race detector, has its first type alone";

template <Element First, Element... Rest, typename Function>
decltype(auto) visit_one_of(ElementType type, Function&& function) {
  if (type == type_of<First>()) return function(TypeTag<First>{});
  if constexpr (kAllTypes && sizeof...(Rest) > 0) {
    return visit_one_of<Rest...>(type, function);
  } else {
    throw std::invalid_argument(std::string("--type ") + name_of(type) + kNotCompiled);
  }
}

}  // namespace detail

/// Calls `function` with the TypeTag of `type` and returns what it returns:
/// \code
///   visit_type<__half, __nv_bfloat16>(options.type, [&](auto tag) {
///     using T = typename decltype(tag)::type; ...
///   });
/// \endcode
/// The function is compiled for the types in <...>; without them for all four. It returns the same type for
/// each. Throws std::invalid_argument if `type` is none of them.
template <Element... Types, typename Function>
decltype(auto) visit_type(ElementType type, Function&& function) {
  if constexpr (sizeof...(Types) == 0) {
    return detail::visit_one_of<int, __half, __nv_bfloat16, float>(type, function);
  } else {
    return detail::visit_one_of<Types...>(type, function);
  }
}

}  // namespace overlap
