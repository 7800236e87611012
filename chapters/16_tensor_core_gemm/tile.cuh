// Chapter 16: tiles of C, and the order in which blocks take them.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "overlap/gpu/shape.hpp"

namespace overlap::tensor_core_gemm {

/// Depth in k of a stage, and elements in a row of shared memory: 64 of 16 bits are 128 bytes, the longest
/// row that TMA swizzles.
inline constexpr int kSpan = 64;

/// Rows of C of a consumer warpgroup: those of one wgmma.
inline constexpr int kGroupRows = 64;

/// A block's tile of C, kM x kN, and the number of stages of its operands in shared memory.
template <int M, int N, int Stages>
struct Tile {
  static_assert(M % kGroupRows == 0 && (N == 64 || N == 128 || N == 256) && Stages >= 1);
  static constexpr int kM = M;  ///< rows of C
  static constexpr int kN = N;  ///< columns of C
  static constexpr int kStages = Stages;
  static constexpr int kGroups = M / kGroupRows;  ///< consumer warpgroups
};

/// Tiles along m and n, and k-blocks, of a GEMM; all three are rounded up.
struct Tiling {
  int along_m;  ///< rows of tiles
  int along_n;  ///< columns of tiles
  int along_k;  ///< k-blocks of kSpan values

  /// Number of tiles.
  __host__ __device__ constexpr int tiles() const { return along_m * along_n; }
};

/// The tiling of a GEMM by this tile.
template <typename Tile>
constexpr Tiling tiling_of(MatmulShape shape) {
  const auto parts = [](std::int64_t size, int part) { return static_cast<int>((size + part - 1) / part); };
  return {parts(shape.m, Tile::kM), parts(shape.n, Tile::kN), parts(shape.k, kSpan)};
}

/// The first element of a tile in a matrix.
struct Corner {
  int row;     ///< of C, and of A
  int column;  ///< of C, and of B
};

/// Place of a tile: its number along m and along n.
struct TilePlace {
  int m;
  int n;

  /// Its first element.
  template <typename Tile>
  __host__ __device__ constexpr Corner corner() const {
    return {m * Tile::kM, n * Tile::kN};
  }
};

/// Place of tile `index` in grouped order: groups of `group` rows of tiles, and within a group column by
/// column. Tiles that are computed at the same time then form a block of C of about 8 x 17 rather than a row,
/// so they share more of A and B in the L2 cache. (The article's GROUP_SIZE_M.) A group of 1 is row by row.
__host__ __device__ constexpr TilePlace place_of(int index, Tiling tiling, int group) {
  // [task order: which rows of tiles has the group of this index, and where in the group is its tile?]
  // [blank] return {};
  const int first = index / (group * tiling.along_n) * group;
  const int rows = tiling.along_m - first < group ? tiling.along_m - first : group;
  const int within = index - first * tiling.along_n;
  return {first + within % rows, within / rows};
  // [/task]
}

/// Grouped order as a function object.
struct GroupedOrder {
  Tiling tiling;
  int group;  ///< rows of tiles, see place_of()

  /// Number of tiles.
  __host__ __device__ constexpr int tiles() const { return tiling.tiles(); }
  /// Place of tile number `index` of the order.
  __host__ __device__ constexpr TilePlace operator()(int index) const {
    return place_of(index, tiling, group);
  }
};

}  // namespace overlap::tensor_core_gemm
