// Element types of matrices, and their conversion from and to float.
#pragma once

#include <cstddef>

namespace vgpu {

enum class Element { kF16, kBf16, kF32 };

/// Bytes of one element.
constexpr std::size_t size_of(Element type) { return type == Element::kF32 ? 4 : 2; }
/// "f16", "bf16" or "f32".
const char* name_of(Element type);

/// Converts `count` elements. Exact.
void to_float(Element type, const void* from, float* to, std::size_t count);
/// Converts `count` floats; rounds to nearest, ties to even.
void from_float(Element type, const float* from, void* to, std::size_t count);

}  // namespace vgpu
