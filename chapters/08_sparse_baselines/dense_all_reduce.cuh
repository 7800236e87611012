// Chapter 08: the sum of row-sparse gradients as if they were dense. The whole table is reduced, and its
// non-zero rows are searched for afterwards.
//
// Source: "Sparse All-Reduce in PyTorch" (Speechmatics), all_reduce_nccl_dense().
#pragma once

#include <nccl.h>

#include <cub/device/device_select.cuh>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "08_sparse_baselines/agreement.cuh"
#include "08_sparse_baselines/coalesce.cuh"
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

namespace overlap::sparse_baselines {

/// numbers[row] = row.
template <SparseIndex Index>
__global__ void write_row_numbers(Index* numbers, std::int64_t rows) {
  const std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (row < rows) numbers[row] = static_cast<Index>(row);
}

/// table[local.indices[j]] = local.values[j], for all rows j of which no two have the same index: a table of
/// zeros needs no addition. A block loops over rows.
template <SparseIndex Index, Floating T>
__global__ void write_rows(SparseRows<Index, T> local, std::int64_t features, T* table) {
  // [task scatter: where in the table does a row begin, and in how many bits?]
  for (std::int64_t row = blockIdx.x; row < local.count; row += gridDim.x) {
    // A table of 5e6 x 2048 has 1e10 elements: an offset of 32 bits would wrap around at row 1,048,576.
    const std::int64_t begin = static_cast<std::int64_t>(local.indices[row]) * features;
    for (std::int64_t feature = threadIdx.x; feature < features; feature += blockDim.x)
      table[begin + feature] = local.values[row * features + feature];
  }
  // [/task]
}

/// flags[row] = 1 if the row has a non-zero element, else 0. A warp loops over rows, each lane takes every
/// 32nd element. The only pass over the table: the article first writes |x|, which would take a second table.
template <Floating T>
__global__ void flag_nonzero_rows(const T* table, std::int64_t rows, std::int64_t features, char* flags) {
  const std::int64_t warps = std::int64_t{gridDim.x} * (blockDim.x / kWarp);
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (std::int64_t row = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kWarp; row < rows;
       row += warps) {
    // [task nonzero: which elements make a row stay? A NaN must not get lost.]
    // [blank] const bool mine = false;
    bool mine = false;
#pragma unroll 4  // loads that wait for nothing: no lane stops at what it finds
    for (std::int64_t feature = lane; feature < features; feature += kWarp) {
      // |x| > 0 is false for NaN and would lose it; x != 0 is true. And -0 is 0.
      mine |= !(static_cast<float>(table[row * features + feature]) == 0.0F);
    }
    // [/task]
    // One bit of each lane.
    const unsigned votes = __ballot_sync(0xFFFFFFFFU, mine);
    if (lane == 0) flags[row] = votes != 0;
  }
}

/// values[j] = table[indices[j]], for `count` rows.
template <SparseIndex Index, Floating T>
__global__ void read_rows(const T* table, const Index* indices, std::int64_t count, std::int64_t features,
                          T* values) {
  for (std::int64_t row = blockIdx.x; row < count; row += gridDim.x) {
    const std::int64_t begin = static_cast<std::int64_t>(indices[row]) * features;
    for (std::int64_t feature = threadIdx.x; feature < features; feature += blockDim.x)
      values[row * features + feature] = table[begin + feature];
  }
}

/// The sum over all ranks of a row-sparse gradient, on every rank. Rows that add up to zero are not in the
/// result: contributions that cancel, and rows of explicit zeros. (No other algorithm of these chapters
/// loses them.)
template <SparseIndex Index, Floating T>
class DenseAllReduce {
 public:
  /// For the comparison of the result by SparseData and SparseBench.
  static constexpr bool kDropsZeroRows = true;

  /// For tables of that shape, fewer than 2^31 rows. Allocates V x F elements. Collective. Throws
  /// Skip if ranks share a GPU, CudaError if a GPU has too little memory, UsageError for more rows.
  DenseAllReduce(Rank& rank, SparseShape shape)
      : rank_(rank),
        shape_(shape),
        nccl_(rank.nccl()),
        coalesce_(rank, shape),
        table_(rank.device(), shape.elements(shape.rows)),
        numbers_(rank.device(), checked_rows(shape.rows)),
        flags_(rank.device(), numbers_.size()),
        found_(rank.device(), 1),
        found_on_host_(1),
        clock_(rank.device()) {
    write_row_numbers<<<blocks_for(shape.rows), kBlockThreads, 0, rank.stream()>>>(numbers_.data(),
                                                                                   shape.rows);
    CUDA_CHECK(cudaGetLastError());
    rank.synchronize(rank.stream());
  }

