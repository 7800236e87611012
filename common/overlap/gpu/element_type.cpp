#include "overlap/gpu/element_type.hpp"

#include <array>

namespace overlap {

const char* name_of(ElementType type) {
  constexpr std::array kNames = {"int32", "f16", "bf16", "f32"};
  return kNames.at(static_cast<std::size_t>(type));
}

std::size_t size_of(ElementType type) {
  return type == ElementType::kF16 || type == ElementType::kBf16 ? 2 : 4;
}

}  // namespace overlap
