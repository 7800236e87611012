// Chapter 19: owners of rows, and the order in which a rank takes tiles. No tile has rows of two owners:
//
//   step         0        1        2        3 = own      P = 4: owner of the tiles that a rank computes
//   rank 0    rank 1   rank 2   rank 3   rank 0
//   rank 1    rank 2   rank 3   rank 0   rank 1
//   rank 2    rank 3   rank 0   rank 1   rank 2
//   rank 3    rank 0   rank 1   rank 2   rank 3
//
// Each column has every owner once: while all ranks keep step, each rank sends to one rank and receives from
// one. It is the order of chapter 06's all-to-all, with tiles for chunks and without a boundary between the
// steps.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <string>

#include "16_tensor_core_gemm/tile.cuh"
#include "overlap/gpu/error.hpp"
#include "overlap/gpu/shape.hpp"

namespace overlap::fused_reduce_scatter {

using tensor_core_gemm::place_of;
using tensor_core_gemm::Tiling;

inline constexpr int kMaxRanks = 16;  ///< limit set by the size of the kernel's parameters

/// The rows of C[m, n] by owner, in tiles. A tile has one owner, and so one destination, one flag and one
/// tensor map, which ends with the owner's rows. The cost is at most one partial row of tiles per owner; a
/// tile with rows of two owners would be sent, and awaited, in pieces.
struct Owners {
  int ranks;
  int first_row[kMaxRanks + 1];  ///< [owner] in C, and m at the end
  /// [owner] rows of tiles. An owner without rows has one row of empty tiles, because it must see a flag of
  /// every rank in every call: otherwise it could run two calls ahead (see FusedReduceScatter::exchange()).
  int along_m[kMaxRanks];
  int all_along_m;  ///< their sum
  int along_n;      ///< columns of tiles
  int along_k;      ///< k-blocks

  /// The owners of a GEMM's rows, by balanced_share(). Throws UsageError for more than kMaxRanks ranks.
  template <typename Tile>
  static Owners of(MatmulShape product, int ranks) {
    if (ranks > kMaxRanks) {
      throw UsageError("the kernel's parameters have room for " + std::to_string(kMaxRanks) +
                       " ranks, and there are " + std::to_string(ranks));
    }
    const Tiling tiling = tensor_core_gemm::tiling_of<Tile>(product);
    Owners owners{ranks, {}, {}, 0, tiling.along_n, tiling.along_k};
    for (int rank = 0; rank < ranks; ++rank) {
      owners.first_row[rank + 1] = static_cast<int>(balanced_share(product.m, ranks, rank).end);
      owners.along_m[rank] = std::max(1, (owners.rows(rank) + Tile::kM - 1) / Tile::kM);
      owners.all_along_m += owners.along_m[rank];
    }
    return owners;
  }

  /// Number of rows of an owner.
  __host__ __device__ constexpr int rows(int owner) const { return first_row[owner + 1] - first_row[owner]; }
  /// An owner's tiles.
  __host__ __device__ constexpr Tiling tiling(int owner) const { return {along_m[owner], along_n, along_k}; }
  /// Number of tiles of all owners.
  __host__ __device__ constexpr int tiles() const { return all_along_m * along_n; }
};

/// A tile of C, by owner.
struct OwnedTile {
  int owner;
  tensor_core_gemm::TilePlace place;  ///< among the owner's tiles
};

/// The order in which a rank takes all tiles; see the top of this file.
struct OwnedOrder {
  Owners owners;
  int rank;
  int group = 8;  ///< rows of tiles, see place_of()

  /// Number of tiles.
  __host__ __device__ constexpr int tiles() const { return owners.tiles(); }
  /// Tile number `index` of the order.
  __host__ __device__ constexpr OwnedTile operator()(int index) const {
    // [task owner: which owner's tiles are first, which last, and where does an owner's sequence end?]
    // [blank] const int owner = rank;
    // [blank] index %= owners.tiling(rank).tiles();
    int owner = (rank + 1) % owners.ranks;
    while (index >= owners.tiling(owner).tiles()) {
      index -= owners.tiling(owner).tiles();
      owner = (owner + 1) % owners.ranks;
    }
    // [/task]
    return {owner, place_of(index, owners.tiling(owner), group)};
  }
};

}  // namespace overlap::fused_reduce_scatter
