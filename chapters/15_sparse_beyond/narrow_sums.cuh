// Chapter 15: a rank's own sums, rounded at once to the narrower type in which they travel.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "08_sparse_baselines/coalesce.cuh"
#include "overlap/data/sparse.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/element.hpp"
#include "overlap/gpu/launch.hpp"

namespace overlap::sparse_beyond {

/// As sum_entries() of chapter 08: the entries of a row, in their original order, summed in f32. But the sum
/// is rounded once, to the type on the wire, and never to T.
template <Floating T, Floating Wire>
__global__ void sum_entries_narrow(const T* values, const std::int32_t* sorted, const std::int32_t* begins,
                                   const std::int32_t* lengths, const std::int32_t* count,
                                   std::int64_t features, Wire* sums) {
  for (std::int64_t row = blockIdx.x; row < *count; row += gridDim.x) {
    const std::int32_t* entries = sorted + begins[row];
    for (std::int64_t feature = threadIdx.x; feature < features; feature += blockDim.x) {
      float sum = static_cast<float>(values[entries[0] * features + feature]);
      for (std::int32_t i = 1; i < lengths[row]; ++i)
        sum += static_cast<float>(values[entries[i] * features + feature]);
      sums[row * features + feature] = static_cast<Wire>(sum);
    }
  }
}

/// Enqueues that, for what coalesce.find() has found of so many entries.
template <SparseIndex Index, Floating T, Floating Wire>
void sum_narrow(const sparse_baselines::Coalesce<Index, T>& coalesce, const T* values, std::int64_t entries,
                std::int64_t features, Wire* sums, cudaStream_t stream) {
  if (entries == 0) return;
  sum_entries_narrow<<<blocks_for_rows(entries), kBlockThreads, 0, stream>>>(
      values, coalesce.sorted_entries(), coalesce.begins(), coalesce.lengths(), coalesce.found(), features,
      sums);
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace overlap::sparse_beyond
