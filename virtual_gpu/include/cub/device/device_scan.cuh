// cub::DeviceScan: prefix sums.
#pragma once

#include "../../vgpu/device_algorithm.h"

namespace cub {

struct DeviceScan {
  /// out[i] = in[0] + ... + in[i - 1], out[0] = 0. In place if d_out is d_in.
  template <class In, class Out>
  [[gnu::noinline]] static cudaError_t ExclusiveSum(void* d_temp_storage, std::size_t& temp_storage_bytes,
                                                    In d_in, Out* d_out, std::int64_t num_items,
                                                    cudaStream_t stream = nullptr) {
    return sum<false>("cub::DeviceScan::ExclusiveSum", d_temp_storage, temp_storage_bytes, d_in, d_out,
                      num_items, stream);
  }

  /// out[i] = in[0] + ... + in[i]. In place if d_out is d_in.
  template <class In, class Out>
  [[gnu::noinline]] static cudaError_t InclusiveSum(void* d_temp_storage, std::size_t& temp_storage_bytes,
                                                    In d_in, Out* d_out, std::int64_t num_items,
                                                    cudaStream_t stream = nullptr) {
    return sum<true>("cub::DeviceScan::InclusiveSum", d_temp_storage, temp_storage_bytes, d_in, d_out,
                     num_items, stream);
  }

 private:
  template <bool kInclusive, class In, class Out>
  static cudaError_t sum(const char* name, void* temporary, std::size_t& temporary_bytes, In in, Out* out,
                         std::int64_t items, cudaStream_t stream) {
    using Value = typename vgpu::Input<In>::Value;
    using Sum = std::decay_t<decltype(Value{} + Value{})>;  // CUB's: flags of type char are added as int
    const vgpu::AlgorithmCall call{name, items, static_cast<double>(items) * (sizeof(Value) + sizeof(Out)), 2,
                                   vgpu::tile_states(items)};
    const vgpu::Output sums{"d_out", out};
    return vgpu::call_algorithm(call, temporary, temporary_bytes, stream,
                                std::tuple(vgpu::Input<In>("d_in", in)), std::tuple(sums),
                                [=](vgpu::Writer& writer, const auto& values) {
                                  Sum total{};
                                  const auto next = [&](std::int64_t i) {
                                    const std::int64_t last = kInclusive ? i : i - 1;
                                    if (last >= 0) total = total + values[last];
                                    return total;
                                  };
                                  writer.write(sums, values.size(), next, true);
                                });
  }
};

}  // namespace cub
