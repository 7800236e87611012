// cub::DeviceSelect: copies some of the items, in their order, and counts them on the device.
#pragma once

#include "../../vgpu/device_algorithm.h"

namespace cub {

struct DeviceSelect {
  /// Items whose flag is not zero.
  template <class In, class Flags, class Out, class Count>
  [[gnu::noinline]] static cudaError_t Flagged(void* d_temp_storage, std::size_t& temp_storage_bytes, In d_in,
                                               Flags d_flags, Out* d_out, Count* d_num_selected_out,
                                               std::int64_t num_items, cudaStream_t stream = nullptr) {
    return select(
        "cub::DeviceSelect::Flagged", sizeof(typename vgpu::Input<Flags>::Value), d_temp_storage,
        temp_storage_bytes, d_in, d_out, d_num_selected_out, num_items, stream,
        [](const auto&, const auto& flags, std::int64_t i) { return static_cast<bool>(flags[i]); },
        vgpu::Input<Flags>("d_flags", d_flags));
  }

  /// Items of which select_op(item) is true.
  template <class In, class Out, class Count, class SelectOp>
  [[gnu::noinline]] static cudaError_t If(void* d_temp_storage, std::size_t& temp_storage_bytes, In d_in,
                                          Out* d_out, Count* d_num_selected_out, std::int64_t num_items,
                                          SelectOp select_op, cudaStream_t stream = nullptr) {
    return select("cub::DeviceSelect::If", 0, d_temp_storage, temp_storage_bytes, d_in, d_out,
                  d_num_selected_out, num_items, stream, [select_op](const auto& items, std::int64_t i) {
                    SelectOp op = select_op;
                    return static_cast<bool>(op(items[i]));
                  });
  }

  /// The first item of each run of equal ones.
  template <class In, class Out, class Count>
  [[gnu::noinline]] static cudaError_t Unique(void* d_temp_storage, std::size_t& temp_storage_bytes, In d_in,
                                              Out* d_out, Count* d_num_selected_out, std::int64_t num_items,
                                              cudaStream_t stream = nullptr) {
    return select("cub::DeviceSelect::Unique", 0, d_temp_storage, temp_storage_bytes, d_in, d_out,
                  d_num_selected_out, num_items, stream,
                  [](const auto& items, std::int64_t i) { return i == 0 || !(items[i] == items[i - 1]); });
  }

 private:
  /// `wanted(items, more inputs..., i)`: whether item i is selected.
  template <class In, class Out, class Count, class Wanted, class... More>
  static cudaError_t select(const char* name, std::size_t flag_bytes, void* temporary,
                            std::size_t& temporary_bytes, In in, Out* out, Count* count, std::int64_t items,
                            cudaStream_t stream, Wanted wanted, vgpu::Input<More>... more) {
    using Value = typename vgpu::Input<In>::Value;
    const vgpu::AlgorithmCall call{
        name, items,
        static_cast<double>(items) * static_cast<double>(sizeof(Value) + flag_bytes + sizeof(Out)), 2,
        vgpu::tile_states(items)};
    const vgpu::Output selected{"d_out", out};
    const vgpu::Output selected_count{"d_num_selected_out", count};
    return vgpu::call_algorithm(
        call, temporary, temporary_bytes, stream, std::tuple(vgpu::Input<In>("d_in", in), std::move(more)...),
        std::tuple(selected, selected_count),
        [=](vgpu::Writer& writer, const auto& values, const auto&... flags) {
          std::vector<std::int64_t> chosen;
          for (std::int64_t i = 0; i < values.size(); ++i) {
            if (wanted(values, flags..., i)) chosen.push_back(i);
          }
          const auto found = static_cast<std::int64_t>(chosen.size());
          writer.write(selected, found,
                       [&](std::int64_t i) { return values[chosen[static_cast<std::size_t>(i)]]; });
          writer.write_one(selected_count, found);
        });
  }
};

}  // namespace cub
