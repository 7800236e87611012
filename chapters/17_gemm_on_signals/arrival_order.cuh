// Chapter 17: which part of A comes when, and in which order the tiles of C are taken, so that each waits as
// little as possible.
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

/// Ranks, at most, that the kernel's parameters have room for.
inline constexpr int kMaxRanks = 64;

/// The rows of A, dealt out to the ranks as balanced_share() does. The kernel gets it as a parameter.
struct Shards {
  int rows;   ///< of A
  int ranks;  ///< that have a shard each

  /// The first row of a rank's shard; of rank `ranks` it is the number of rows.
  __host__ __device__ constexpr int begin(int rank) const {
    const int larger = rows % ranks;  // so many shards have a row more
    return rows / ranks * rank + (rank < larger ? rank : larger);
  }
  /// One past its last row.
  __host__ __device__ constexpr int end(int rank) const { return begin(rank + 1); }
  /// Whose row it is.
  __host__ __device__ constexpr int owner(int row) const {
    const int small = rows / ranks, in_larger = rows % ranks * (small + 1);
    return row < in_larger ? row / (small + 1) : rows % ranks + (row - in_larger) / small;
  }
  /// True if all of the rows are that rank's.
  __host__ __device__ constexpr bool hold(int rank, int first, int last) const {
    return begin(rank) <= first && last <= end(rank);
  }
};

/// A shard comes in pieces, each of some of its columns: a tile can begin with the k-blocks of the first one
/// while the others are still on their way.
struct Pieces {
  int count;   ///< of a shard
  int blocks;  ///< k-blocks of a piece; the last one may have fewer

  /// At most `wanted` pieces, of at least one of `along_k` k-blocks each. Throws UsageError if none is
  /// wanted.
  static Pieces of(int along_k, int wanted) {
    if (wanted < 1) throw UsageError(std::to_string(wanted) + " pieces of a shard: at least one is needed");
    const int blocks = std::max(1, (along_k + wanted - 1) / wanted);
    return {std::max(1, (along_k + blocks - 1) / blocks), blocks};
  }
  /// The number of the signal behind a piece of that rank's shard.
  __host__ __device__ constexpr int signal(int owner, int piece) const { return owner * count + piece; }
};

/// Own rows at the shard's ends, in tiles that reach beyond it.
struct Edges {
  Range head;  ///< at its beginning
  Range tail;  ///< at its end
};

/// Those of a rank, for tiles of `tile_rows` rows.
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

/// The order of the tiles: rows of tiles as their last missing shard arrives at this rank. First those that
/// need own rows only, then what also needs the shard of the right neighbour, and so on round the ring; last
/// the row of tiles on the border to the left neighbour, whose shard comes last. All that one shard makes
/// ready is taken in the groups of chapter 16; a group that reached into the next shard would make its first
/// column wait for it.
///
/// The kernel gets it as a parameter: the ends below are looked up in constant memory.
struct ArrivalOrder {
  Tiling tiling;         ///< of C
  int first;             ///< the row of tiles that is taken first
  int arrivals;          ///< own rows, and the others' shards
  int ready[kMaxRanks];  ///< rows of tiles that can be computed after 1, 2, ... arrivals

  static constexpr int kGroup = 8;  ///< rows of tiles in a group, see tensor_core_gemm::place_of()

  /// How many tiles there are.
  __host__ __device__ constexpr int tiles() const { return tiling.tiles(); }
  /// Where the tile lies that is taken as number `index`.
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

/// The order in which `rank` takes tiles of `tile_rows` rows. Throws UsageError for more than kMaxRanks
/// shards.
inline ArrivalOrder arrival_order(const Shards& shards, Tiling tiling, int tile_rows, int rank) {
  if (shards.ranks > kMaxRanks) {
    throw UsageError("the kernel's parameters have room for " + std::to_string(kMaxRanks) +
                     " ranks, and there are " + std::to_string(shards.ranks));
  }
  ArrivalOrder order{tiling, 0, 0, {}};
  // The first row of tiles that begins in the own shard, or behind it: the one before it also needs rows of
  // the left neighbour.
  const int begin = (shards.begin(rank) + tile_rows - 1) / tile_rows;
  order.first = begin % std::max(1, tiling.along_m);
  // Rows of tiles that end at or before row `end` of A, counted from there on round the matrix.
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
