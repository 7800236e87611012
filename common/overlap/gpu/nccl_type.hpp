// The element types as NCCL names them.
#pragma once

#include <nccl.h>

#include "overlap/gpu/element.hpp"

namespace overlap {

/// NCCL's name of T.
template <Element T>
constexpr ncclDataType_t nccl_type() {
  if constexpr (std::same_as<T, int>) return ncclInt32;
  if constexpr (std::same_as<T, __half>) return ncclFloat16;
  if constexpr (std::same_as<T, __nv_bfloat16>) return ncclBfloat16;
  if constexpr (std::same_as<T, float>) return ncclFloat32;
}

}  // namespace overlap
