// Chapter 15, first stage: a look-up instead of version 6's search: a table of places, in one step; or a
// binary search without any memory, in log2 of G steps.
#pragma once

#include <cuda_runtime.h>

#include <bit>
#include <cstddef>
#include <cstdint>

#include "09_sparse_v1_nonzero/sparse_all_reduce.cuh"
#include "overlap/data/cost.hpp"
#include "overlap/data/sparse.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/launch.hpp"
#include "overlap/gpu/stream.hpp"

namespace overlap::sparse_beyond {

/// The first place in the ascending list whose row is not below `row`; `count` if there is none.
template <SparseIndex Index>
__host__ __device__ inline std::int64_t lower_bound(const Index* list, std::int64_t count, Index row) {
  std::int64_t begin = 0;
  // [task halves: which half of what is left can the row not be in?]
  // [blank] (void)list, (void)row, (void)count;
  for (std::int64_t left = count; left > 0;) {
    const std::int64_t half = left / 2;
    const bool above = list[begin + half] < row;
    begin += above ? half + 1 : 0;
    left = above ? left - half - 1 : half;
  }
  // [/task]
  return begin;
}

/// Steps that lower_bound() takes at most.
constexpr std::int64_t halvings(std::int64_t count) {
  return static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(count)));
}

/// positions[j] = the place of local[j] in the list `global`, for all j < local_count; the position of a row
/// that is not in the list does not change.
template <SparseIndex Index>
__global__ void search_by_halves(const Index* local, std::int64_t local_count, const Index* global,
                                 std::int64_t global_count, std::int32_t* positions) {
  const std::int64_t j = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (j >= local_count) return;
  const std::int64_t place = lower_bound(global, global_count, local[j]);
  if (place < global_count && global[place] == local[j]) positions[j] = static_cast<std::int32_t>(place);
}

/// places[global[g]] = g, for all g < count.
template <SparseIndex Index>
__global__ void note_places(const Index* global, std::int64_t count, std::int32_t* places) {
  const std::int64_t g = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (g < count) places[global[g]] = static_cast<std::int32_t>(g);
}

/// positions[j] = places[local[j]], for all j < count.
template <SparseIndex Index>
__global__ void look_up_places(const Index* local, std::int64_t count, const std::int32_t* places,
                               std::int32_t* positions) {
  const std::int64_t j = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (j < count) positions[j] = places[local[j]];
}

/// A binary search. Only the global list has to ascend.
struct BinarySearch {
  /// See RowSearch. At least one local row: a grid of no blocks is an error.
  template <SparseIndex Index>
  void operator()(RowList<Index> local, RowList<Index> global, std::int32_t* positions,
                  cudaStream_t stream) const {
    search_by_halves<<<blocks_for(local.count), kBlockThreads, 0, stream>>>(
        local.indices, local.count, global.indices, global.count, positions);
    CUDA_CHECK(cudaGetLastError());
  }

  /// An upper bound of the search's cost.
  static Cost cost(const sparse_nonzero::SparseCall& call) {
    return {.launches = call.local > 0 ? 1 : 0, .comparisons = call.local * halvings(call.global)};
  }
};

/// A table with a place for each row of the gradient's table. Neither list has to ascend. It is never
/// cleared: a rank's rows are among the global ones, so only entries are read that this call has written.
class TableSearch {
 public:
  /// The longest table of places, in rows: 8 GiB. Beyond it the search is a binary one.
  static constexpr std::int64_t kMaxRows = std::int64_t{1} << 31;

  /// Allocates the table.
  explicit TableSearch(const sparse_nonzero::SparseFrame& frame)
      : places_(frame.rank.device(), static_cast<std::size_t>(rows_of_table(frame.shape.rows))) {}

  /// See RowSearch. At least one local row.
  template <SparseIndex Index>
  void operator()(RowList<Index> local, RowList<Index> global, std::int32_t* positions,
                  cudaStream_t stream) const {
    if (places_.size() == 0) return BinarySearch{}(local, global, positions, stream);
    // [task table: who writes which entries, and who reads them?]
    note_places<<<blocks_for(global.count), kBlockThreads, 0, stream>>>(global.indices, global.count,
                                                                        places_.data());
    CUDA_CHECK(cudaGetLastError());
    look_up_places<<<blocks_for(local.count), kBlockThreads, 0, stream>>>(local.indices, local.count,
                                                                          places_.data(), positions);
    CUDA_CHECK(cudaGetLastError());
    // [/task]
  }

  /// The cost of the search, for a table of `rows` rows; no comparisons, unless the table is too long.
  static Cost cost(const sparse_nonzero::SparseCall& call, std::int64_t rows = 1) {
    if (rows > kMaxRows) return BinarySearch::cost(call);
    return {.launches = call.local > 0 ? 2 : 0, .memory = rows * std::int64_t{sizeof(std::int32_t)}};
  }

 private:
  static std::int64_t rows_of_table(std::int64_t rows) { return rows <= kMaxRows ? rows : 0; }

  DeviceBuffer<std::int32_t> places_;  // [V]
};

/// Version 6 with a table of places instead of its search.
template <SparseIndex Index, Floating T>
using TableAllReduce = sparse_nonzero::SparseAllReduce<Index, T, TableSearch>;

/// Version 6 with a binary search.
template <SparseIndex Index, Floating T>
using BinaryAllReduce = sparse_nonzero::SparseAllReduce<Index, T, BinarySearch>;

}  // namespace overlap::sparse_beyond
