// The element types as lists for typed tests.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "overlap/gpu/element.hpp"

namespace overlap {

using ElementTypes = testing::Types<int, __half, __nv_bfloat16, float>;
using FloatingTypes = testing::Types<__half, __nv_bfloat16, float>;

/// Names typed tests as --type does.
struct TypeNames {
  template <typename T>
  static std::string GetName(int) {
    return name_of(type_of<T>());
  }
};

template <Element T>
T element(double value) {
  if constexpr (Floating<T>) {
    return from_double<T>(value);
  } else {
    return static_cast<T>(value);
  }
}

}  // namespace overlap
