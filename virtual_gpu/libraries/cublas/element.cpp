#include "libraries/cublas/element.hpp"

#include <cstring>

#include "vgpu/sixteen_bit.h"

namespace vgpu {
namespace {

template <class Format>
void widen(const std::uint16_t* __restrict from, float* __restrict to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = Format::to_float(from[i]);
}
template <class Format>
void narrow(const float* __restrict from, std::uint16_t* __restrict to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = Format::from_float(from[i]);
}

}  // namespace

const char* name_of(Element type) {
  return type == Element::kF16    ? "f16"
         : type == Element::kBf16 ? "bf16"
         : type == Element::kF32  ? "f32"
                                  : "f64";
}

void to_float(Element type, const void* from, float* to, std::size_t count) {
  switch (type) {
    case Element::kF16:
      return widen<HalfFormat>(static_cast<const std::uint16_t*>(from), to, count);
    case Element::kBf16:
      return widen<Bfloat16Format>(static_cast<const std::uint16_t*>(from), to, count);
    case Element::kF32:
    case Element::kF64:  // never
      std::memcpy(to, from, count * sizeof(float));
  }
}

void from_float(Element type, const float* from, void* to, std::size_t count) {
  switch (type) {
    case Element::kF16:
      return narrow<HalfFormat>(from, static_cast<std::uint16_t*>(to), count);
    case Element::kBf16:
      return narrow<Bfloat16Format>(from, static_cast<std::uint16_t*>(to), count);
    case Element::kF32:
    case Element::kF64:  // never
      std::memcpy(to, from, count * sizeof(float));
  }
}

}  // namespace vgpu
