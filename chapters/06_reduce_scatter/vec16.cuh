// Chapter 06, for the kernels that add: loads and stores of 16 bytes, and how many blocks to launch.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "overlap/gpu/check.hpp"

namespace overlap::reduce_scatter {

/// Elements that a thread loads or stores at once. A quarter of the instructions of 4-byte elements, and
/// every eight threads request a whole 128-byte line.
template <typename T, int kElements>
struct alignas(16) Vec16 {
  T values[kElements];  ///< neighbours in memory
};

/// Elements of T in 16 bytes.
template <typename T>
inline constexpr int kVec16Width = 16 / sizeof(T);

/// How many whole vectors of T can be stored from `to` on; 0 if it is not aligned to 16 bytes. A caller's
/// pointer may be anywhere.
template <typename T>
std::int64_t vectors_at(const T* to, std::int64_t elements) {
  return reinterpret_cast<std::uintptr_t>(to) % 16 == 0 ? elements / kVec16Width<T> : 0;
}

inline constexpr int kAddThreads = 256;  ///< in a block of a kernel that adds

/// Blocks of kAddThreads for so many vectors, or elements where there are no vectors; at most `most`: threads
/// take several vectors each.
inline unsigned add_blocks(std::int64_t vectors, std::int64_t elements, std::int64_t most) {
  const std::int64_t work = vectors > 0 ? vectors : elements;
  return static_cast<unsigned>(std::clamp((work + kAddThreads - 1) / kAddThreads, std::int64_t{1}, most));
}

/// Multiprocessors of a GPU.
inline int multiprocessors(int device) {
  int count = 0;
  CUDA_CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
  return count;
}

}  // namespace overlap::reduce_scatter
