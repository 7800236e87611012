#include "overlap/gpu/element_type.hpp"

#include <stdexcept>

namespace overlap {

const char* name_of(ElementType type) {
  switch (type) {
    case ElementType::kInt32:
      return "int32";
    case ElementType::kF16:
      return "f16";
    case ElementType::kBf16:
      return "bf16";
    case ElementType::kF32:
      return "f32";
  }
  throw std::invalid_argument("name_of: no such type");
}

std::size_t size_of(ElementType type) {
  return type == ElementType::kF16 || type == ElementType::kBf16 ? 2 : 4;
}

}  // namespace overlap
