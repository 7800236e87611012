// Chapter 15, second stage: every rank computes the list of all rows, and where each rank has them. Neither
// rank 0 nor a host is involved: one exchange, and then the same work on every rank, on the same numbers.
//
// What is exchanged is whichever is smaller: a bit for each row of the table, or the row numbers. Bits need
// no sort and no comparison: a row's place is the number of set bits below its own.
#pragma once

#include <cuda_runtime.h>
#include <nccl.h>

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "08_sparse_baselines/coalesce.cuh"
#include "09_sparse_v1_nonzero/index_lists.cuh"
#include "09_sparse_v1_nonzero/ranks_agree.cuh"
#include "15_sparse_beyond/plan_kernels.cuh"
#include "overlap/data/sparse.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/check_nccl.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/gpu/growing_buffer.hpp"
#include "overlap/gpu/launch.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/stream.hpp"

namespace overlap::sparse_beyond {

/// The most ranks, limited by the kernels' parameters.
inline constexpr int kMaxRanks = 16;

/// The sizes of a plan, after the host has waited for it.
struct PlanCounts {
  std::int64_t global = 0;          ///< G, different rows of all ranks
  std::vector<std::int64_t> local;  ///< n_r, of each rank
  std::vector<bool> bad_index;      ///< of each rank
};

/// The rows of all ranks and where each rank has them, on every rank. Collective.
template <SparseIndex Index>
class RowPlan {
 public:
  /// For tables of that shape, with room for shape.entries different rows on each rank. Throws UsageError if
  /// all ranks together could have more than 2^30 rows, Skip if ranks share a GPU.
  RowPlan(Rank& rank, SparseShape shape)
      : rank_(rank),
        table_rows_(shape.rows),
        sizes_(sizes(shape, rank.size())),
        nccl_(rank.nccl()),
        messages_(rank.device(), static_cast<std::size_t>(sizes_.message * rank.size())),
        rows_(rank.device(), static_cast<std::size_t>(sizes_.max_global)),
        places_(rank.device(), static_cast<std::size_t>(sizes_.max_global * rank.size())),
        counts_(rank.device(), 1 + 2 * static_cast<std::size_t>(rank.size())),
        counts_on_host_(counts_.size()),
        built_(rank.device(), cudaEventDisableTiming) {
    const auto ranks = static_cast<std::size_t>(rank.size());
    if (sizes_.bitmaps) {
      below_ =
          DeviceBuffer<std::int32_t>(rank.device(), (ranks + 1) * static_cast<std::size_t>(sizes_.words));
    } else {
      keys_ = DeviceBuffer<Index>(rank.device(), ranks * static_cast<std::size_t>(sizes_.max_local));
      sorted_ = DeviceBuffer<Index>(rank.device(), keys_.size());
    }
  }

  /// Enqueues the plan for this rank's `rows`; `found` is their number, followed by a flag: one of them is
  /// not in the table. Limits the number to the capacity. No wait.
  void build(const Index* rows, std::int32_t* found, cudaStream_t stream) {
    write_message(rows, found, stream);
    // ---- The exchange: the same size from every rank, each at its own place ------------------------------
    NCCL_CHECK(ncclAllGather(message(rank_.id()), messages_.data(), static_cast<std::size_t>(sizes_.message),
                             ncclInt8, nccl_, stream));
    if (sizes_.bitmaps) {
      join_bitmaps(stream);
    } else {
      join_lists(stream);
    }
  }
  /// Copies the counts to the host; wait() waits for that, and for the earlier work of the stream.
  void publish(cudaStream_t stream) {
    CUDA_CHECK(cudaMemcpyAsync(counts_on_host_.data(), counts_.data(), counts_.bytes(),
                               cudaMemcpyDeviceToHost, stream));
    CUDA_CHECK(cudaEventRecord(built_, stream));
  }

  /// The counts that publish() has copied. Does not wait for later work of the stream.
  PlanCounts wait(sparse_nonzero::HostWaits& waits) {
    const cudaStream_t aside = rank_.transfer_stream();
    CUDA_CHECK(cudaStreamWaitEvent(aside, built_));
    waits.wait(aside);
    PlanCounts counts = {.global = counts_on_host_[0], .local = {}, .bad_index = {}};
    for (std::size_t r = 0; r < static_cast<std::size_t>(rank_.size()); ++r) {
      counts.local.push_back(counts_on_host_[1 + 2 * r]);
      counts.bad_index.push_back(counts_on_host_[2 + 2 * r] != 0);
    }
    return counts;
  }

