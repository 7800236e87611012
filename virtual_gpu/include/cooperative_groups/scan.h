// Prefix sums of a tile.
#pragma once

#include "reduce.h"

namespace cooperative_groups {

template <class Group, class T, class Operation = plus<T>>
T inclusive_scan(const Group& group, T value, Operation operation = {}) {
  T result = value;
  for (unsigned int rank = 0; rank + 1 < group.num_threads(); ++rank) {
    const T other = group.shfl(value, static_cast<int>(rank));
    if (rank == 0 && group.thread_rank() > 0) result = other;
    if (rank > 0 && rank < group.thread_rank()) result = operation(result, other);
  }
  return group.thread_rank() == 0 ? value : operation(result, value);
}

template <class Group, class T, class Operation = plus<T>>
T exclusive_scan(const Group& group, T value, Operation operation = {}) {
  const T inclusive = group.shfl_up(inclusive_scan(group, value, operation), 1);
  return group.thread_rank() == 0 ? T{} : inclusive;
}

}  // namespace cooperative_groups
