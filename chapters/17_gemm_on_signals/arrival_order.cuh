// Chapter 17: which rows of A come when, and in which order the tiles of C are taken, so that each waits as
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

/// Signals that a rank's kernel may wait for: pieces of a shard times ranks.
inline constexpr int kMaxSignals = 64;

/// Rows of A that come together: one copy, one signal.
struct Piece {
  int signal;  ///< its number
  int begin;   ///< its first row in A
  int end;     ///< one past its last row
};

/// The rows of A, dealt out to the ranks as balanced_share() does; each rank's shard is cut into pieces. The
/// kernel gets it as a parameter.
struct Shards {
  int rows;    ///< of A
  int ranks;   ///< that have a shard each
  int pieces;  ///< of the largest shard

  /// The first row of a rank's shard; of rank `ranks` it is the number of rows.
  __host__ __device__ constexpr int begin(int rank) const {
    const int larger = rows % ranks;  // so many shards have a row more
    return rows / ranks * rank + (rank < larger ? rank : larger);
  }
  /// One past its last row.
  __host__ __device__ constexpr int end(int rank) const { return begin(rank + 1); }
  /// Rows of a piece; the last one of a shard may have fewer.
  __host__ __device__ constexpr int piece_rows() const {
    return rows > 0 ? (end(0) + pieces - 1) / pieces : 1;
  }
  /// Whose row it is.
  __host__ __device__ constexpr int owner(int row) const {
    const int small = rows / ranks, in_larger = rows % ranks * (small + 1);
    return row < in_larger ? row / (small + 1) : rows % ranks + (row - in_larger) / small;
  }
  /// The piece in which a row comes.
  __host__ __device__ constexpr Piece piece_of(int row) const {
    const int rank = owner(row), height = piece_rows();
    const int number = (row - begin(rank)) / height;
    const int first = begin(rank) + number * height, last = first + height;
    return {rank * pieces + number, first, last < end(rank) ? last : end(rank)};
  }
  /// True if all of the rows are that rank's.
  __host__ __device__ constexpr bool hold(int rank, int first, int last) const {
    return begin(rank) <= first && last <= end(rank);
  }
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

/// The order of the tiles: rows of tiles as their last missing piece arrives at this rank. First those that
/// need own rows only, then what also needs the first piece of the right neighbour, and so on round the ring;
/// last the row of tiles on the border to the left neighbour, whose shard comes last. All that one piece
/// makes ready is taken in the groups of chapter 16; a group that reached into the next piece would make its
/// first column wait for it.
///
/// The kernel gets it as a parameter: the ends below are looked up in constant memory.
struct ArrivalOrder {
  Tiling tiling;               ///< of C
  int first;                   ///< the row of tiles that is taken first
  int arrivals;                ///< own rows, and the others' pieces
  int ready[kMaxSignals + 1];  ///< rows of tiles that can be computed after 1, 2, ... arrivals

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

/// The order in which `rank` takes tiles of `tile_rows` rows. Throws UsageError if the shards have more
/// pieces than kMaxSignals in all.
inline ArrivalOrder arrival_order(const Shards& shards, Tiling tiling, int tile_rows, int rank) {
  if (shards.pieces < 1 || shards.ranks * shards.pieces > kMaxSignals) {
    throw UsageError(std::to_string(shards.pieces) + " pieces of each of " + std::to_string(shards.ranks) +
                     " shards: together there are 1 to " + std::to_string(kMaxSignals));
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
    for (int row = shards.begin(owner); row < shards.end(owner);) {
      const Piece piece = shards.piece_of(row);
      order.ready[order.arrivals++] = count(owner, piece.end);
      row = piece.end;
    }
  }
  order.ready[order.arrivals - 1] = tiling.along_m;  // the border to the left neighbour, too
  return order;
}

}  // namespace overlap::gemm_on_signals
