// Data of one rank between host and GPU. All functions are called on the rank's host thread.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <span>
#include <vector>

#include "overlap/gpu/check.hpp"
#include "overlap/gpu/element.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/stream.hpp"

namespace overlap {

/// `elements` values of a GPU's memory. Waits for the rank's stream.
template <typename T>
std::vector<T> download(Rank& rank, const T* from, std::int64_t elements) {
  std::vector<T> host(static_cast<std::size_t>(elements));
  if (elements == 0) return host;
  CUDA_CHECK(
      cudaMemcpyAsync(host.data(), from, host.size() * sizeof(T), cudaMemcpyDeviceToHost, rank.stream()));
  rank.synchronize(rank.stream());
  return host;
}

/// Copies all of `from` to the beginning of `to`. Waits for the rank's stream.
template <typename T>
void upload(Rank& rank, const std::vector<T>& from, const DeviceBuffer<T>& to) {
  if (from.empty()) return;
  CUDA_CHECK(cudaMemcpyAsync(to.data(), from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice,
                             rank.stream()));
  rank.synchronize(rank.stream());
}

/// Changes the sign of every element.
template <Floating T>
void negate(std::span<T> values) {
  for (T& value : values) {
    if constexpr (SixteenBit<T>) {  // by bits, which is fast
      value = from_bits<T>(static_cast<std::uint16_t>(bits_of(value) ^ 0x8000));
    } else {
      value = -value;
    }
  }
}

/// The same in device memory. Waits for the rank's stream.
template <Floating T>
void negate(Rank& rank, const DeviceBuffer<T>& buffer) {
  std::vector<T> values = download(rank, buffer.data(), static_cast<std::int64_t>(buffer.size()));
  negate(std::span<T>(values));
  upload(rank, values, buffer);
}

/// Makes every element NaN. Waits for the rank's stream.
template <Floating T>
void fill_with_nan(Rank& rank, const DeviceBuffer<T>& buffer) {
  if (buffer.size() == 0) return;
  CUDA_CHECK(cudaMemsetAsync(buffer.data(), 0xFF, buffer.bytes(), rank.stream()));  // all bits set: a NaN
  rank.synchronize(rank.stream());
}

}  // namespace overlap
