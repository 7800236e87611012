// Chapter 13, version 5: compare and find in one kernel, which writes only the positions.
#pragma once

#include <cstdint>

#include "09_sparse_v1_nonzero/sparse_all_reduce.cuh"
#include "overlap/data/cost.hpp"
#include "overlap/data/sparse.hpp"

namespace overlap::sparse_kernel {

/// Threads of a block, and as many entries of the global list as it holds in shared memory at a time.
inline constexpr int kSearchTile = 256;

/// Tiles, or blocks, for so many entries, the last one perhaps not full. In integers: as a float, 2^24 + 1 is
/// 2^24, and the last entry would never be compared.
__host__ __device__ constexpr std::int64_t tiles_for(std::int64_t entries) {
  return entries / kSearchTile + (entries % kSearchTile != 0 ? 1 : 0);
}

/// positions[row] = the place of local[row] in the list `global`, -1 if it is not in it. Each thread has one
/// local row and compares the whole list. The threads of a block compare the same tile at the same time, so
/// it is loaded from memory once for all of them.
template <SparseIndex Index>
__global__ void search_tiles(const Index* local, std::int64_t local_count, const Index* global,
                             std::int64_t global_count, std::int32_t* positions) {
  __shared__ Index tile[kSearchTile];
  const std::int64_t row = std::int64_t{blockIdx.x} * kSearchTile + threadIdx.x;
  // In the last block some threads have no row. They must not return: all threads load tiles and reach the
  // barriers.
  const bool has_row = row < local_count;
  const Index wanted = has_row ? local[row] : Index{sparse_nonzero::kNoRow};
  std::int32_t found = -1;
  // [task tiles: how many tiles are there, if the last one is not full?]
  // [blank] const std::int64_t tiles = 0;
  const std::int64_t tiles = tiles_for(global_count);
  // [/task]
  for (std::int64_t i = 0; i < tiles; ++i) {
    const std::int64_t begin = i * kSearchTile;

    // ---- Load the tile ---------------------------------------------------------------------------------
    // [task stage: who loads what, and what do the others have to wait for, before and after?]
    __syncthreads();  // all threads have read the previous tile
    if (begin + threadIdx.x < global_count) tile[threadIdx.x] = global[begin + threadIdx.x];
    __syncthreads();  // this tile is complete
    // [/task]

    // ---- Each thread compares its row with all of it ---------------------------------------------------
    // [task compare: how far, in the last tile, and what is the place of an entry in the whole list?]
    // Beyond the end of the list shared memory still holds the previous tile.
    const int entries = static_cast<int>(min(std::int64_t{kSearchTile}, global_count - begin));
    for (int j = 0; j < entries; ++j) {
      if (tile[j] == wanted) found = static_cast<std::int32_t>(begin + j);
    }
    // [/task]
  }
  // Not `if (found >= 0)`: a row that is not in the list would keep its old value.
  if (has_row) positions[row] = found;
}

/// The search of version 5.
struct TileSearch {
  /// See RowSearch. Without local rows nothing is launched: a grid of no blocks is an error.
  template <SparseIndex Index>
  void operator()(RowList<Index> local, RowList<Index> global, std::int32_t* positions,
                  cudaStream_t stream) const {
    if (local.count == 0) return;
    const auto blocks = static_cast<unsigned>(tiles_for(local.count));
    search_tiles<<<blocks, kSearchTile, 0, stream>>>(local.indices, local.count, global.indices, global.count,
                                                     positions);
    CUDA_CHECK(cudaGetLastError());
  }

  /// The cost of the search.
  static Cost cost(const sparse_nonzero::SparseCall& call) {
    return {.launches = call.local > 0 ? 1 : 0, .comparisons = call.local * call.global};
  }
};

/// Version 5. Source: "Sparse All-Reduce in PyTorch" (Speechmatics), "v5: CUDA kernel".
template <SparseIndex Index, Floating T>
using TileSearchAllReduce = sparse_nonzero::SparseAllReduce<Index, T, TileSearch>;

}  // namespace overlap::sparse_kernel
