// Chapter 09: what one call of a sparse all-reduce costs one rank. The pages' cost cards and the tests both
// come from here; each version adds what its search costs (its cost()).
#pragma once

#include <cstddef>
#include <cstdint>

#include "overlap/data/matrix.hpp"
#include "overlap/data/sparse.hpp"
#include "overlap/gpu/element.hpp"

namespace overlap {

/// What decides the cost of one call for one rank.
struct SparseCall {
  int ranks = 1;              ///< P
  int rank = 0;               ///< whose cost
  std::int64_t features = 0;  ///< F
  std::int64_t local = 0;     ///< n_r, different rows of this rank
  std::int64_t most = 0;      ///< the largest n_r of any rank
  std::int64_t global = 0;    ///< G, different rows of all ranks
};

/// The cost. Memory that grows (GrowingBuffer) is taken to have its size already.
struct SparseCost {
  std::int64_t comparisons = 0;  ///< of two row numbers, to find the places of the rank's rows
  std::int64_t launches = 0;     ///< for that: kernels and calls of CUB (which may launch several)
  std::int64_t extra_bytes = 0;  ///< for that: memory beside the places themselves, without CUB's own
  std::int64_t host_waits = 0;   ///< in the whole call
  std::int64_t bytes_in = 0;     ///< in the whole call, from other ranks
  std::int64_t bytes_out = 0;    ///< in the whole call, to other ranks

  /// Equal in all members.
  bool operator==(const SparseCost&) const = default;
};

/// What each rank tells the others first: the members of RankRecord (ranks_agree.cuh).
inline constexpr int kRecordFields = 6;

/// What steps 1, 2 and 4 cost, alike in all versions: no comparison, no launch of a search.
template <SparseIndex Index, Floating T>
SparseCost frame_cost(const SparseCall& call) {
  SparseCost cost;
  // NCCL's ring and its chain, as the virtual GPUs count them too; real NCCL may choose trees, in which the
  // sums over all ranks are the same.
  const bool is_root = call.rank == 0, ends_the_chain = call.rank == call.ranks - 1;
  const auto all_reduce = [&](std::int64_t count, std::size_t element) {
    // By a ring: count / P elements go out in each of 2 (P - 1) steps.
    const auto part = [&](int rank) {
      return balanced_share(count, call.ranks, (rank + call.ranks) % call.ranks).size();
    };
    if (call.ranks == 1) return;
    const auto size = static_cast<std::int64_t>(element);
    cost.bytes_out += size * (2 * count - part(call.rank) - part(call.rank + 1));
    cost.bytes_in += size * (2 * count - part(call.rank - 1) - part(call.rank));
  };
  const auto broadcast = [&](std::int64_t bytes) {  // from rank 0 along a chain
    if (!is_root) cost.bytes_in += bytes;
    if (!ends_the_chain) cost.bytes_out += bytes;
  };
  // In the order of the call:
  if (call.local > 0) ++cost.host_waits;  // coalesce: how many rows there are
  all_reduce(std::int64_t{kRecordFields} * call.ranks, sizeof(std::int64_t));
  ++cost.host_waits;  // how many rows the others have
  if (call.most == 0) return cost;
  const std::int64_t list = call.most * static_cast<std::int64_t>(sizeof(Index));
  (is_root ? cost.bytes_in : cost.bytes_out) += is_root ? (call.ranks - 1) * list : list;
  if (is_root) ++cost.host_waits;  // how many different ones they are
  broadcast(sizeof(std::int64_t));
  ++cost.host_waits;  // the same, on every rank
  broadcast(call.global * static_cast<std::int64_t>(sizeof(Index)));
  all_reduce(call.global * call.features, sizeof(T));
  return cost;
}

}  // namespace overlap
