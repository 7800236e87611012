// Chapter 09: what all versions of the sparse all-reduce have in common. They differ in one function.
//
// Four steps: each rank's row numbers, padded to equal lengths (index_lists.cuh); the row numbers of all
// ranks, each once; every rank's values at the places of their rows among these, zeros elsewhere; the
// all-reduce of what has become a dense matrix of G rows. Versions 1 to 6 differ in the third step: how a
// rank finds the places of its rows.
//
// Source: "Sparse All-Reduce in PyTorch" (D. MacLeod, Speechmatics), steps 1 to 4; where this differs from
// it, the page beside this file says why.
#pragma once

#include <nccl.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "08_sparse_baselines/coalesce.cuh"
#include "09_sparse_v1_nonzero/index_lists.cuh"
#include "09_sparse_v1_nonzero/ranks_agree.cuh"
#include "09_sparse_v1_nonzero/sparse_cost.cuh"
#include "overlap/data/sparse.hpp"
#include "overlap/gpu/check_nccl.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/gpu/growing_buffer.hpp"
#include "overlap/gpu/nccl_type.hpp"
#include "overlap/gpu/phase_clock.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/stream.hpp"

namespace overlap {

/// values_out[positions[j]] = values[j], for all rows j. A row whose position is not that of its own row
/// number is left out and counted in `lost`. A block takes a row after the other, a thread every blockDim-th
/// feature.
template <SparseIndex Index, Floating T>
__global__ void scatter_rows(SparseRows<Index, T> local, const Index* global_indices,
                             std::int64_t global_count, const std::int32_t* positions, std::int64_t features,
                             T* values_out, int* lost) {
  for (std::int64_t row = blockIdx.x; row < local.count; row += gridDim.x) {
    // 64 bits: a row number times F passes 2^31 from row 1,048,576 on, at the article's F of 2048.
    const std::int64_t position = positions[row];
    if (position < 0 || position >= global_count || global_indices[position] != local.indices[row]) {
      if (threadIdx.x == 0) atomicAdd(lost, 1);
      continue;
    }
    // [task scatter: where do the elements of this row come from, and where do they go?]
    for (std::int64_t feature = threadIdx.x; feature < features; feature += blockDim.x)
      values_out[position * features + feature] = local.values[row * features + feature];
    // [/task]
  }
}

/// The sum over all ranks of a row-sparse gradient, on every rank, without the rows that no rank has.
/// Versions are derived from it.
template <SparseIndex Index, Floating T>
class SparseAllReduce {
 public:
  /// For tables of that shape; of shape.entries only versions with fixed capacities take notice. Collective.
  /// Throws UsageError if Index has no number for the table's last row, Skip if ranks share a GPU.
  SparseAllReduce(Rank& rank, SparseShape shape)
      : rank_(rank),
        shape_(checked(shape)),
        nccl_(rank.nccl()),
        coalesce_(rank, shape),
        records_(rank, waits_),
        lists_(rank, shape.rows, waits_),
        lost_(rank.device(), 1),
        lost_on_host_(1),
        clock_(rank.device()) {
    CUDA_CHECK(cudaMemsetAsync(lost_.data(), 0, lost_.bytes(), rank.stream()));
    rank.synchronize(rank.stream());
  }
  virtual ~SparseAllReduce() = default;
  SparseAllReduce(const SparseAllReduce&) = delete;
  SparseAllReduce& operator=(const SparseAllReduce&) = delete;

  /// One call. `indices` [entries] and `values` [entries, F] are this rank's gradient, in any order, a row as
  /// often as it likes. The result, the same on all ranks, has each row of any rank once, ascending; it is
  /// valid until the next call. Waits several times for what the host has to know; the all-reduce is only
  /// enqueued. Collective. Throws SparseInputError on all ranks if one of them was given what cannot be
  /// reduced; the next call may follow all the same.
  SparseRows<Index, T> run(const Index* indices, const T* values, std::int64_t entries, cudaStream_t stream) {
    waits_.reset();
    clock_.start(stream, "coalesce");
    try {
      const SparseRows<Index, T> global = reduce(indices, values, entries, stream);
      clock_.stop(stream);
      return global;
    } catch (const SparseInputError&) {
      clock_.stop(stream);
      throw;
    }
  }

  /// Where the time of the last call went, on this rank. Only after the stream was waited for.
  std::vector<Phase> phases() const { return clock_.read(); }
  /// How often the last call made the host wait.
  int host_waits() const { return waits_.count(); }
  /// How many of this rank's rows found no place in the result of any call so far: not 0 is an error of the
  /// version. Waits for the stream.
  int lost_rows(cudaStream_t stream) {
    CUDA_CHECK(
        cudaMemcpyAsync(lost_on_host_.data(), lost_.data(), lost_.bytes(), cudaMemcpyDeviceToHost, stream));
    rank_.synchronize(stream);
    return lost_on_host_[0];
  }

 protected:
  // ---- What versions may change --------------------------------------------------------------------------
  /// Makes positions[j] the place of local.indices[j] in the global indices, for each of the rank's rows (one
  /// at least). Before, all positions are kNoRow.
  virtual void find_positions(const SparseRows<Index, T>& local, const SparseRows<Index, T>& global,
                              std::int32_t* positions, cudaStream_t stream) = 0;

