// Chapter 09: steps 1 and 2 of the sparse all-reduce, from each rank's row numbers to those of all ranks.
// Only row numbers are sent here, a few bytes for each row of thousands: latency decides, not bandwidth. So
// one rank may do the work for all.
//
// Source: "Sparse All-Reduce in PyTorch" (D. MacLeod, Speechmatics), build_local_indices and
// build_global_indices.
#pragma once

#include <nccl.h>

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_select.cuh>

#include <cstddef>
#include <cstdint>

#include "08_sparse_baselines/coalesce.cuh"
#include "09_sparse_v1_nonzero/ranks_agree.cuh"
#include "overlap/gpu/check_nccl.hpp"
#include "overlap/gpu/growing_buffer.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/stream.hpp"

namespace overlap::sparse_nonzero {

/// NCCL's name of a type of row numbers. (nccl_type() has those of elements.)
template <SparseIndex Index>
constexpr ncclDataType_t nccl_index() {
  return sizeof(Index) == 4 ? ncclInt32 : ncclInt64;
}

/// Padding of lists of row numbers after a rank's last row. All its bits are 1.
inline constexpr int kNoRow = -1;

/// The row numbers of all ranks, each once, ascending, on every rank.
template <SparseIndex Index>
class IndexLists {
 public:
  /// For a table of so many rows. Collective. Throws Skip if ranks share a GPU.
  IndexLists(Rank& rank, std::int64_t table_rows, HostWaits& waits)
      : rank_(rank),
        table_rows_(table_rows),
        waits_(waits),
        nccl_(rank.nccl()),
        count_(rank.device(), 1),
        count_on_host_(1) {}

  // ---- Step 1: this rank's row numbers, padded to the longest list of any rank ---------------------------
  /// `indices` [count] ascend; `longest` is the same on all ranks.
  void build_local_indices(const Index* indices, std::int64_t count, std::int64_t longest,
                           cudaStream_t stream) {
    const auto own = static_cast<std::size_t>(count), all = static_cast<std::size_t>(longest);
    Index* list = local_.at_least(all, stream);
    if (own > 0)
      CUDA_CHECK(cudaMemcpyAsync(list, indices, own * sizeof(Index), cudaMemcpyDeviceToDevice, stream));
    // A collective takes the same number of elements from every rank. The padding must not be a row number.
    static_assert(kNoRow == -1, "all bits 1");
    if (all > own) CUDA_CHECK(cudaMemsetAsync(list + own, 0xFF, (all - own) * sizeof(Index), stream));
  }

  // ---- Step 2: the row numbers of all ranks --------------------------------------------------------------
  /// Returns their number; indices() has them. `padded`: whether a rank's list is padded. The host waits for
  /// the number, on rank 0 twice. Collective.
  std::int64_t build_global_indices(std::int64_t longest, bool padded, cudaStream_t stream) {
    gather(longest, stream);
    if (rank_.id() == 0) {
      // The number without the padding goes back to the GPU, for the broadcast.
      count_on_host_[0] = unique(longest * rank_.size(), padded, stream);
      CUDA_CHECK(cudaMemcpyAsync(count_.data(), count_on_host_.data(), count_.bytes(), cudaMemcpyHostToDevice,
                                 stream));
    }
    // Before the list can be broadcast, every rank has to know its size.
    NCCL_CHECK(ncclBroadcast(count_.data(), count_.data(), 1, ncclInt64, 0, nccl_, stream));
    CUDA_CHECK(cudaMemcpyAsync(count_on_host_.data(), count_.data(), count_.bytes(), cudaMemcpyDeviceToHost,
                               stream));
    waits_.wait(stream);
    const std::int64_t count = count_on_host_[0];
    const auto length = static_cast<std::size_t>(count);
    // Rank 0 has the list already, in a buffer that is large enough: this does not reallocate it.
    Index* list = global_.at_least(length, stream);
    NCCL_CHECK(ncclBroadcast(list, list, length, nccl_index<Index>(), 0, nccl_, stream));
    return count;
  }

  /// The list of the last build_global_indices(). Device memory, valid until the next call.
  const Index* indices() const { return global_.data(); }

 private:
  /// Gathers the lists of all ranks on rank 0, concatenated.
  void gather(std::int64_t longest, cudaStream_t stream) {
    const auto length = static_cast<std::size_t>(longest);
    if (rank_.id() == 0) gathered_.at_least(length * static_cast<std::size_t>(rank_.size()), stream);
    // [task gather: who sends what, and where does rank 0 receive it?]
    // In one group: rank 0 receives from all ranks at the same time.
    NCCL_CHECK(ncclGroupStart());
    if (rank_.id() == 0) {
      for (int from = 1; from < rank_.size(); ++from) {
        NCCL_CHECK(ncclRecv(gathered_.data() + static_cast<std::size_t>(from) * length, length,
                            nccl_index<Index>(), from, nccl_, stream));
      }
    } else {
      NCCL_CHECK(ncclSend(local_.data(), length, nccl_index<Index>(), 0, nccl_, stream));
    }
    NCCL_CHECK(ncclGroupEnd());
    if (rank_.id() == 0) {
      CUDA_CHECK(cudaMemcpyAsync(gathered_.data(), local_.data(), length * sizeof(Index),
                                 cudaMemcpyDeviceToDevice, stream));
    }
    // [/task]
  }

  /// On rank 0: the gathered numbers sorted, each once, without the padding. Returns how many.
  std::int64_t unique(std::int64_t gathered, bool padded, cudaStream_t stream) {
    const auto all = static_cast<int>(gathered);
    const auto length = static_cast<std::size_t>(gathered);
    Index* sorted = sorted_.at_least(length, stream);
    Index* list = global_.at_least(length, stream);
    // The sort uses only the bits of row numbers. In these the padding is all ones, which no row number is:
    // it is sorted last.
    sparse_baselines::with_temporary(temporary_, stream, [&](void* temporary, std::size_t& bytes) {
      return cub::DeviceRadixSort::SortKeys(temporary, bytes, gathered_.data(), sorted, all, 0,
                                            sparse_baselines::row_bits(table_rows_), stream);
    });
    sparse_baselines::with_temporary(temporary_, stream, [&](void* temporary, std::size_t& bytes) {
      return cub::DeviceSelect::Unique(temporary, bytes, sorted, list, count_.data(), all, stream);
    });
    CUDA_CHECK(cudaMemcpyAsync(count_on_host_.data(), count_.data(), count_.bytes(), cudaMemcpyDeviceToHost,
                               stream));
    waits_.wait(stream);
    // All padding is reduced to one entry.
    return count_on_host_[0] - (padded ? 1 : 0);
  }

  Rank& rank_;
  std::int64_t table_rows_;
  HostWaits& waits_;
  ncclComm* nccl_;
  GrowingBuffer<Index> local_{rank_}, gathered_{rank_}, sorted_{rank_}, global_{rank_};
  GrowingBuffer<std::byte> temporary_{rank_};
  DeviceBuffer<std::int64_t> count_;
  PinnedBuffer<std::int64_t> count_on_host_;
};

}  // namespace overlap::sparse_nonzero
