// Chapter 13, version 5: comparing and finding in one kernel. Nothing is written but the positions.
#pragma once

#include <cstdint>

#include "09_sparse_v1_nonzero/sparse_all_reduce.cuh"
#include "overlap/data/cost.hpp"
#include "overlap/data/sparse.hpp"

namespace overlap::sparse_kernel {

/// Threads of a block, and as many entries of the global list as it holds in shared memory at a time.
inline constexpr int kSearchTile = 256;

/// Tiles, or blocks, for so many entries, the last one perhaps not full. In integers: as a float, 2^24 + 1 is
/// 2^24, and the last entry would never be looked at.
__host__ __device__ constexpr std::int64_t tiles_for(std::int64_t entries) {
  return entries / kSearchTile + (entries % kSearchTile != 0 ? 1 : 0);
}

/// positions[row] = the place of local[row] in the list `global`, -1 if it is not in it. Each thread has one
/// local row and looks at the whole list. The threads of a block look at the same tile of it at the same
/// time, so it comes from memory once for all of them.
template <SparseIndex Index>
__global__ void search_tiles(const Index* local, std::int64_t local_count, const Index* global,
                             std::int64_t global_count, std::int32_t* positions) {
  __shared__ Index tile[kSearchTile];
  const std::int64_t row = std::int64_t{blockIdx.x} * kSearchTile + threadIdx.x;
  // In the last block some threads have no row. They do not leave: the tiles need all hands.
  const bool has_row = row < local_count;
  const Index wanted = has_row ? local[row] : Index{sparse_nonzero::kNoRow};
  std::int32_t found = -1;
  // [task tiles: how many tiles are there, if the last one is not full?]
  // [blank] const std::int64_t tiles = 0;
  const std::int64_t tiles = tiles_for(global_count);
  // [/task]
  for (std::int64_t i = 0; i < tiles; ++i) {
    const std::int64_t begin = i * kSearchTile;

    // ---- The tile comes --------------------------------------------------------------------------------
    // [task stage: who loads what, and what do the others have to wait for, before and after?]
    __syncthreads();  // nobody reads the last tile any more
    if (begin + threadIdx.x < global_count) tile[threadIdx.x] = global[begin + threadIdx.x];
    __syncthreads();  // all of this one is here
    // [/task]

    // ---- Each thread compares its row with all of it ---------------------------------------------------
    // [task compare: how far, in the last tile, and what is the place of an entry in the whole list?]
    // Behind the end of the list stands the tile before.
    const int entries = static_cast<int>(min(std::int64_t{kSearchTile}, global_count - begin));
    for (int j = 0; j < entries; ++j) {
      if (tile[j] == wanted) found = static_cast<std::int32_t>(begin + j);
    }
    // [/task]
  }
  // Not `if (found >= 0)`: that would leave what was there before to a row that is not in the list.
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

  /// What the search costs.
  static Cost cost(const sparse_nonzero::SparseCall& call) {
    return {.launches = call.local > 0 ? 1 : 0, .comparisons = call.local * call.global};
  }
};

/// Version 5. Source: "Sparse All-Reduce in PyTorch" (Speechmatics), "v5: CUDA kernel".
template <SparseIndex Index, Floating T>
using TileSearchAllReduce = sparse_nonzero::SparseAllReduce<Index, T, TileSearch>;

}  // namespace overlap::sparse_kernel
