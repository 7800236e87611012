// Chapter 15, third stage by copy engines: rank q owns the q-th P-th of the rows of all. A rank's rows
// ascend, so those of one owner are contiguous: one copy for each owner, directly from the gradient, without
// packing. The owner adds them up, and copies its range of the result to all others. Of G rows a rank
// receives about N / P - n_r / P and G (P - 1) / P: more than with contributors as owners, where few ranks
// have the same rows; but no multiprocessor waits for another GPU's memory.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <vector>

#include "15_sparse_beyond/planned_all_reduce.cuh"
#include "overlap/data/cost.hpp"
#include "overlap/data/matrix.hpp"
#include "overlap/data/sparse.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/launch.hpp"
#include "overlap/gpu/peer_buffer.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/ring.hpp"
#include "overlap/gpu/signals.hpp"
#include "overlap/gpu/stream.hpp"

namespace overlap::sparse_beyond {

/// The first of the rows of all that owner `owner` adds up; that of owner P is G.
__host__ __device__ constexpr std::int64_t range_begin(std::int64_t global, int ranks, int owner) {
  return global * owner / ranks;
}

/// begins[rank * (P + 1) + owner] = the first of the rank's rows that this owner adds up, or how many rows it
/// has. Block (owner, rank): its threads look for the first row of the range, or behind it, that the rank
/// has.
__global__ inline void find_ranges(const std::int32_t* places, const std::int64_t* counts, std::int64_t most,
                                   int ranks, std::int64_t* begins) {
  __shared__ unsigned long long first;
  const int owner = static_cast<int>(blockIdx.x), rank = static_cast<int>(blockIdx.y);
  const std::int64_t global = counts[0], own = counts[1 + 2 * rank];
  if (threadIdx.x == 0) first = static_cast<unsigned long long>(own);
  __syncthreads();
  for (std::int64_t g = range_begin(global, ranks, owner) + threadIdx.x; g < global; g += blockDim.x) {
    const std::int32_t place = places[rank * most + g];
    if (place < 0) continue;
    atomicMin(&first, static_cast<unsigned long long>(place));
    break;  // this thread's next ones are larger
  }
  __syncthreads();
  if (threadIdx.x == 0) begins[rank * (ranks + 1) + owner] = static_cast<std::int64_t>(first);
}

/// The slots of an owner: the rows of rank r in its range begin at slots + r * pitch, with the rank's row
/// begins[r].
template <Floating T>
struct RangeSlots {
  const T* slots;                  ///< of rank 0
  std::int64_t pitch;              ///< elements from one rank's to the next
  int ranks;                       ///< how many
  std::int64_t begins[kMaxRanks];  ///< by rank
};

/// results[g] = the sum of row g over the ranks that have it, for all rows of a range, in the order of the
/// ranks, in f32, rounded once. A block loops over rows.
template <Floating T>
__global__ void add_range(RangeSlots<T> from, const std::int32_t* places, std::int64_t most,
                          std::int64_t begin, std::int64_t end, std::int64_t features, T* results) {
  for (std::int64_t g = begin + blockIdx.x; g < end; g += gridDim.x) {
    for (std::int64_t feature = threadIdx.x; feature < features; feature += blockDim.x) {
      float sum = 0;
      bool any = false;
      for (int rank = 0; rank < from.ranks; ++rank) {
        const std::int64_t place = places[rank * most + g];
        if (place < 0) continue;
        const T* row = from.slots + rank * from.pitch + (place - from.begins[rank]) * features;
        const float value = static_cast<float>(row[feature]);
        sum = any ? sum + value : value;  // so that a single -0 stays one
        any = true;
      }
      results[g * features + feature] = static_cast<T>(sum);
    }
  }
}

/// Each P-th of the rows is summed by one rank; copy engines move the rows.
template <SparseIndex Index, Floating T>
class RangeOwners {
 public:
  /// See WayToAdd. Throws as PeerBuffer and Signals do.
  RangeOwners(Rank& rank, SparseShape shape, std::int64_t max_local, std::int64_t max_global)
      : rank_(rank),
        ring_(rank),
        shape_(shape),
        pitch_(static_cast<std::int64_t>(shape.elements(max_local))),
        slots_(rank, static_cast<std::size_t>(rank.size()) * shape.elements(max_local)),
        results_(rank, shape.elements(max_global)),
        local_(rank.device(), shape.elements(max_local)),
        begins_(rank.device(), static_cast<std::size_t>(rank.size() * (rank.size() + 1))),
        begins_on_host_(begins_.size()),
        signals_(rank, 2 * rank.size()) {
    load_kernel(add_range<T>);
    rank.barrier();  // no stream waits before all ranks have loaded their kernels
  }

  T* local_sums() const { return local_.data(); }  ///< see WayToAdd

