// Streams of real GPUs that are held back.
#include <cuda_runtime.h>

#include <cstdint>

#include "overlap/gpu/backend.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/kernel_signals.hpp"
#include "overlap/gpu/launch.hpp"

namespace overlap::backend {
namespace {

__global__ void wait_for(std::uint32_t* word, std::uint32_t value, unsigned* stop) {
  await_signal(word, value, stop);
}

}  // namespace

void hold(cudaStream_t stream, std::uint32_t* word, std::uint32_t value, unsigned* stop) {
  load_kernel(wait_for);  // by the first rank of a GPU, so before any rank's stream is held there
  wait_for<<<1, 1, 0, stream>>>(word, value, stop);
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace overlap::backend