  /// One call. `indices` [entries] and `values` [entries, F] are this rank's gradient, in any order; a row
  /// may have several entries. The result, the same on all ranks, has ascending rows; it is valid until the
  /// next call, in the order of `stream`. Waits for the number of its rows. Collective. Throws
  /// SparseInputError on all ranks if the input of one cannot be reduced.
  SparseRows<Index, T> run(const Index* indices, const T* values, std::int64_t entries, cudaStream_t stream) {
    host_waits_ = entries > 0 ? 1 : 0;
    clock_.start(stream, "coalesce");
    const SparseRows<Index, T> local =
        coalesce_.run(indices, values, too_many(entries) ? 0 : entries, stream);
    agree(rank_, record_of<Index, T>(shape_, entries, coalesce_.bad_index()), clock_, stream);
    scatter(local, stream);
    all_reduce(stream);
    const std::int64_t count = find_rows(stream);
    const SparseRows<Index, T> result = gather(count, stream);
    clock_.stop(stream);
    return result;
  }

  /// The phases of the last call on this rank. Only after a wait for the stream.
  std::vector<Phase> phases() const { return clock_.read(); }
  /// How often the last call made the host wait for its GPU.
  int host_waits() const { return host_waits_; }
  /// Rows without a place in the result: none, since the table has all rows.
  int lost_rows(cudaStream_t) const { return 0; }

  /// What a call costs any of so many ranks: the bytes of NCCL's ring, two waits (for the rows of the rank,
  /// and for those of the result), the memory of the table.
  static Cost cost(SparseShape shape, int ranks) {
    const std::int64_t bytes = shape.rows * shape.features * static_cast<std::int64_t>(sizeof(T));
    const std::int64_t moved = 2 * (ranks - 1) * bytes / ranks;
    return {.bytes_out = moved, .bytes_in = moved, .host_waits = 2, .memory = bytes};
  }

 private:
  // ---- Step 1: the rank's rows to their places in a table of zeros ---------------------------------------
  void scatter(const SparseRows<Index, T>& local, cudaStream_t stream) {
    clock_.next(stream, "fill");
    CUDA_CHECK(cudaMemsetAsync(table_.data(), 0, table_.bytes(), stream));
    clock_.next(stream, "scatter");
    if (local.count == 0) return;  // no launch of no blocks
    write_rows<<<blocks_for_rows(local.count), kBlockThreads, 0, stream>>>(local, shape_.features,
                                                                           table_.data());
    CUDA_CHECK(cudaGetLastError());
  }

  // ---- Step 2: the sum of all tables ---------------------------------------------------------------------
  void all_reduce(cudaStream_t stream) {
    clock_.next(stream, "all_reduce");
    // [task all_reduce: how many elements travel, however few rows there are?]
    NCCL_CHECK(
        ncclAllReduce(table_.data(), table_.data(), table_.size(), nccl_type<T>(), ncclSum, nccl_, stream));
    // [/task]
  }

  // ---- Step 3: which rows are not zero? ------------------------------------------------------------------
  /// This rank's rows and those of the others.
  std::int64_t find_rows(cudaStream_t stream) {
    clock_.next(stream, "find");
    const auto rows = static_cast<int>(shape_.rows);
    Index* indices = indices_.at_least(numbers_.size(), stream);
    flag_nonzero_rows<<<blocks_for_rows(shape_.rows), kBlockThreads, 0, stream>>>(
        table_.data(), shape_.rows, shape_.features, flags_.data());
    CUDA_CHECK(cudaGetLastError());
    with_temporary(temporary_, stream, [&](void* temporary, std::size_t& bytes) {
      return cub::DeviceSelect::Flagged(temporary, bytes, numbers_.data(), flags_.data(), indices,
                                        found_.data(), rows, stream);
    });
    CUDA_CHECK(cudaMemcpyAsync(found_on_host_.data(), found_.data(), found_.bytes(), cudaMemcpyDeviceToHost,
                               stream));
    ++host_waits_;
    rank_.synchronize(stream);
    return found_on_host_[0];
  }

  // ---- Step 4: gather these rows -------------------------------------------------------------------------
  SparseRows<Index, T> gather(std::int64_t count, cudaStream_t stream) {
    clock_.next(stream, "gather");
    if (count == 0) return {};
    T* values = values_.at_least(shape_.elements(count), stream);
    read_rows<<<blocks_for_rows(count), kBlockThreads, 0, stream>>>(table_.data(), indices_.data(), count,
                                                                    shape_.features, values);
    CUDA_CHECK(cudaGetLastError());
    return {indices_.data(), values, count};
  }

  static std::size_t checked_rows(std::int64_t rows) {
    if (rows > INT32_MAX) throw UsageError("--rows: dense_nccl takes less than 2^31, as CUB counts them");
    return static_cast<std::size_t>(rows);
  }

  Rank& rank_;
  SparseShape shape_;
  ncclComm* nccl_;
  Coalesce<Index, T> coalesce_;
  DeviceBuffer<T> table_;        // [V, F]
  DeviceBuffer<Index> numbers_;  // [V]: 0, 1, 2, ...
  DeviceBuffer<char> flags_;     // [V]
  DeviceBuffer<std::int32_t> found_;
  PinnedBuffer<std::int32_t> found_on_host_;
  GrowingBuffer<Index> indices_{rank_};
  GrowingBuffer<T> values_{rank_};
  GrowingBuffer<std::byte> temporary_{rank_};
  PhaseClock clock_;
  int host_waits_ = 0;
};

}  // namespace overlap::sparse_baselines
