// What the tests of extensions share.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "overlap/gpu/check.hpp"
#include "overlap/gpu/ranks.hpp"

namespace overlap {

/// Bytes that an Algorithm(rank, whole) holds on each rank's GPU, as CUDA counts them.
template <typename Algorithm>
std::vector<std::int64_t> memory_of(int ranks, MatmulShape whole) {
  std::vector<std::int64_t> held(static_cast<std::size_t>(ranks));
  const auto free_bytes = [] {
    std::size_t free = 0, total = 0;
    CUDA_CHECK(cudaMemGetInfo(&free, &total));
    return static_cast<std::int64_t>(free);
  };
  run_ranks(ranks, [&](Rank& rank) {
    { const Algorithm first(rank, whole); }  // what is allocated, or given back, once for all
    rank.barrier();
    const std::int64_t before = free_bytes();
    const Algorithm algorithm(rank, whole);
    held[static_cast<std::size_t>(rank.id())] = before - free_bytes();
    rank.barrier();
  });
  return held;
}

}  // namespace overlap
