// Chapter 09: the common part of all versions of the sparse all-reduce. Each version provides one step: its
// search.
//
// Four steps: each rank's row numbers, padded to equal lengths (index_lists.cuh); the row numbers of all
// ranks, each once; every rank's values at the places of their rows among these, zeros elsewhere; the
// all-reduce of what has become a dense matrix of G rows. Versions 1 to 6 differ in the third step: the
// search for the places of a rank's rows.
//
// Source: "Sparse All-Reduce in PyTorch" (D. MacLeod, Speechmatics), steps 1 to 4; the page beside this file
// explains the differences.
#pragma once

#include <nccl.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "08_sparse_baselines/agreement.cuh"
#include "08_sparse_baselines/coalesce.cuh"
#include "09_sparse_v1_nonzero/index_lists.cuh"
#include "09_sparse_v1_nonzero/ranks_agree.cuh"
#include "09_sparse_v1_nonzero/sparse_cost.cuh"
#include "overlap/data/cost.hpp"
#include "overlap/data/sparse.hpp"
#include "overlap/gpu/check_nccl.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/gpu/growing_buffer.hpp"
#include "overlap/gpu/launch.hpp"
#include "overlap/gpu/nccl_type.hpp"
#include "overlap/gpu/phase_clock.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/stream.hpp"

namespace overlap::sparse_nonzero {

// ---- What a version provides ------------------------------------------------------------------------------

/// What a version may use while the all-reduce exists.
struct SparseFrame {
  Rank& rank;         ///< whose part it is
  SparseShape shape;  ///< of the table
  HostWaits& waits;   ///< waits for a stream, and counts that
  PhaseClock& clock;  ///< for phases of a version's own
  int* lost;          ///< device memory: counts rows without a place
};

/// A search: find(local, global, positions, stream) makes positions[j] the place of local.indices[j] among
/// the global row numbers, for each of the rank's rows (one at least). Before, all positions are kNoRow. It
/// is constructed from a SparseFrame, if it needs one, and the version's own arguments. Unsupported arguments
/// are rejected by its check(rank, shape, ...), if it defines one.
template <typename Find, typename Index>
concept RowSearch = requires(Find find, RowList<Index> list, std::int32_t* positions, cudaStream_t stream) {
  find(list, list, positions, stream);
};

/// Replaces the whole third step: write(local, global, global_values, stream) writes the rank's rows to their
/// places among the global ones, and zeros to all others. Version 3 is one.
template <typename Find, typename Index, typename T>
concept RowWriter = requires(Find find, SparseRows<Index, T> rows, T* values, cudaStream_t stream) {
  find.write(rows, rows, values, stream);
};

/// A search with limited capacity: require_room(max_local, global) throws SparseInputError if there are too
/// many rows. `max_local` is the largest number of rows of any rank: all ranks get the same arguments, and so
/// decide alike.
template <typename Find>
concept HasLimits = requires(const Find find, std::int64_t rows) {
  find.require_room(rows, rows);
};

// ---- The common part --------------------------------------------------------------------------------------

/// values_out[positions[j]] = values[j], for all rows j. A row whose position is not that of its own row
/// number is skipped and counted in `lost`. A block loops over rows, a thread takes every blockDim-th
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

/// The sum over all ranks of a row-sparse gradient, on every rank, without the rows that no rank has. Find is
/// a RowSearch, or a RowWriter.
template <SparseIndex Index, Floating T, typename Find>
class SparseAllReduce {
  static_assert(RowSearch<Find, Index> != RowWriter<Find, Index, T>);

 public:
  /// For tables of that shape; only versions with fixed capacities use shape.entries. `more` is passed to
  /// Find's constructor. Collective. Throws UsageError if Index cannot hold the table's last row number, Skip
  /// if ranks share a GPU.
  template <typename... More>
  SparseAllReduce(Rank& rank, SparseShape shape, const More&... more)
      : rank_(rank),
        shape_(checked(rank, shape, more...)),
        nccl_(rank.nccl()),
        coalesce_(rank, shape),
        records_(rank, waits_),
        lists_(rank, shape.rows, waits_),
        lost_(no_rows_lost(rank)),
        lost_on_host_(1),
        clock_(rank.device()),
        find_(make_find({rank, shape, waits_, clock_, lost_.data()}, more...)) {}
  SparseAllReduce(const SparseAllReduce&) = delete;
  SparseAllReduce& operator=(const SparseAllReduce&) = delete;

  /// One call. `indices` [entries] and `values` [entries, F] are this rank's gradient, in any order; a row
  /// may have several entries. The result, the same on all ranks, has each row of any rank once, ascending;
  /// it is valid until the next call. Waits several times for sizes that the host needs; the all-reduce is
  /// only enqueued. Collective. Throws SparseInputError on all ranks if the input of one cannot be reduced;
  /// another call may follow.
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

  /// The phases of the last call on this rank. Only after a wait for the stream.
  std::vector<Phase> phases() const { return clock_.read(); }
  /// How often the last call made the host wait.
  int host_waits() const { return waits_.count(); }
  /// Rows of this rank without a place in the result, in all calls so far: other than 0 is an error of the
  /// version. Waits for the stream.
  int lost_rows(cudaStream_t stream) {
    CUDA_CHECK(
        cudaMemcpyAsync(lost_on_host_.data(), lost_.data(), lost_.bytes(), cudaMemcpyDeviceToHost, stream));
    rank_.synchronize(stream);
    return lost_on_host_[0];
  }
  /// The version's own part.
  const Find& find() const { return find_; }

