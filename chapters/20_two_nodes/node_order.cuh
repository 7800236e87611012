// Chapter 20: ranks in nodes, the order in which shards arrive at a rank, and the order of tiles that
// follows.
#pragma once

#include <algorithm>
#include <vector>

#include "17_gemm_on_signals/arrival_order.cuh"
#include "overlap/gpu/error.hpp"

namespace overlap::two_nodes {

using gemm_on_signals::kMaxRanks;
using gemm_on_signals::Shards;
using tensor_core_gemm::TilePlace;
using tensor_core_gemm::Tiling;

/// Position of a rank in nodes of equal size. Node i has the ranks from i * per_node on.
struct Nodes {
  int rank;
  int ranks;     ///< in all nodes
  int per_node;  ///< in each node

  constexpr int count() const { return ranks / per_node; }  ///< number of nodes
  constexpr int node() const { return rank / per_node; }    ///< the rank's node
  constexpr int local() const { return rank % per_node; }   ///< the rank's number in its node
  /// The rank `nodes` nodes to the right, with a number `locals` higher in its node, both round a ring;
  /// negative: to the left, lower.
  constexpr int at(int nodes, int locals) const {
    const auto round = [](int place, int size) { return (place % size + size) % size; };
    return round(node() + nodes, count()) * per_node + round(local() + locals, per_node);
  }
  /// The owner of the shard that arrives as number `arrival`; 0 is the rank's own. First the shards of the
  /// own node, from the rank's number on, because each rank pushes to the left. Then those of the next node
  /// to the left: the first along the own rail, the others from ranks of the own node that received them; and
  /// so on.
  constexpr int owner(int arrival) const { return at(-(arrival / per_node), arrival % per_node); }
  /// True if the rank is in the same node.
  constexpr bool is_near(int other) const { return other / per_node == node(); }
};

/// Throws UsageError unless `ranks` ranks make nodes of `per_node` each.
inline void require_nodes(int ranks, int per_node) {
  if (per_node >= 1 && ranks % per_node == 0) return;
  throw UsageError("nodes of " + std::to_string(per_node) + " ranks cannot hold " + std::to_string(ranks));
}

/// Order of the tiles: rows of tiles by the arrival of their last missing shard; those of one arrival in
/// chapter 16's groups. A kernel parameter.
///
/// In chapter 17 shards arrive in the order of A's rows, round the matrix. Here each node is such a ring, and
/// nodes arrive from right to left, so `first` holds the first row of tiles of each arrival. The rows of
/// tiles of an arrival are contiguous: only a shard's first and last tile may need a neighbour's shard that
/// arrives later.
struct NodeOrder {
  Tiling tiling;         ///< of C
  int arrivals;          ///< number of ranks
  int first[kMaxRanks];  ///< [arrival]: its first row of tiles
  int ready[kMaxRanks];  ///< [arrival]: rows of tiles of this and all earlier arrivals

  static constexpr int kGroup = 8;  ///< rows of tiles in a group, see tensor_core_gemm::place_of()

  /// Number of tiles.
  __host__ __device__ constexpr int tiles() const { return tiling.tiles(); }
  /// Place of tile number `index` of the order.
  __host__ __device__ constexpr TilePlace operator()(int index) const {
    int arrival = 0, before = 0;
    while (index >= ready[arrival] * tiling.along_n) before = ready[arrival++];
    const Tiling batch{ready[arrival] - before, tiling.along_n, tiling.along_k};
    const TilePlace place = tensor_core_gemm::place_of(index - before * tiling.along_n, batch, kGroup);
    return {first[arrival] + place.m, place.n};
  }
};

/// The order of a rank, for tiles of `tile_rows` rows. Throws UsageError for more than kMaxRanks ranks.
inline NodeOrder node_order(const Nodes& nodes, const Shards& shards, Tiling tiling, int tile_rows) {
  if (nodes.ranks > kMaxRanks)
    throw UsageError("a kernel waits for the shards of at most " + std::to_string(kMaxRanks) + " ranks");
  std::vector<int> arrival_of(static_cast<std::size_t>(nodes.ranks));
  for (int arrival = 0; arrival < nodes.ranks; ++arrival)
    arrival_of[static_cast<std::size_t>(nodes.owner(arrival))] = arrival;
  // The arrival that completes the rows of a row of tiles.
  const auto latest = [&](int tile) {
    const int end = std::min((tile + 1) * tile_rows, shards.rows);
    int last = 0;
    for (int row = tile * tile_rows; row < end; row = shards.end(shards.owner(row)))
      last = std::max(last, arrival_of[static_cast<std::size_t>(shards.owner(row))]);
    return last;
  };
  NodeOrder order{tiling, nodes.ranks, {}, {}};
  int seen = 0;
  for (int arrival = 0; arrival < nodes.ranks; ++arrival) {
    const int owner = nodes.owner(arrival), begin = shards.begin(owner), end = shards.end(owner);
    int tile = begin / tile_rows;
    const int behind = begin == end ? tile : (end + tile_rows - 1) / tile_rows;
    while (tile < behind && latest(tile) != arrival) ++tile;
    order.first[arrival] = tile;
    for (; tile < behind && latest(tile) == arrival; ++tile) ++seen;
    order.ready[arrival] = seen;
  }
  return order;
}

}  // namespace overlap::two_nodes
