// Default sizes of a launch, and loading a kernel before its first launch.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "overlap/gpu/check.hpp"

namespace overlap {

/// Threads of a warp.
inline constexpr int kWarp = 32;

/// Threads of a block, by default.
inline constexpr int kBlockThreads = 256;

/// Blocks of kBlockThreads for so many threads, each with an element of its own in the GPU's memory. A grid
/// has at most 2^31 - 1 blocks. That is not checked: the elements of so many, 5.5 x 10^11, are more than any
/// memory has room for, and are allocated before.
inline unsigned blocks_for(std::int64_t threads) {
  return static_cast<unsigned>((threads + kBlockThreads - 1) / kBlockThreads);
}

/// Blocks of a kernel that takes any number of rows, a block a row after the other: one for each row, as long
/// as there are not more of them than keep any GPU busy.
inline unsigned blocks_for_rows(std::int64_t rows) {
  return static_cast<unsigned>(std::min<std::int64_t>(rows, 65536));
}

/// Loads a kernel for the current GPU. Otherwise CUDA loads it at its first launch, which may wait for all
/// work of the GPU: for ever, if one of its streams waits for a signal that is raised later (CUDA Programming
/// Guide, "Lazy Loading", potential hazards; on an H200 with CUDA 13.0 the launch did not return, and
/// returned at once after this call). So an algorithm with signals loads its kernels in its constructor.
/// Throws CudaError.
template <typename... Parameters>
void load_kernel(void (*kernel)(Parameters...)) {
  int blocks = 0;  // asking for the occupancy loads the kernel
  CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, kBlockThreads, 0));
}

}  // namespace overlap
