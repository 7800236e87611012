// A copy between GPUs that loses one element of each copy from GPU 1 to GPU 0: what bin/doctor must find.
// Linked with
// --wrap=cudaMemcpyPeer, so that all calls come here and __real_ is the true one.
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

extern "C" cudaError_t __real_cudaMemcpyPeer(void* target, int target_device, const void* source,
                                             int source_device, std::size_t bytes);

extern "C" cudaError_t __wrap_cudaMemcpyPeer(void* target, int target_device, const void* source,
                                             int source_device, std::size_t bytes) {
  constexpr std::size_t kLost = 1000;  // the element that does not arrive
  std::uint32_t before = 0;
  auto* lost = static_cast<std::uint32_t*>(target) + kLost;
  cudaError_t error = cudaMemcpy(&before, lost, sizeof(before), cudaMemcpyDeviceToHost);
  if (error != cudaSuccess) return error;
  error = __real_cudaMemcpyPeer(target, target_device, source, source_device, bytes);
  if (error != cudaSuccess || source_device != 1 || target_device != 0) return error;
  return cudaMemcpy(lost, &before, sizeof(before), cudaMemcpyHostToDevice);
}
