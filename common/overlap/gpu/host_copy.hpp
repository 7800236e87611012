// Copies between the host and a GPU for checks: they wait, and allocate what they return.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "overlap/gpu/check.hpp"
#include "overlap/gpu/stream.hpp"

namespace overlap {

/// The values in memory of `device`.
template <typename T>
DeviceBuffer<T> on_device(int device, const std::vector<T>& values) {
  DeviceBuffer<T> buffer(device, values.size());
  if (!values.empty())
    CUDA_CHECK(cudaMemcpy(buffer.data(), values.data(), buffer.bytes(), cudaMemcpyHostToDevice));
  return buffer;
}

/// The current contents of a GPU's memory. The caller has waited for all work that writes it.
template <typename T>
std::vector<T> on_host(const T* values, std::int64_t elements) {
  std::vector<T> host(static_cast<std::size_t>(elements));
  if (elements > 0)
    CUDA_CHECK(cudaMemcpy(host.data(), values, host.size() * sizeof(T), cudaMemcpyDeviceToHost));
  return host;
}

}  // namespace overlap
