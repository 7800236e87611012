// Chapter 16: the part of C that a block computes, and in which order blocks take the parts.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "overlap/gpu/shape.hpp"

namespace overlap::tensor_core_gemm {

/// Elements of 16 bits in a row of shared memory: 128 bytes, within which the swizzle changes places. It is
/// the depth in k of a stage.
inline constexpr int kSpan = 64;

/// Rows of C that a warpgroup computes: those of one wgmma.
inline constexpr int kGroupRows = 64;

/// A block's part of C, kM x kN, and how many stages of its operands are on their way or in use at a time.
template <int M, int N, int Stages>
struct Tile {
  static_assert(M % kGroupRows == 0 && (N == 64 || N == 128 || N == 256) && Stages >= 1);
  static constexpr int kM = M;                    ///< rows of C
  static constexpr int kN = N;                    ///< columns of C
  static constexpr int kStages = Stages;          ///< of shared memory
  static constexpr int kGroups = M / kGroupRows;  ///< warpgroups that multiply
};

/// Tiles along m and n, and blocks along k, of a product. None of the three sizes has to be a multiple.
struct Tiling {
  int along_m;  ///< rows of tiles
  int along_n;  ///< columns of tiles
  int along_k;  ///< blocks of kSpan values of k

  /// How many tiles C has.
  __host__ __device__ constexpr int tiles() const { return along_m * along_n; }
};

/// The tiling of a product by tiles of this shape.
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

/// Where a tile lies: its number along m and along n.
struct TilePlace {
  int m;  ///< the row of tiles
  int n;  ///< the column of tiles

  /// Its first element.
  template <typename Tile>
  __host__ __device__ constexpr Corner corner() const {
    return {m * Tile::kM, n * Tile::kN};
  }
};

/// Tile `index` of the order in groups: `group` rows of tiles, one column of them after the other. Tiles that
/// are computed at the same time are then a square rather than a row of C, and what they read of A and B is
/// in the L2 cache for each other. (The article's GROUP_SIZE_M.) With a group of 1 it is row by row.
__host__ __device__ constexpr TilePlace place_of(int index, Tiling tiling, int group) {
  // [task order: which rows of tiles belong to the group of this index, and where in the group is it?]
  // [blank] return {};
  const int first = index / (group * tiling.along_n) * group;
  const int rows = tiling.along_m - first < group ? tiling.along_m - first : group;
  const int within = index - first * tiling.along_n;
  return {first + within % rows, within / rows};
  // [/task]
}

/// That order, as a function of the index.
struct GroupedOrder {
  Tiling tiling;  ///< of C
  int group;      ///< rows of tiles, see place_of()

  /// How many tiles there are.
  __host__ __device__ constexpr int tiles() const { return tiling.tiles(); }
  /// Where the tile lies that is taken as number `index`.
  __host__ __device__ constexpr TilePlace operator()(int index) const {
    return place_of(index, tiling, group);
  }
};

}  // namespace overlap::tensor_core_gemm
