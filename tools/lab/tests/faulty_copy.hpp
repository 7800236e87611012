// A copy between GPUs that loses one element of each copy from GPU 1 to GPU 0: what bin/doctor must find. The
// compiler includes this before doctor.cpp, so that the calls there come here.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

/// cudaMemcpyPeer() of 32-bit elements; of those from GPU 1 to GPU 0, element 1000 does not arrive.
inline cudaError_t faulty_memcpy_peer(void* target, int target_device, const void* source, int source_device,
                                      std::size_t bytes) {
  std::uint32_t before = 0;
  auto* lost = static_cast<std::uint32_t*>(target) + 1000;
  cudaError_t error = cudaMemcpy(&before, lost, sizeof(before), cudaMemcpyDeviceToHost);
  if (error != cudaSuccess) return error;
  error = cudaMemcpyPeer(target, target_device, source, source_device, bytes);
  if (error != cudaSuccess || source_device != 1 || target_device != 0) return error;
  return cudaMemcpy(lost, &before, sizeof(before), cudaMemcpyHostToDevice);
}

#define cudaMemcpyPeer faulty_memcpy_peer
