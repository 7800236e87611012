// How many blocks a kernel is launched with, where a lesson has no other reason to choose, and that it is
// there when it is launched.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "overlap/gpu/check.hpp"

namespace overlap {

/// Threads of a warp.
inline constexpr int kWarp = 32;

/// Threads of a block, where nothing speaks for another number.
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

/// Loads a kernel for the current GPU. Else CUDA loads it when it is launched for the first time, and may
/// have to wait for all that the GPU has to do: for ever, if a stream of it waits for a signal that comes
/// later (CUDA Programming Guide, "Lazy Loading", potential hazards; on an H200 with CUDA 13.0 the launch
/// does not return, and returns at once behind this call). So an algorithm with signals loads what it
/// launches behind them in its constructor. Throws CudaError.
template <typename... Parameters>
void load_kernel(void (*kernel)(Parameters...)) {
  int blocks = 0;  // a question that only a loaded kernel can answer
  CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, kBlockThreads, 0));
}

}  // namespace overlap
