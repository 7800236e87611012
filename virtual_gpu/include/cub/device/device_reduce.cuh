// cub::DeviceReduce: reduces all items to one value. Items are added in ascending order; real GPUs use
// another order.
#pragma once

#include <limits>

#include "../../cuda_bf16.h"
#include "../../cuda_fp16.h"
#include "../../vgpu/device_algorithm.h"

namespace vgpu {

/// The largest finite number, as CUB's initial value of a minimum.
template <class T>
inline const T kLargest = std::numeric_limits<T>::max();
template <>
inline const __half kLargest<__half> = __half(65504.0f);
template <>
inline const __nv_bfloat16 kLargest<__nv_bfloat16> = __nv_bfloat16(3.38953139e38f);
/// The initial value of a maximum.
template <class T>
inline const T kLowest = std::numeric_limits<T>::lowest();
template <>
inline const __half kLowest<__half> = __half(-65504.0f);
template <>
inline const __nv_bfloat16 kLowest<__nv_bfloat16> = __nv_bfloat16(-3.38953139e38f);

}  // namespace vgpu

namespace cub {

struct DeviceReduce {
  /// *d_out = the sum of all items; 0 if there are none.
  template <class In, class Out>
  [[gnu::noinline]] static cudaError_t Sum(void* d_temp_storage, std::size_t& temp_storage_bytes, In d_in,
                                           Out* d_out, std::int64_t num_items,
                                           cudaStream_t stream = nullptr) {
    using Total = std::decay_t<decltype(Out{} + typename vgpu::Input<In>::Value{})>;
    return reduce("cub::DeviceReduce::Sum", d_temp_storage, temp_storage_bytes, d_in, d_out, num_items,
                  stream, Total{}, [](const auto& total, const auto& item) { return total + item; });
  }

  /// *d_out = the largest item; the lowest finite number if there are none, or none above it.
  template <class In, class Out>
  [[gnu::noinline]] static cudaError_t Max(void* d_temp_storage, std::size_t& temp_storage_bytes, In d_in,
                                           Out* d_out, std::int64_t num_items,
                                           cudaStream_t stream = nullptr) {
    using Value = typename vgpu::Input<In>::Value;
    return reduce("cub::DeviceReduce::Max", d_temp_storage, temp_storage_bytes, d_in, d_out, num_items,
                  stream, vgpu::kLowest<Value>,
                  [](const Value& most, const Value& item) { return most < item ? item : most; });
  }

  /// *d_out = the smallest item; the largest finite number if there are none, or none below it.
  template <class In, class Out>
  [[gnu::noinline]] static cudaError_t Min(void* d_temp_storage, std::size_t& temp_storage_bytes, In d_in,
                                           Out* d_out, std::int64_t num_items,
                                           cudaStream_t stream = nullptr) {
    using Value = typename vgpu::Input<In>::Value;
    return reduce("cub::DeviceReduce::Min", d_temp_storage, temp_storage_bytes, d_in, d_out, num_items,
                  stream, vgpu::kLargest<Value>,
                  [](const Value& least, const Value& item) { return item < least ? item : least; });
  }

 private:
  template <class In, class Out, class Total, class Combine>
  static cudaError_t reduce(const char* name, void* temporary, std::size_t& temporary_bytes, In in, Out* out,
                            std::int64_t items, cudaStream_t stream, Total initial, Combine combine) {
    using Value = typename vgpu::Input<In>::Value;
    const vgpu::AlgorithmCall call{name, items, static_cast<double>(items) * sizeof(Value), 2,
                                   vgpu::tile_states(items)};
    const vgpu::Output result{"d_out", out};
    return vgpu::call_algorithm(call, temporary, temporary_bytes, stream,
                                std::tuple(vgpu::Input<In>("d_in", in)), std::tuple(result),
                                [=](vgpu::Writer& writer, const auto& values) {
                                  Total total = initial;
                                  for (std::int64_t i = 0; i < values.size(); ++i)
                                    total = combine(total, values[i]);
                                  writer.write_one(result, total);
                                });
  }
};

}  // namespace cub
