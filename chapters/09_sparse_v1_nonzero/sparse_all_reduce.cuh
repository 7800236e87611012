// Chapter 09: what all versions of the sparse all-reduce have in common. They differ in one function.
#pragma once

#include <nccl.h>

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_select.cuh>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "08_sparse_baselines/coalesce.cuh"
#include "overlap/check_nccl.hpp"
#include "overlap/growing_buffer.hpp"
#include "overlap/nccl_type.hpp"
#include "overlap/phase_clock.hpp"
#include "overlap/ranks.hpp"
#include "overlap/sparse.hpp"
#include "overlap/stream.hpp"

namespace overlap {

/// NCCL's name of a type of row numbers.
template <SparseIndex Index>
constexpr ncclDataType_t nccl_index() {
  return sizeof(Index) == 4 ? ncclInt32 : ncclInt64;
}

/// Stands in lists of row numbers behind a rank's last row.
inline constexpr int kNoRow = -1;

/// values_out[positions[j]] = values[j], for all rows j. A row whose position is not that of its own row
/// number is left out and counted.
template <SparseIndex Index, Floating T>
__global__ void scatter_rows(SparseRows<Index, T> local, const Index* global_indices,
                             std::int64_t global_count, const std::int32_t* positions, std::int64_t features,
                             T* values_out, int* lost) {
  for (std::int64_t row = blockIdx.x; row < local.count; row += gridDim.x) {
    const std::int64_t position = positions[row];
    if (position < 0 || position >= global_count || global_indices[position] != local.indices[row]) {
      if (threadIdx.x == 0) atomicAdd(lost, 1);
      continue;
    }
    for (std::int64_t feature = threadIdx.x; feature < features; feature += blockDim.x)
      values_out[position * features + feature] = local.values[row * features + feature];
  }
}

/// The sum over all ranks of a row-sparse gradient, on every rank, without the rows that no rank has.
/// Versions are derived from it. Source: "Sparse All-Reduce in PyTorch" (Speechmatics), steps 1 to 4.
template <SparseIndex Index, Floating T>
class SparseAllReduce {
 public:
  /// For tables of that shape; of shape.entries only versions with fixed capacities take notice. Collective.
  /// Throws Skip if ranks share a GPU.
  SparseAllReduce(Rank& rank, SparseShape shape)
      : rank_(rank),
        shape_(shape),
        coalesce_(rank, shape),
        records_(rank.device(), static_cast<std::size_t>(rank.size()) * kFields),
        records_on_host_(records_.size()),
        count_(rank.device(), 1),
        count_on_host_(1),
        lost_(rank.device(), 1),
        lost_on_host_(1),
        clock_(rank.device()),
        nccl_(rank.nccl()) {
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
  /// reduced.
  SparseRows<Index, T> run(const Index* indices, const T* values, std::int64_t entries, cudaStream_t stream) {
    host_waits_ = 0;
    clock_.start(stream, "coalesce");
    const SparseRows<Index, T> local = coalesce_.run(indices, values, entries, stream);
    if (entries > 0) ++host_waits_;
    clock_.next(stream, "local_indices");
    const std::int64_t most = build_local_indices(local, stream);
    clock_.next(stream, "global_indices");
    const std::int64_t count = most == 0 ? 0 : build_global_indices(most, stream);
    require_room(most, count);
    const SparseRows<Index, T> global{global_indices_.data(), global_values(count, stream), count};
    if (count > 0) {
      write_local_values_to_global_indices(local, global, global_values_.data(), stream);
      clock_.next(stream, "all_reduce");
      all_reduce(count, stream);
    }
    clock_.stop(stream);
    return global;
  }

  /// Where the time of the last call went, on this rank. Only after the stream was waited for.
  std::vector<Phase> phases() const { return clock_.read(); }
  /// How often the last call made the host wait.
  int host_waits() const { return host_waits_; }
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
  /// Makes positions[j] the place of local.indices[j] in the global indices, for each of the rank's rows.
  virtual void find_positions(const SparseRows<Index, T>& local, const SparseRows<Index, T>& global,
                              std::int32_t* positions, cudaStream_t stream) = 0;

  /// Step 3. Writes the rank's rows to their places among the global ones, and zeros to all others.
  virtual void write_local_values_to_global_indices(const SparseRows<Index, T>& local,
                                                    const SparseRows<Index, T>& global, T* global_values,
                                                    cudaStream_t stream) {
    clock_.next(stream, "fill");
    CUDA_CHECK(cudaMemsetAsync(global_values, 0, elements(global.count) * sizeof(T), stream));
    if (local.count == 0) return;
    clock_.next(stream, "map");
    std::int32_t* positions = positions_.at_least(static_cast<std::size_t>(local.count), stream);
    // All bits 1 is -1: a row that finds no place is noticed below.
    CUDA_CHECK(cudaMemsetAsync(positions, 0xFF, static_cast<std::size_t>(local.count) * sizeof(std::int32_t),
                               stream));
    find_positions(local, global, positions, stream);
    clock_.next(stream, "scatter");
    const auto most = static_cast<unsigned>(std::min<std::int64_t>(local.count, 65536));
    scatter_rows<<<most, kCoalesceThreads, 0, stream>>>(local, global.indices, global.count, positions,
                                                        shape_.features, global_values, lost_.data());
    CUDA_CHECK(cudaGetLastError());
  }

  /// Throws SparseInputError if a version cannot work with so many rows. `most_local` is the largest number
  /// of rows of any rank; so all ranks decide alike.
  virtual void require_room(std::int64_t most_local, std::int64_t global) const {
    (void)most_local;
    if (global > INT32_MAX) throw SparseInputError("more than 2^31 - 1 rows come out");
  }

  Rank& rank() const { return rank_; }          ///< whose part it is
  SparseShape shape() const { return shape_; }  ///< of the table
  PhaseClock& clock() { return clock_; }        ///< for phases of a version's own
  int* lost() const { return lost_.data(); }    ///< device memory: counts rows without a place
  /// Values of so many rows of the table.
  std::size_t elements(std::int64_t rows) const {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(shape_.features);
  }
  /// Waits for the stream, and counts that.
  void wait(cudaStream_t stream) {
    ++host_waits_;
    rank_.synchronize(stream);
  }

 private:
  // What each rank tells the others before anything else.
  enum Field { kCount, kBadIndex, kRows, kFeatures, kType, kFields };

  // ---- Step 1: this rank's row numbers, padded to the longest list ---------------------------------------
  /// Returns the largest number of rows of any rank. Throws SparseInputError, on all ranks alike.
  std::int64_t build_local_indices(const SparseRows<Index, T>& local, cudaStream_t stream) {
    // Each rank fills in its record, and zeros for all others: the sum over the ranks has all records.
    std::fill(records_on_host_.begin(), records_on_host_.end(), 0);
    std::int64_t* own = records_on_host_.data() + rank_.id() * kFields;
    own[kCount] = local.count;
    own[kBadIndex] = coalesce_.bad_index();
    own[kRows] = shape_.rows;
    own[kFeatures] = shape_.features;
    own[kType] = 100 * static_cast<std::int64_t>(type_of<T>()) + static_cast<std::int64_t>(sizeof(Index));
    CUDA_CHECK(cudaMemcpyAsync(records_.data(), records_on_host_.data(), records_.bytes(),
                               cudaMemcpyHostToDevice, stream));
    // [task counts: how does each rank learn how many rows the others have?]
    NCCL_CHECK(
        ncclAllReduce(records_.data(), records_.data(), records_.size(), ncclInt64, ncclSum, nccl_, stream));
    // [/task]
    CUDA_CHECK(cudaMemcpyAsync(records_on_host_.data(), records_.data(), records_.bytes(),
                               cudaMemcpyDeviceToHost, stream));
    wait(stream);
    std::int64_t most = 0;
    for (int rank = 0; rank < rank_.size(); ++rank) {
      check_record(rank);
      most = std::max(most, record(rank)[kCount]);
    }
    // A collective takes equally many elements from every rank.
    Index* list = local_indices_.at_least(static_cast<std::size_t>(most), stream);
    const auto count = static_cast<std::size_t>(local.count), all = static_cast<std::size_t>(most);
    static_assert(kNoRow == -1, "all bits 1");
    if (count > 0)
      CUDA_CHECK(
          cudaMemcpyAsync(list, local.indices, count * sizeof(Index), cudaMemcpyDeviceToDevice, stream));
    // [task pad: what stands behind the last row of a rank that has fewer than others?]
    if (all > count) CUDA_CHECK(cudaMemsetAsync(list + count, 0xFF, (all - count) * sizeof(Index), stream));
    // [/task]
    return most;
  }

  const std::int64_t* record(int rank) const { return records_on_host_.data() + rank * kFields; }

  void check_record(int rank) const {
    const std::int64_t *first = record(0), *other = record(rank);
    const std::string who = "rank " + std::to_string(rank);
    if (other[kBadIndex] != 0) {
      throw SparseInputError(who + " has an index that is not between 0 and " +
                             std::to_string(other[kRows] - 1));
    }
    const auto check = [&](Field field, const char* what) {
      if (other[field] == first[field]) return;
      throw SparseInputError(who + " has " + what + " " + std::to_string(other[field]) + ", and rank 0 " +
                             std::to_string(first[field]));
    };
    check(kRows, "a table of rows:");
    check(kFeatures, "features of a row:");
    check(kType, "elements and indices of the types numbered");
  }

  // ---- Step 2: the row numbers of all ranks, each once, ascending ----------------------------------------
  /// Returns how many there are.
  std::int64_t build_global_indices(std::int64_t most, cudaStream_t stream) {
    gather(most, stream);
    if (rank_.id() == 0) count_on_host_[0] = unique(most, stream);
    // Everybody has to know how much memory the list takes before it can come.
    CUDA_CHECK(cudaMemcpyAsync(count_.data(), count_on_host_.data(), count_.bytes(), cudaMemcpyHostToDevice,
                               stream));
    NCCL_CHECK(ncclBroadcast(count_.data(), count_.data(), 1, ncclInt64, 0, nccl_, stream));
    CUDA_CHECK(cudaMemcpyAsync(count_on_host_.data(), count_.data(), count_.bytes(), cudaMemcpyDeviceToHost,
                               stream));
    wait(stream);
    const std::int64_t count = count_on_host_[0];
    // On rank 0 the list is already there, and there is room for it.
    Index* list = global_indices_.at_least(static_cast<std::size_t>(count), stream);
    NCCL_CHECK(
        ncclBroadcast(list, list, static_cast<std::size_t>(count), nccl_index<Index>(), 0, nccl_, stream));
    return count;
  }

  /// The lists of all ranks, one behind the other, to rank 0.
  void gather(std::int64_t most, cudaStream_t stream) {
    const auto length = static_cast<std::size_t>(most);
    if (rank_.id() == 0) gathered_.at_least(length * static_cast<std::size_t>(rank_.size()), stream);
    // [task gather: who sends, who receives, and why in one group?]
    NCCL_CHECK(ncclGroupStart());
    if (rank_.id() == 0) {
      for (int from = 1; from < rank_.size(); ++from) {
        NCCL_CHECK(ncclRecv(gathered_.data() + static_cast<std::size_t>(from) * length, length,
                            nccl_index<Index>(), from, nccl_, stream));
      }
    } else {
      NCCL_CHECK(ncclSend(local_indices_.data(), length, nccl_index<Index>(), 0, nccl_, stream));
    }
    NCCL_CHECK(ncclGroupEnd());
    if (rank_.id() == 0) {
      CUDA_CHECK(cudaMemcpyAsync(gathered_.data(), local_indices_.data(), length * sizeof(Index),
                                 cudaMemcpyDeviceToDevice, stream));
    }
    // [/task]
  }

  /// On rank 0: the gathered numbers sorted, each once, without the padding. Returns how many.
  std::int64_t unique(std::int64_t most, cudaStream_t stream) {
    const auto all = static_cast<int>(most * rank_.size());
    const auto length = static_cast<std::size_t>(all);
    Index* sorted = sorted_.at_least(length, stream);
    Index* list = global_indices_.at_least(length, stream);
    // In the bits that are looked at the padding is all ones, which no row number is: it comes last.
    with_temporary(stream, [&](void* temporary, std::size_t& bytes) {
      return cub::DeviceRadixSort::SortKeys(temporary, bytes, gathered_.data(), sorted, all, 0,
                                            row_bits(shape_.rows), stream);
    });
    with_temporary(stream, [&](void* temporary, std::size_t& bytes) {
      return cub::DeviceSelect::Unique(temporary, bytes, sorted, list, count_.data(), all, stream);
    });
    CUDA_CHECK(cudaMemcpyAsync(count_on_host_.data(), count_.data(), count_.bytes(), cudaMemcpyDeviceToHost,
                               stream));
    wait(stream);
    bool padded = false;
    for (int rank = 0; rank < rank_.size(); ++rank) padded = padded || record(rank)[kCount] < most;
    return count_on_host_[0] - (padded ? 1 : 0);
  }

  template <typename Call>
  void with_temporary(cudaStream_t stream, const Call& call) {
    std::size_t bytes = 0;
    CUDA_CHECK(call(nullptr, bytes));
    CUDA_CHECK(call(temporary_.at_least(bytes, stream), bytes));
  }

  T* global_values(std::int64_t count, cudaStream_t stream) {
    return global_values_.at_least(elements(count), stream);
  }

  // ---- Step 4: the sum -----------------------------------------------------------------------------------
  void all_reduce(std::int64_t count, cudaStream_t stream) {
    // [task all_reduce: how many elements does the all-reduce have?]
    NCCL_CHECK(ncclAllReduce(global_values_.data(), global_values_.data(), elements(count), nccl_type<T>(),
                             ncclSum, nccl_, stream));
    // [/task]
  }

  Rank& rank_;
  SparseShape shape_;
  Coalesce<Index, T> coalesce_;
  DeviceBuffer<std::int64_t> records_;  // [P, kFields]
  PinnedBuffer<std::int64_t> records_on_host_;
  GrowingBuffer<Index> local_indices_{rank_}, gathered_{rank_}, sorted_{rank_}, global_indices_{rank_};
  DeviceBuffer<std::int64_t> count_;
  PinnedBuffer<std::int64_t> count_on_host_;
  GrowingBuffer<std::byte> temporary_{rank_};
  GrowingBuffer<std::int32_t> positions_{rank_};
  GrowingBuffer<T> global_values_{rank_};
  DeviceBuffer<int> lost_;
  PinnedBuffer<int> lost_on_host_;
  PhaseClock clock_;
  int host_waits_ = 0;
  ncclComm* nccl_;
};

}  // namespace overlap
