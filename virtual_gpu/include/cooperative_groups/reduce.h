// Reductions of a tile.
#pragma once

#include "../cooperative_groups.h"

namespace cooperative_groups {

#define VGPU_OPERATION(name, expression)                \
  template <class T>                                    \
  struct name {                                         \
    T operator()(T a, T b) const { return expression; } \
  };
VGPU_OPERATION(plus, a + b)
VGPU_OPERATION(less, b < a ? b : a)
VGPU_OPERATION(greater, a < b ? b : a)
VGPU_OPERATION(bit_and, a& b)
VGPU_OPERATION(bit_or, a | b)
VGPU_OPERATION(bit_xor, a ^ b)
#undef VGPU_OPERATION

template <class Group, class T, class Operation>
T reduce(const Group& group, T value, Operation operation) {
  T result = group.shfl(value, 0);
  for (unsigned int rank = 1; rank < group.num_threads(); ++rank)
    result = operation(result, group.shfl(value, static_cast<int>(rank)));
  return result;
}

}  // namespace cooperative_groups
