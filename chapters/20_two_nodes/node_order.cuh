// Chapter 20: ranks in nodes, whose shards reach a rank in which order, and the order of tiles that follows
// from it.
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

/// The ranks in nodes of equally many, as one of them sees it. Node i has the ranks from i * per_node on.
struct Nodes {
  int rank;      ///< who sees it
  int ranks;     ///< in all nodes
  int per_node;  ///< in each of them

  constexpr int count() const { return ranks / per_node; }  ///< how many nodes there are
  constexpr int node() const { return rank / per_node; }    ///< the rank's
  constexpr int local() const { return rank % per_node; }   ///< the rank's number in its node
  /// The rank so many nodes further to the right and so many numbers further in its node, each round in a
  /// ring; negative ones to the left.
  constexpr int at(int nodes, int locals) const {
    const auto round = [](int place, int size) { return (place % size + size) % size; };
    return round(node() + nodes, count()) * per_node + round(local() + locals, per_node);
  }
  /// Whose shard comes as number `arrival`; 0 is its own. First the own node's, from the rank's number on:
  /// each rank pushes to the left. Then those of the next node to the left, along the own rail, then from the
  /// others of the own node, who got them along theirs; and so on.
  constexpr int owner(int arrival) const { return at(-(arrival / per_node), arrival % per_node); }
  /// True if the rank is in the same node.
  constexpr bool is_near(int other) const { return other / per_node == node(); }
};

/// Throws UsageError unless `ranks` ranks make nodes of `per_node` each.
inline void require_nodes(int ranks, int per_node) {
  if (per_node >= 1 && ranks % per_node == 0) return;
  throw UsageError("nodes of " + std::to_string(per_node) + " ranks cannot hold " + std::to_string(ranks));
}

/// The order of the tiles: rows of tiles as their last missing shard arrives, those of one arrival in the
/// groups of chapter 16. The kernel gets it as a parameter.
///
/// In chapter 17 shards come in the order in which they lie in A, but for the turn at its end. Here each node
/// is such a ring of its own, and nodes come from right to left; so every arrival says where its rows of
/// tiles begin. They always lie together: a shard's first and last tile may have to wait for a neighbour that
/// comes later, what is between them waits for no one else.
struct NodeOrder {
  Tiling tiling;         ///< of C
  int arrivals;          ///< one for each rank
  int first[kMaxRanks];  ///< the first row of tiles that can be computed after 1, 2, ... arrivals, not
                         ///< before
  int ready[kMaxRanks];  ///< how many rows of tiles there are until then, all arrivals together

  static constexpr int kGroup = 8;  ///< rows of tiles in a group, see tensor_core_gemm::place_of()

  /// How many tiles there are.
  __host__ __device__ constexpr int tiles() const { return tiling.tiles(); }
  /// Where the tile lies that is taken as number `index`.
  __host__ __device__ constexpr TilePlace operator()(int index) const {
    int arrival = 0, before = 0;
    while (index >= ready[arrival] * tiling.along_n) before = ready[arrival++];
    const Tiling batch{ready[arrival] - before, tiling.along_n, tiling.along_k};
    const TilePlace place = tensor_core_gemm::place_of(index - before * tiling.along_n, batch, kGroup);
    return {first[arrival] + place.m, place.n};
  }
};

/// The order in which the rank takes tiles of `tile_rows` rows. Throws UsageError for more than kMaxRanks
/// ranks.
inline NodeOrder node_order(const Nodes& nodes, const Shards& shards, Tiling tiling, int tile_rows) {
  if (nodes.ranks > kMaxRanks)
    throw UsageError("a kernel waits for the shards of at most " + std::to_string(kMaxRanks) + " ranks");
  std::vector<int> arrival_of(static_cast<std::size_t>(nodes.ranks));
  for (int arrival = 0; arrival < nodes.ranks; ++arrival)
    arrival_of[static_cast<std::size_t>(nodes.owner(arrival))] = arrival;
  // After which arrival all rows of that row of tiles are here.
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
