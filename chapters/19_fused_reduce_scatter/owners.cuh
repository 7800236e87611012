// Chapter 19: whose rows are whose, and in which order a rank takes the tiles. Each rank's rows have tiles of
// their own:
//
//   step         0        1        2        3 = own      P = 4: whose tiles rank d computes in each step
//   rank 0    rank 1   rank 2   rank 3   rank 0
//   rank 1    rank 2   rank 3   rank 0   rank 1
//   rank 2    rank 3   rank 0   rank 1   rank 2
//   rank 3    rank 0   rank 1   rank 2   rank 3
//
// In each column every rank stands once: at any time each link in and out carries what one rank sends. It is
// the order of chapter 06's all-to-all, with tiles for chunks and without a boundary between the steps.
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

inline constexpr int kMaxRanks = 16;  ///< that the kernel's parameters have room for

/// The rows of C[m, n] by their owners, cut into tiles. No tile has rows of two owners: it has one
/// destination, one flag and one tensor map that ends where the rows end. That costs an owner at most one row
/// of tiles that are not whole; a tile that straddled owners would have to be sent, and awaited, in pieces.
struct Owners {
  int ranks;                     ///< owners
  int first_row[kMaxRanks + 1];  ///< of each one's rows in C, and the end
  int tile_rows;                 ///< of a tile
  int along_n;                   ///< columns of tiles
  int along_k;                   ///< blocks of k

  /// Those of a product, by balanced_share(), with tiles of this shape. Throws UsageError for more than
  /// kMaxRanks ranks.
  template <typename Tile>
  static Owners of(MatmulShape product, int ranks) {
    if (ranks > kMaxRanks) {
      throw UsageError("the kernel's parameters have room for " + std::to_string(kMaxRanks) +
                       " ranks, and there are " + std::to_string(ranks));
    }
    const Tiling tiling = tensor_core_gemm::tiling_of<Tile>(product);
    Owners owners{ranks, {}, Tile::kM, tiling.along_n, tiling.along_k};
    for (int rank = 0; rank < ranks; ++rank)
      owners.first_row[rank + 1] = static_cast<int>(balanced_share(product.m, ranks, rank).end);
    return owners;
  }

  /// How many rows an owner has.
  __host__ __device__ constexpr int rows(int owner) const { return first_row[owner + 1] - first_row[owner]; }
  /// An owner's tiles. Without rows it has one row of tiles all the same, with nothing in them: by their
  /// flags it hears of every rank in every call, and so cannot run ahead of any (see Slots).
  __host__ __device__ constexpr Tiling tiling(int owner) const {
    const int along_m = (rows(owner) + tile_rows - 1) / tile_rows;
    return {along_m > 0 ? along_m : 1, along_n, along_k};
  }
  /// The tiles of all owners.
  __host__ __device__ constexpr int tiles() const {
    int sum = 0;
    for (int owner = 0; owner < ranks; ++owner) sum += tiling(owner).tiles();
    return sum;
  }
};

/// A tile of C, by whose it is.
struct OwnedTile {
  int owner;                          ///< of its rows
  tensor_core_gemm::TilePlace place;  ///< among the owner's tiles
};

/// The order in which a rank takes all tiles; see the top of this file.
struct OwnedOrder {
  Owners owners;  ///< of the rows
  int rank;       ///< whose order it is
  int group = 8;  ///< rows of tiles, see place_of()

  /// How many tiles there are.
  __host__ __device__ constexpr int tiles() const { return owners.tiles(); }
  /// The tile that is taken as number `index`.
  __host__ __device__ constexpr OwnedTile operator()(int index) const {
    // [task owner: whose tiles come first, whose last, and where does one's end?]
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
