// Chapter 09: the cost of one call of a sparse all-reduce for one rank. The pages' cost cards and the tests
// both come from here; each version adds the cost of its search (its cost()). NCCL's messages are not
// counted.
#pragma once

#include <cstddef>
#include <cstdint>

#include "overlap/data/cost.hpp"
#include "overlap/data/matrix.hpp"
#include "overlap/data/sparse.hpp"
#include "overlap/gpu/element.hpp"

namespace overlap::sparse_nonzero {

using overlap::SparseCall;

/// What each rank sends to the others first: a RankRecord (ranks_agree.cuh), in numbers of 64 bits.
inline constexpr int kRecordFields = 6;

/// The cost of steps 1, 2 and 4, the same in all versions: the bytes of the whole call, and the waits common
/// to all versions. No launches and no memory: those of a cost card are the search's. Memory that grows
/// (GrowingBuffer) is taken to have its size already.
template <SparseIndex Index, Floating T>
Cost frame_cost(const SparseCall& call) {
  Cost cost;
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

}  // namespace overlap::sparse_nonzero