  /// Step 3. Writes the rank's rows to their places among the global ones, and zeros to all others.
  virtual void write_local_values_to_global_indices(const SparseRows<Index, T>& local,
                                                    const SparseRows<Index, T>& global, T* global_values,
                                                    cudaStream_t stream) {
    clock_.next(stream, "fill");
    CUDA_CHECK(cudaMemsetAsync(global_values, 0, elements(global.count) * sizeof(T), stream));
    clock_.next(stream, "map");
    if (local.count > 0) {
      const auto rows = static_cast<std::size_t>(local.count);
      positions_.at_least(rows, stream);
      // A row that is not found is noticed below, and does not go where the call before had one.
      CUDA_CHECK(cudaMemsetAsync(positions_.data(), 0xFF, rows * sizeof(std::int32_t), stream));
      find_positions(local, global, positions_.data(), stream);
    }
    // A rank without rows has this phase, too: the phases of all ranks are compared one by one.
    clock_.next(stream, "scatter");
    if (local.count == 0) return;
    const auto blocks = static_cast<unsigned>(std::min<std::int64_t>(local.count, 65536));
    scatter_rows<<<blocks, kCoalesceThreads, 0, stream>>>(
        local, global.indices, global.count, positions_.data(), shape_.features, global_values, lost_.data());
    CUDA_CHECK(cudaGetLastError());
  }

  /// Throws SparseInputError if a version cannot work with so many rows. `most_local` is the largest number
  /// of rows of any rank: all ranks are asked the same, and so decide alike.
  virtual void require_room(std::int64_t most_local, std::int64_t global) const {
    (void)most_local, (void)global;
  }

  Rank& rank() const { return rank_; }                     ///< whose part it is
  SparseShape shape() const { return shape_; }             ///< of the table
  PhaseClock& clock() { return clock_; }                   ///< for phases of a version's own
  int* lost() const { return lost_.data(); }               ///< device memory: counts rows without a place
  void wait(cudaStream_t stream) { waits_.wait(stream); }  ///< waits for the stream, and counts that
  /// How many values so many rows of the table have.
  std::size_t elements(std::int64_t rows) const {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(shape_.features);
  }

 private:
  static SparseShape checked(SparseShape shape) {
    if (shape.rows > std::numeric_limits<Index>::max())
      throw UsageError("a table of " + std::to_string(shape.rows) + " rows is too long for indices of " +
                       std::to_string(8 * sizeof(Index)) + " bits");
    return shape;
  }

  SparseRows<Index, T> reduce(const Index* indices, const T* values, std::int64_t entries,
                              cudaStream_t stream) {
    // ---- Before the first step: each of this rank's rows once --------------------------------------------
    // Step 3 overwrites: of two entries of one row it would lose one.
    const bool too_many = entries < 0 || entries > INT32_MAX;
    const SparseRows<Index, T> local =
        too_many ? SparseRows<Index, T>{} : coalesce_.run(indices, values, entries, stream);
    if (!too_many && entries > 0) waits_.add_one();

    // ---- Step 1: what all ranks have, and this rank's list -----------------------------------------------
    clock_.next(stream, "local_indices");
    const RankRecord own = {
        .local = local.count,
        .too_many = too_many,
        .bad_index = coalesce_.bad_index(),
        .table_rows = shape_.rows,
        .features = shape_.features,
        .types = 16 * static_cast<std::int64_t>(type_of<T>()) + std::int64_t{sizeof(Index)}};
    records_.exchange(own, stream);
    const std::int64_t longest = records_.longest();
    if (longest == 0) return {};  // on all ranks
    lists_.build_local_indices(local.indices, local.count, longest, stream);

    // ---- Step 2: the rows of all ranks -------------------------------------------------------------------
    clock_.next(stream, "global_indices");
    const std::int64_t count = lists_.build_global_indices(longest, records_.any_padding(), stream);
    require_room(longest, count);

    // ---- Step 3: this rank's values at their places ------------------------------------------------------
    const SparseRows<Index, T> global{lists_.indices(), global_values_.at_least(elements(count), stream),
                                      count};
    write_local_values_to_global_indices(local, global, global_values_.data(), stream);

    // ---- Step 4: the sum ---------------------------------------------------------------------------------
    clock_.next(stream, "all_reduce");
    // [task all_reduce: how many elements does the all-reduce have, and how does the result get to all
    // ranks?]
    NCCL_CHECK(ncclAllReduce(global_values_.data(), global_values_.data(), elements(count), nccl_type<T>(),
                             ncclSum, nccl_, stream));
    // [/task]
    return global;
  }

  Rank& rank_;
  SparseShape shape_;
  ncclComm* nccl_;
  HostWaits waits_{rank_};
  Coalesce<Index, T> coalesce_;
  RankRecords records_;
  IndexLists<Index> lists_;
  GrowingBuffer<std::int32_t> positions_{rank_};
  GrowingBuffer<T> global_values_{rank_};
  DeviceBuffer<int> lost_;
  PinnedBuffer<int> lost_on_host_;
  PhaseClock clock_;
};

}  // namespace overlap