  /// See WayToAdd. The sizes of the host's copies arrive with the plan's counts.
  void plan_more(RowPlan<Index>& plan, cudaStream_t stream) {
    const auto ranks = static_cast<unsigned>(rank_.size());
    find_ranges<<<dim3(ranks + 1, ranks), kBlockThreads, 0, stream>>>(
        plan.places(), plan.global(), plan.max_global(), rank_.size(), begins_.data());
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpyAsync(begins_on_host_.data(), begins_.data(), begins_.bytes(),
                               cudaMemcpyDeviceToHost, stream));
  }
  void add(RowPlan<Index>&, cudaStream_t) const {}  ///< nothing: no copy's size is known yet

  /// See WayToAdd.
  SparseRows<Index, T> finish(RowPlan<Index>& plan, const PlanCounts& counts, cudaStream_t stream) {
    signals_.begin_call();
    // ---- This rank's rows to their owners, its right neighbour first: each is sent to by one at a time ----
    for (int i = 1; i <= rank_.size(); ++i) {  // and itself last
      const int owner = ring_.at(i);
      // [task send: which rows are the owner's, and where does it expect this rank's?]
      const std::int64_t begin = begin_of(rank_.id(), owner), end = begin_of(rank_.id(), owner + 1);
      copy(slots_.on(owner) + rank_.id() * pitch_, local_.data() + begin * shape_.features, end - begin,
           stream);
      // [/task]
      if (owner != rank_.id()) signals_.raise(owner, kSent * rank_.size() + rank_.id(), stream);
    }
    await(kSent, stream);
    // ---- Sums of its range, and these to all others -------------------------------------------------------
    const std::int64_t begin = range_begin(counts.global, rank_.size(), rank_.id());
    const std::int64_t end = range_begin(counts.global, rank_.size(), rank_.id() + 1);
    if (begin < end) {
      RangeSlots<T> from = {slots_.local(), pitch_, rank_.size(), {}};
      for (int rank = 0; rank < rank_.size(); ++rank) from.begins[rank] = begin_of(rank, rank_.id());
      add_range<<<blocks_for_rows(end - begin), kBlockThreads, 0, stream>>>(
          from, plan.places(), plan.max_global(), begin, end, shape_.features, results_.local());
      CUDA_CHECK(cudaGetLastError());
    }
    for (int i = 1; i < rank_.size(); ++i) {
      // [task spread: which rows of the result has this rank added up, and where do the others want them?]
      const std::int64_t first = begin * shape_.features;
      copy(results_.on(ring_.at(i)) + first, results_.local() + first, end - begin, stream);
      // [/task]
      signals_.raise(ring_.at(i), kAdded * rank_.size() + rank_.id(), stream);
    }
    await(kAdded, stream);
    return {plan.rows(), results_.local(), counts.global};
  }

  /// The cost of the sums of a call: `rows` [P][P], the rows of each rank that each owner sums.
  static Cost cost(const SparseCall& call, const std::vector<std::vector<std::int64_t>>& rows = {}) {
    const std::int64_t row = call.features * std::int64_t{sizeof(T)};
    const std::int64_t owned =
        range_begin(call.global, call.ranks, call.rank + 1) - range_begin(call.global, call.ranks, call.rank);
    Cost cost = {.bytes_out = (call.ranks - 1) * owned * row,
                 .bytes_in = (call.global - owned) * row,
                 .launches = owned > 0 ? 1 : 0};
    const auto own = static_cast<std::size_t>(call.rank);
    for (std::size_t other = 0; other < rows.size(); ++other) {
      if (other == own) continue;
      cost.bytes_out += rows[own][other] * row;
      cost.bytes_in += rows[other][own] * row;
    }
    return cost;
  }

 private:
  /// The first of the rank's rows that this owner adds up; how many it has, for owner P.
  std::int64_t begin_of(int rank, int owner) const {
    return begins_on_host_[static_cast<std::size_t>(rank * (rank_.size() + 1) + owner)];
  }

  void copy(T* to, const T* from, std::int64_t rows, cudaStream_t stream) {
    if (rows > 0)
      CUDA_CHECK(cudaMemcpyAsync(to, from, shape_.elements(rows) * sizeof(T), cudaMemcpyDefault, stream));
  }

  /// All others' signals of this kind.
  void await(int kind, cudaStream_t stream) {
    for (int i = 1; i < rank_.size(); ++i) signals_.await(kind * rank_.size() + ring_.at(i), stream);
  }

  static constexpr int kSent = 0, kAdded = 1;  // signals 0 to P - 1, and P to 2 P - 1

  Rank& rank_;
  Ring ring_;
  SparseShape shape_;
  std::int64_t pitch_;                 // elements of a slot
  PeerBuffer<T> slots_;                // [P][max_local, F]: what each rank has sent
  PeerBuffer<T> results_;              // [max_global, F]
  DeviceBuffer<T> local_;              // [max_local, F]
  DeviceBuffer<std::int64_t> begins_;  // [P][P + 1]
  PinnedBuffer<std::int64_t> begins_on_host_;
  Signals signals_;  // [kind][raising rank]
};

/// Planned by every rank, added up by ranges, moved by copy engines.
template <SparseIndex Index, Floating T>
using RangeOwnersAllReduce = PlannedAllReduce<Index, T, RangeOwners>;

}  // namespace overlap::sparse_beyond
