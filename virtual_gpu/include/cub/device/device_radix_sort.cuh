// cub::DeviceRadixSort: stable sorts by the bits [begin_bit, end_bit) of integers; those of a negative number
// count as less than those of a positive one if its sign is among them.
#pragma once

#include <algorithm>
#include <numeric>

#include "../../vgpu/device_algorithm.h"
#include "../util_type.cuh"

namespace cub {

struct DeviceRadixSort {
  /// The inputs are not changed and must not overlap with the outputs.
  template <class Key>
  [[gnu::noinline]] static cudaError_t SortKeys(void* d_temp_storage, std::size_t& temp_storage_bytes,
                                                const Key* d_keys_in, Key* d_keys_out, std::int64_t num_items,
                                                int begin_bit = 0, int end_bit = sizeof(Key) * 8,
                                                cudaStream_t stream = nullptr) {
    return sort({"cub::DeviceRadixSort::SortKeys", true, begin_bit, end_bit}, d_temp_storage,
                temp_storage_bytes, num_items, stream, Buffers<Key>{d_keys_in, d_keys_out});
  }

  /// Values are moved with their keys.
  template <class Key, class Value>
  [[gnu::noinline]] static cudaError_t SortPairs(void* d_temp_storage, std::size_t& temp_storage_bytes,
                                                 const Key* d_keys_in, Key* d_keys_out,
                                                 const Value* d_values_in, Value* d_values_out,
                                                 std::int64_t num_items, int begin_bit = 0,
                                                 int end_bit = sizeof(Key) * 8,
                                                 cudaStream_t stream = nullptr) {
    return sort({"cub::DeviceRadixSort::SortPairs", true, begin_bit, end_bit}, d_temp_storage,
                temp_storage_bytes, num_items, stream, Buffers<Key>{d_keys_in, d_keys_out},
                Buffers<Value>{d_values_in, d_values_out});
  }

  /// Sorts into the alternate buffer, which becomes the current one; the other gets undefined values. Real
  /// sorts may choose either buffer: look at Current().
  template <class Key>
  [[gnu::noinline]] static cudaError_t SortKeys(void* d_temp_storage, std::size_t& temp_storage_bytes,
                                                DoubleBuffer<Key>& d_keys, std::int64_t num_items,
                                                int begin_bit = 0, int end_bit = sizeof(Key) * 8,
                                                cudaStream_t stream = nullptr) {
    return swapped(d_temp_storage,
                   sort({"cub::DeviceRadixSort::SortKeys", false, begin_bit, end_bit}, d_temp_storage,
                        temp_storage_bytes, num_items, stream, buffers(d_keys)),
                   d_keys);
  }

  template <class Key, class Value>
  [[gnu::noinline]] static cudaError_t SortPairs(void* d_temp_storage, std::size_t& temp_storage_bytes,
                                                 DoubleBuffer<Key>& d_keys, DoubleBuffer<Value>& d_values,
                                                 std::int64_t num_items, int begin_bit = 0,
                                                 int end_bit = sizeof(Key) * 8,
                                                 cudaStream_t stream = nullptr) {
    return swapped(d_temp_storage,
                   sort({"cub::DeviceRadixSort::SortPairs", false, begin_bit, end_bit}, d_temp_storage,
                        temp_storage_bytes, num_items, stream, buffers(d_keys), buffers(d_values)),
                   d_keys, d_values);
  }

 private:
  struct Order {
    const char* name;
    bool keeps_inputs;
    int begin_bit, end_bit;
  };
  template <class T>
  struct Buffers {
    const T* in;
    T* out;
    bool overlap(std::int64_t items) const { return in < out + items && out < in + items; }
  };
  template <class T>
  static Buffers<T> buffers(DoubleBuffer<T>& both) {
    return {both.Current(), both.Alternate()};
  }
  template <class... T>
  static cudaError_t swapped(const void* temporary, cudaError_t error, DoubleBuffer<T>&... both) {
    if (error == cudaSuccess && temporary != nullptr) ((both.selector ^= 1), ...);
    return error;
  }

