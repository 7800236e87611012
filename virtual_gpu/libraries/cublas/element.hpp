// Element types of matrices, and their conversion from and to float.
#pragma once

#include <cstddef>
#include <cstring>

namespace vgpu {

enum class Element { kF16, kBf16, kF32, kF64 };

/// Bytes of one element.
constexpr std::size_t size_of(Element type) {
  return type == Element::kF64 ? 8 : type == Element::kF32 ? 4 : 2;
}
/// "f16", "bf16", "f32" or "f64".
const char* name_of(Element type);

/// Converts `count` elements, of at most 32 bits. Exact.
void to_float(Element type, const void* from, float* to, std::size_t count);
/// Converts `count` floats; rounds to nearest, ties to even.
void from_float(Element type, const float* from, void* to, std::size_t count);
/// Doubles are only copied.
///@{
inline void to_real(Element type, const void* from, float* to, std::size_t count) {
  to_float(type, from, to, count);
}
inline void to_real(Element, const void* from, double* to, std::size_t count) {
  std::memcpy(to, from, count * sizeof(double));
}
inline void from_real(Element type, const float* from, void* to, std::size_t count) {
  from_float(type, from, to, count);
}
inline void from_real(Element, const double* from, void* to, std::size_t count) {
  std::memcpy(to, from, count * sizeof(double));
}
///@}

}  // namespace vgpu