  /// Throws SparseInputError if a rank has an index that is not in the table, or more rows than its capacity.
  /// All ranks check the same counts, and so throw the same.
  void require_room(const PlanCounts& counts) const {
    for (std::size_t r = 0; r < counts.local.size(); ++r) {
      const std::string who = "rank " + std::to_string(r);
      if (counts.bad_index[r]) {
        throw SparseInputError(who + " has an index that is not between 0 and " +
                               std::to_string(table_rows_ - 1));
      }
      if (counts.local[r] > max_local()) {
        throw SparseInputError(who + " has " + std::to_string(counts.local[r]) +
                               " different rows, and there is room for " + std::to_string(max_local()));
      }
    }
  }
  /// Rows of this rank without a place: other than 0 is an error of the plan. Waits for the stream.
  int lost_rows(const PlanCounts& counts, cudaStream_t stream) const {
    if (counts.local.empty()) return 0;
    std::vector<std::int32_t> places(static_cast<std::size_t>(counts.global));
    CUDA_CHECK(cudaMemcpyAsync(places.data(), places_.data() + rank_.id() * max_global(),
                               places.size() * sizeof places[0], cudaMemcpyDeviceToHost, stream));
    rank_.synchronize(stream);
    return static_cast<int>(
        counts.local[static_cast<std::size_t>(rank_.id())] -
        std::count_if(places.begin(), places.end(), [](std::int32_t place) { return place >= 0; }));
  }

  const Index* rows() const { return rows_.data(); }             ///< [G], ascending
  const std::int32_t* places() const { return places_.data(); }  ///< [P][max_global()]: place or -1
  const std::int64_t* global() const { return counts_.data(); }  ///< G, in device memory
  std::int64_t max_global() const { return sizes_.max_global; }  ///< room for G
  std::int64_t max_local() const { return sizes_.max_local; }    ///< room for each n_r
  /// Whether bits are exchanged, and not row numbers.
  bool uses_bitmaps() const { return sizes_.bitmaps; }

  /// The shape, unless Index has no number for the table's last row, or there are more than kMaxRanks ranks:
  /// UsageError. Throws before anything is allocated, so that all ranks can continue together. Collective, as
  /// the communicator is.
  static SparseShape checked(Rank& rank, SparseShape shape) {
    if (rank.size() > kMaxRanks)
      throw UsageError("the kernels' parameters have room for " + std::to_string(kMaxRanks) +
                       " ranks, and there are " + std::to_string(rank.size()));
    if (shape.rows > std::numeric_limits<Index>::max())
      throw UsageError("a table of " + std::to_string(shape.rows) + " rows is too long for indices of " +
                       std::to_string(8 * sizeof(Index)) + " bits");
    rank.nccl();
    return shape;
  }
  /// The capacity for the rows of a rank: shape.entries, at least 1.
  static std::int64_t room(SparseShape shape) { return std::max<std::int64_t>(shape.entries, 1); }
  /// Bytes of one rank's message.
  static std::int64_t message_bytes(SparseShape shape, int ranks) { return sizes(shape, ranks).message; }

 private:
  struct Sizes {
    std::int64_t max_local, max_global;
    std::int64_t words;  // of a bitmap
    bool bitmaps;
    std::int64_t message;  // bytes
  };

  static Sizes sizes(SparseShape shape, int ranks) {
    const std::int64_t local = room(shape);
    if (local > (std::int64_t{1} << 30) / ranks)
      throw UsageError("--entries: " + std::to_string(ranks) + " ranks with room for " +
                       std::to_string(local) + " rows each are more than 2^30 rows");
    const std::int64_t words = (shape.rows - 1) / kWordBits + 1;
    const std::int64_t bitmap = words * std::int64_t{sizeof(Word)};
    const std::int64_t list = local * std::int64_t{sizeof(Index)};
    // The bits of all bitmaps are counted by one scan, whose length CUB has in 32 bits.
    const bool bitmaps = bitmap <= list && (ranks + 1) * words <= INT32_MAX;
    const std::int64_t payload = bitmaps ? bitmap : list;
    return {.max_local = local,
            .max_global = ranks * local,
            .words = words,
            .bitmaps = bitmaps,
            .message = std::int64_t{sizeof(PlanHeader)} + (payload + 15) / 16 * 16};
  }

