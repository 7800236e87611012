// cub::DeviceRunLengthEncode: runs of equal items, as one item and its count each.
#pragma once

#include "../../vgpu/device_algorithm.h"

namespace cub {

struct DeviceRunLengthEncode {
  template <class In, class Unique, class Length, class Count>
  [[gnu::noinline]] static cudaError_t Encode(void* d_temp_storage, std::size_t& temp_storage_bytes, In d_in,
                                              Unique* d_unique_out, Length* d_counts_out,
                                              Count* d_num_runs_out, int num_items,
                                              cudaStream_t stream = nullptr) {
    using Value = typename vgpu::Input<In>::Value;
    const vgpu::AlgorithmCall call{
        "cub::DeviceRunLengthEncode::Encode", num_items,
        static_cast<double>(num_items) * (sizeof(Value) + sizeof(Unique) + sizeof(Length)), 2,
        vgpu::tile_states(num_items)};
    const vgpu::Output unique{"d_unique_out", d_unique_out};
    const vgpu::Output lengths{"d_counts_out", d_counts_out};
    const vgpu::Output run_count{"d_num_runs_out", d_num_runs_out};
    return vgpu::call_algorithm(
        call, d_temp_storage, temp_storage_bytes, stream, std::tuple(vgpu::Input<In>("d_in", d_in)),
        std::tuple(unique, lengths, run_count), [=](vgpu::Writer& writer, const auto& values) {
          std::vector<Value> items;
          std::vector<std::int64_t> counts;
          for (std::int64_t i = 0; i < values.size(); ++i) {
            if (i == 0 || !(values[i] == values[i - 1])) {
              items.push_back(values[i]);
              counts.push_back(0);
            }
            ++counts.back();
          }
          writer.write(unique, items);
          writer.write(lengths, counts);
          writer.write_one(run_count, counts.size());
        });
  }
};

}  // namespace cub
