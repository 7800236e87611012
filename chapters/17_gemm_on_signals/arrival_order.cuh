// Chapter 17: the shards of A, and the order of C's tiles: by the arrival of their rows, so that tiles hardly
// wait.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "16_tensor_core_gemm/tile.cuh"
#include "overlap/data/matrix.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/gpu/ring.hpp"

namespace overlap::gemm_on_signals {

using tensor_core_gemm::TilePlace;
using tensor_core_gemm::Tiling;

/// Limit set by the size of the kernel's parameters.
inline constexpr int kMaxRanks = 64;

/// The rows of A, split over the ranks by balanced_share(). A kernel parameter.
struct Shards {
  int rows;  ///< of A
  int ranks;

  /// The first row of a rank's shard; begin(ranks) is the number of rows.
  __host__ __device__ constexpr int begin(int rank) const {
    const int larger = rows % ranks;  // number of shards with one more row
    return rows / ranks * rank + (rank < larger ? rank : larger);
  }
  /// One past its last row.
  __host__ __device__ constexpr int end(int rank) const { return begin(rank + 1); }
  /// The rank whose shard has the row.
  __host__ __device__ constexpr int owner(int row) const {
    const int small = rows / ranks, in_larger = rows % ranks * (small + 1);
    return row < in_larger ? row / (small + 1) : rows % ranks + (row - in_larger) / small;
  }
  /// True if rows `first` to `last` (excluded) all lie in the rank's shard.
  __host__ __device__ constexpr bool hold(int rank, int first, int last) const {
    return begin(rank) <= first && last <= end(rank);
  }
};

/// A shard is pushed in pieces of its columns: a tile can start with the k-blocks of the first piece while
/// the others are still in transfer.
struct Pieces {
  int count;      ///< pieces of a shard
  int blocks;     ///< k-blocks of the first piece
  int step = 0;   ///< k-blocks that each group of pieces has more than the one before, per piece
  int equal = 1;  ///< pieces of a group; the last piece ends where k does

  /// At most `wanted` pieces of `along_k` k-blocks, each of at least one. If k is long, they become
  /// shorter, in about the ratio n : n - 1 : ... : 1, because the k-blocks of the last piece are multiplied
  /// while nothing is in transfer. Throws UsageError if `wanted` < 1.
  static Pieces of(int along_k, int wanted) {
    if (wanted < 1) throw UsageError(std::to_string(wanted) + " pieces of a shard: at least one is needed");
    const std::int64_t n = std::min(wanted, std::max(1, along_k));
    const std::int64_t less = along_k / (n * (n + 1) / 2);
    const std::int64_t first = (along_k + less * n * (n - 1) / 2 + n - 1) / n;
    Pieces pieces = {1, static_cast<int>(first), -static_cast<int>(less)};
    while (pieces.begin(pieces.count) < along_k) ++pieces.count;
    return pieces;
  }

  /// The first k-block of a piece.
  __host__ __device__ constexpr int begin(int piece) const {
    const int group = piece / equal, rest = piece - equal * group;
    return equal * (group * blocks + step * (group * (group - 1) / 2)) + rest * (blocks + group * step);
  }
  /// The number of the signal that follows a piece of the owner's shard.
  __host__ __device__ constexpr int signal(int owner, int piece) const { return owner * count + piece; }
};

/// Own rows at the ends of the shard that lie in tiles with rows of other ranks.
struct Edges {
  Range head;
  Range tail;
};

/// The edges of a rank's shard, for tiles of `tile_rows` rows.
inline Edges edges_of(const Shards& shards, int rank, int tile_rows) {
  const std::int64_t begin = shards.begin(rank), end = shards.end(rank);
  // [task edges: which own rows lie in tiles that other ranks have rows of, too?]
  // [blank] return (void)end, (void)tile_rows, Edges{{begin, begin}, {begin, begin}};
  const std::int64_t first_whole = (begin + tile_rows - 1) / tile_rows * tile_rows;
  const std::int64_t head = std::min(first_whole, end);
  const std::int64_t last_whole = end == shards.rows ? end : end / tile_rows * tile_rows;
  return {{begin, head}, {std::max(head, last_whole), end}};
  // [/task]
}

/// Order of the tiles: rows of tiles by the arrival of their last missing shard. First rows of tiles that
/// need own rows only, then those that also need the right neighbour's shard, and so on round the ring; last
/// the row of tiles on the border to the left neighbour, whose shard arrives last. Tiles that become ready
/// with the same shard are taken in chapter 16's groups; a group that reached into the next shard would make
/// its first column wait for that shard.
///
/// A kernel parameter, so `ready` is read from constant memory.
struct ArrivalOrder {
  Tiling tiling;
  int first;             ///< the first row of tiles
  int arrivals;          ///< number of shards with rows, the own one included
  int ready[kMaxRanks];  ///< rows of tiles that can be computed after 1, 2, ... arrivals

  static constexpr int kGroup = 8;  ///< rows of tiles in a group, see tensor_core_gemm::place_of()

  /// Number of tiles.
  __host__ __device__ constexpr int tiles() const { return tiling.tiles(); }
  /// Place of tile number `index` of the order.
  __host__ __device__ constexpr TilePlace operator()(int index) const {
    // [task order: which arrival makes this tile ready, and where is the tile among those of that arrival?]
    // [blank] return {0 * index, 0};
    int arrival = 0, before = 0;  // rows of tiles of the arrivals before this one
    while (index >= ready[arrival] * tiling.along_n) before = ready[arrival++];
    const Tiling batch{ready[arrival] - before, tiling.along_n, tiling.along_k};
    const TilePlace place = tensor_core_gemm::place_of(index - before * tiling.along_n, batch, kGroup);
    return {(first + before + place.m) % tiling.along_m, place.n};
    // [/task]
  }
};

/// The order of `rank`, for tiles of `tile_rows` rows. Throws UsageError for more than kMaxRanks ranks.
inline ArrivalOrder arrival_order(const Shards& shards, Tiling tiling, int tile_rows, int rank) {
  if (shards.ranks > kMaxRanks) {
    throw UsageError("the kernel's parameters have room for " + std::to_string(kMaxRanks) +
                     " ranks, and there are " + std::to_string(shards.ranks));
  }
  ArrivalOrder order{tiling, 0, 0, {}};
  // Start at the first row of tiles that begins at or after the own shard's first row: the row of tiles
  // before also needs rows of the left neighbour.
  const int begin = (shards.begin(rank) + tile_rows - 1) / tile_rows;
  order.first = begin % std::max(1, tiling.along_m);
  // Rows of tiles that end at or before row `end` of A, counted from `begin` on, round the matrix.
  const auto count = [&](int owner, int end) {
    const int whole = end == shards.rows ? tiling.along_m : end / tile_rows;
    return std::max(0, owner < rank ? tiling.along_m - begin + whole : whole - begin);
  };
  order.ready[order.arrivals++] = count(rank, shards.end(rank));
  const Ring ring(rank, shards.ranks);
  for (int step = 1; step < shards.ranks; ++step) {
    const int owner = ring.shard(step);
    if (shards.begin(owner) < shards.end(owner))
      order.ready[order.arrivals++] = count(owner, shards.end(owner));
  }
  order.ready[order.arrivals - 1] = tiling.along_m;  // the border to the left neighbour, too
  return order;
}

}  // namespace overlap::gemm_on_signals
