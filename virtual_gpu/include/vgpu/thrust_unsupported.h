// Thrust, of which only the counting iterator is here.
#pragma once

#include "unsupported_libraries.h"

namespace thrust {

#define VGPU_NO_THRUST                                                                                       \
  "Thrust is not supported on virtual GPUs: use cub::Device... or a kernel of your own, and std::vector on " \
  "the host"
VGPU_NO_CLASSES(VGPU_NO_THRUST, device_vector, host_vector, universal_vector, device_ptr, zip_iterator,
                transform_iterator, plus, maximum, minimum, greater, complex)
struct Policy {};
inline constexpr Policy device, host, seq;
VGPU_NO_FUNCTIONS(void, VGPU_NO_THRUST, sort, stable_sort, sort_by_key, reduce, reduce_by_key, transform,
                  transform_reduce, inclusive_scan, exclusive_scan, copy, copy_if, fill, sequence, generate,
                  for_each, count, count_if, unique, remove_if, min_element, max_element, minmax_element,
                  inner_product, gather, scatter, raw_pointer_cast, device_pointer_cast, make_zip_iterator,
                  make_transform_iterator, make_tuple)

}  // namespace thrust