  std::byte* message(int rank) const { return messages_.data() + rank * sizes_.message; }
  Messages messages() const { return {messages_.data(), sizes_.message, rank_.size()}; }

  // ---- Step 1: this rank's message ---------------------------------------------------------------------
  void write_message(const Index* rows, std::int32_t* found, cudaStream_t stream) {
    CUDA_CHECK(cudaMemsetAsync(message(rank_.id()), sizes_.bitmaps ? 0 : 0xFF,
                               static_cast<std::size_t>(sizes_.message), stream));
    write_header<<<1, 1, 0, stream>>>(messages(), rank_.id(), found, sizes_.max_local);
    CUDA_CHECK(cudaGetLastError());
    if (rows == nullptr) return;
    const unsigned blocks = blocks_for(sizes_.max_local);
    if (sizes_.bitmaps) {
      mark_rows<<<blocks, kBlockThreads, 0, stream>>>(rows, found, sizes_.words,
                                                      messages().words(rank_.id()));
    } else {
      write_list<<<blocks, kBlockThreads, 0, stream>>>(rows, found,
                                                       messages().template list<Index>(rank_.id()));
    }
    CUDA_CHECK(cudaGetLastError());
  }

  // ---- Step 2, from bitmaps ------------------------------------------------------------------------------
  void join_bitmaps(cudaStream_t stream) {
    const unsigned blocks = blocks_for(sizes_.words);
    count_bits<<<blocks, kBlockThreads, 0, stream>>>(messages(), sizes_.words, below_.data());
    CUDA_CHECK(cudaGetLastError());
    // The counts of all bitmaps are contiguous, and one scan serves them all: subtract its value at a
    // bitmap's first word.
    sparse_baselines::with_temporary(temporary_, stream, [&](void* temporary, std::size_t& bytes) {
      return cub::DeviceScan::ExclusiveSum(temporary, bytes, below_.data(), below_.data(),
                                           static_cast<int>(below_.size()), stream);
    });
    list_rows<<<blocks, kBlockThreads, 0, stream>>>(messages(), sizes_.words, below_.data(),
                                                    sizes_.max_global, rows_.data(), places_.data(),
                                                    counts_.data());
    CUDA_CHECK(cudaGetLastError());
  }

  // ---- Step 2, from lists --------------------------------------------------------------------------------
  void join_lists(cudaStream_t stream) {
    const auto all = static_cast<int>(keys_.size());
    const unsigned blocks = blocks_for(all);
    collect_lists<<<blocks, kBlockThreads, 0, stream>>>(messages(), sizes_.max_local, keys_.data());
    CUDA_CHECK(cudaGetLastError());
    sparse_baselines::with_temporary(temporary_, stream, [&](void* temporary, std::size_t& bytes) {
      return cub::DeviceRadixSort::SortKeys(temporary, bytes, keys_.data(), sorted_.data(), all, 0,
                                            sparse_baselines::row_bits(table_rows_), stream);
    });
    sparse_baselines::with_temporary(temporary_, stream, [&](void* temporary, std::size_t& bytes) {
      return cub::DeviceSelect::Unique(temporary, bytes, sorted_.data(), rows_.data(), counts_.data(), all,
                                       stream);
    });
    drop_padding<<<1, 1, 0, stream>>>(messages(), rows_.data(), counts_.data());
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemsetAsync(places_.data(), 0xFF, places_.bytes(), stream));
    find_places<<<blocks, kBlockThreads, 0, stream>>>(messages(), sizes_.max_local, rows_.data(),
                                                      counts_.data(), sizes_.max_global, places_.data());
    CUDA_CHECK(cudaGetLastError());
  }

  Rank& rank_;
  std::int64_t table_rows_;
  Sizes sizes_;
  ncclComm* nccl_;
  DeviceBuffer<std::byte> messages_;   // [P] of sizes_.message bytes
  DeviceBuffer<Index> rows_;           // [max_global]
  DeviceBuffer<std::int32_t> places_;  // [P][max_global]
  DeviceBuffer<std::int64_t> counts_;  // G, then a count and a flag of each rank
  PinnedBuffer<std::int64_t> counts_on_host_;
  Event built_;
  DeviceBuffer<std::int32_t> below_{rank_.device(), 0};  // [P + 1][words]; the last ones of all ranks
  DeviceBuffer<Index> keys_{rank_.device(), 0}, sorted_{rank_.device(), 0};
  GrowingBuffer<std::byte> temporary_{rank_};
};

}  // namespace overlap::sparse_beyond