  template <class Key, class... Value>
  static cudaError_t sort(const Order& order, void* temporary, std::size_t& temporary_bytes,
                          std::int64_t items, cudaStream_t stream, Buffers<Key> keys,
                          Buffers<Value>... values) {
    static_assert(std::is_integral_v<Key> && !std::is_same_v<Key, bool>, "virtual GPUs sort integers only");
    vgpu::AlgorithmCall call = described<Key>(order, items, (sizeof(Value) + ... + 0));
    const bool overlap = keys.overlap(items) || (values.overlap(items) || ...);
    if (temporary != nullptr && overlap) call.wrong = "the inputs overlap the outputs";
    return vgpu::call_algorithm(
        call, temporary, temporary_bytes, stream,
        std::tuple(vgpu::Input("d_keys_in", keys.in), vgpu::Input("d_values_in", values.in)...),
        std::tuple(vgpu::Output{"d_keys_out", keys.out}, vgpu::Output{"d_values_out", values.out}...),
        [=](vgpu::Writer& writer, const auto& keys_read, const auto&... values_read) {
          const std::vector<std::int64_t> from = sorted<Key>(keys_read, order.begin_bit, order.end_bit);
          const auto write = [&](const char* name, auto both, const auto& read) {
            writer.write(vgpu::Output{name, both.out}, read.size(),
                         [&](std::int64_t i) { return read[from[static_cast<std::size_t>(i)]]; });
            using T = std::remove_pointer_t<decltype(both.out)>;
            if (!order.keeps_inputs)
              writer.overwrite(vgpu::Output{name, const_cast<T*>(both.in)}, read.size());
          };
          write("d_keys_out", keys, keys_read);
          (write("d_values_out", values, values_read), ...);
        });
  }

  template <class Key>
  static vgpu::AlgorithmCall described(const Order& order, std::int64_t items, std::size_t value_bytes) {
    const int bits = order.end_bit - order.begin_bit;
    const bool possible =
        0 <= order.begin_bit && bits >= 0 && order.end_bit <= static_cast<int>(sizeof(Key) * 8);
    // Reads all keys once; then a pass for each 8 bits reads and writes all pairs.
    const int passes = (std::max(0, bits) + 7) / 8;
    const double bytes =
        static_cast<double>(items) * static_cast<double>(sizeof(Key)) +
        static_cast<double>(items) * 2.0 * passes * static_cast<double>(sizeof(Key) + value_bytes);
    std::size_t temporary = vgpu::tile_states(items);
    if (order.keeps_inputs && items > 0) {  // a second buffer for the passes
      temporary += vgpu::rounded_to_256(static_cast<std::size_t>(items) * sizeof(Key)) +
                   vgpu::rounded_to_256(static_cast<std::size_t>(items) * value_bytes);
    }
    return {order.name, items,
            bytes,      passes + 2,
            temporary,  possible ? nullptr : "begin_bit and end_bit are no range of bits of the keys"};
  }

  /// The index of each sorted item in the input.
  template <class Key, class Items>
  static std::vector<std::int64_t> sorted(const Items& items, int begin_bit, int end_bit) {
    using Unsigned = std::make_unsigned_t<Key>;
    constexpr int kWidth = sizeof(Key) * 8;
    constexpr auto kSign = static_cast<Unsigned>(std::is_signed_v<Key> ? Unsigned{1} << (kWidth - 1) : 0);
    const int width = end_bit - begin_bit;
    const auto digits = [&](std::int64_t i) {
      if (width == 0) return Unsigned{0};
      const auto key = static_cast<Unsigned>(static_cast<Unsigned>(items[i]) ^ kSign);
      const auto without_higher = static_cast<Unsigned>(key << (kWidth - end_bit));
      return static_cast<Unsigned>(without_higher >> (kWidth - width));
    };
    std::vector<std::int64_t> order(static_cast<std::size_t>(items.size()));
    std::iota(order.begin(), order.end(), std::int64_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::int64_t a, std::int64_t b) { return digits(a) < digits(b); });
    return order;
  }
};

}  // namespace cub
