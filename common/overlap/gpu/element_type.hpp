// The types of matrix elements, as values: what --type chooses. element.hpp has them as C++ types.
#pragma once

#include <cstddef>

namespace overlap {

/// The type of a matrix's elements.
enum class ElementType { kInt32, kF16, kBf16, kF32 };

/// "int32", "f16", "bf16" or "f32": the names that --type takes.
const char* name_of(ElementType type);

/// Bytes of one element.
std::size_t size_of(ElementType type);

}  // namespace overlap