  /// The cost of one call for a rank. `more`: further arguments of Find's own cost().
  template <typename... More>
  static Cost cost(const SparseCall& call, const More&... more) requires requires {
    Find::cost(call, more...);
  }
  {
    Cost cost = frame_cost<Index, T>(call);
    const Cost search = Find::cost(call, more...);
    cost.host_waits += search.host_waits;
    cost.launches = search.launches;
    cost.comparisons = search.comparisons;
    cost.memory = search.memory;
    return cost;
  }

 private:
  SparseRows<Index, T> reduce(const Index* indices, const T* values, std::int64_t entries,
                              cudaStream_t stream) {
    // ---- Before the first step: each of this rank's rows once --------------------------------------------
    // Step 3 overwrites: it would lose one of two entries of the same row.
    const bool too_many = sparse_baselines::too_many(entries);
    const SparseRows<Index, T> local =
        too_many ? SparseRows<Index, T>{} : coalesce_.run(indices, values, entries, stream);
    if (!too_many && entries > 0) waits_.add_one();

    // ---- Step 1: the sizes of all ranks, and this rank's list --------------------------------------------
    clock_.next(stream, "local_indices");
    const bool bad_index = coalesce_.bad_index();
    records_.exchange({sparse_baselines::record_of<Index, T>(shape_, entries, bad_index), local.count},
                      stream);
    const std::int64_t longest = records_.longest();
    if (longest == 0) return {};  // on all ranks
    lists_.build_local_indices(local.indices, local.count, longest, stream);

    // ---- Step 2: the rows of all ranks -------------------------------------------------------------------
    clock_.next(stream, "global_indices");
    const std::int64_t count = lists_.build_global_indices(longest, records_.any_padding(), stream);
    if constexpr (HasLimits<Find>) find_.require_room(longest, count);

    // ---- Step 3: this rank's values at their places ------------------------------------------------------
    const SparseRows<Index, T> global{lists_.indices(),
                                      global_values_.at_least(shape_.elements(count), stream), count};
    if constexpr (RowWriter<Find, Index, T>) {
      find_.write(local, global, global_values_.data(), stream);
    } else {
      write_local_values_to_global_indices(local, global, global_values_.data(), stream);
    }

    // ---- Step 4: the sum ---------------------------------------------------------------------------------
    clock_.next(stream, "all_reduce");
    // [task all_reduce: how many elements does it have, and how does the result get to all ranks?]
    NCCL_CHECK(ncclAllReduce(global_values_.data(), global_values_.data(), shape_.elements(count),
                             nccl_type<T>(), ncclSum, nccl_, stream));
    // [/task]
    return global;
  }

  /// Step 3, with the version's search. Writes the rank's rows to their places among the global ones, and
  /// zeros to all others.
  void write_local_values_to_global_indices(const SparseRows<Index, T>& local,
                                            const SparseRows<Index, T>& global, T* global_values,
                                            cudaStream_t stream) {
    clock_.next(stream, "fill");
    CUDA_CHECK(cudaMemsetAsync(global_values, 0, shape_.elements(global.count) * sizeof(T), stream));
    clock_.next(stream, "map");
    if (local.count > 0) {
      const auto rows = static_cast<std::size_t>(local.count);
      positions_.at_least(rows, stream);
      // A row that is not found stays kNoRow, which is counted below, and is not written to a place of the
      // previous call.
      CUDA_CHECK(cudaMemsetAsync(positions_.data(), 0xFF, rows * sizeof(std::int32_t), stream));
      find_(local.list(), global.list(), positions_.data(), stream);
    }
    // A rank without rows has this phase, too: the phases of all ranks are compared one by one.
    clock_.next(stream, "scatter");
    if (local.count == 0) return;
    scatter_rows<<<blocks_for_rows(local.count), kBlockThreads, 0, stream>>>(
        local, global.indices, global.count, positions_.data(), shape_.features, global_values, lost_.data());
    CUDA_CHECK(cudaGetLastError());
  }

  /// Checks the shape. Throws before anything is allocated, so that all ranks can continue together.
  template <typename... More>
  static SparseShape checked(Rank& rank, SparseShape shape, const More&... more) {
    if (shape.rows > std::numeric_limits<Index>::max())
      throw UsageError("a table of " + std::to_string(shape.rows) + " rows is too long for indices of " +
                       std::to_string(8 * sizeof(Index)) + " bits");
    if constexpr (requires { Find::check(rank, shape, more...); }) Find::check(rank, shape, more...);
    return shape;
  }
  static DeviceBuffer<int> no_rows_lost(Rank& rank) {
    DeviceBuffer<int> lost(rank.device(), 1);
    CUDA_CHECK(cudaMemsetAsync(lost.data(), 0, lost.bytes(), rank.stream()));
    rank.synchronize(rank.stream());
    return lost;
  }
  template <typename... More>
  static Find make_find(const SparseFrame& frame, const More&... more) {
    if constexpr (std::constructible_from<Find, const SparseFrame&, const More&...>) {
      return Find(frame, more...);
    } else {
      return Find(more...);  // needs nothing of the frame
    }
  }

  Rank& rank_;
  SparseShape shape_;
  ncclComm* nccl_;
  HostWaits waits_{rank_};
  sparse_baselines::Coalesce<Index, T> coalesce_;
  RankRecords records_;
  IndexLists<Index> lists_;
  GrowingBuffer<std::int32_t> positions_{rank_};
  GrowingBuffer<T> global_values_{rank_};
  DeviceBuffer<int> lost_;
  PinnedBuffer<int> lost_on_host_;
  PhaseClock clock_;
  Find find_;  // last: may use all of the above
};

}  // namespace overlap::sparse_nonzero
