// Chapter 08: the entries of one gradient that have the same row become one row.
#pragma once

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_run_length_encode.cuh>
#include <cub/device/device_scan.cuh>

#include <bit>
#include <cstddef>
#include <cstdint>

#include "overlap/data/sparse.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/growing_buffer.hpp"
#include "overlap/gpu/launch.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/stream.hpp"

namespace overlap::sparse_baselines {

/// Bits of row numbers up to `rows`: 1 for 1, 23 for 5 million. A sort of only these bits is faster.
inline int row_bits(std::int64_t rows) { return std::bit_width(static_cast<std::uint64_t>(rows)); }

/// CUB's calls come in pairs: the first one, without memory, returns how much the second one needs.
template <typename Call>
void with_temporary(GrowingBuffer<std::byte>& memory, cudaStream_t stream, const Call& call) {
  std::size_t bytes = 0;
  CUDA_CHECK(call(nullptr, bytes));
  CUDA_CHECK(call(memory.at_least(bytes, stream), bytes));
}

/// Numbers the entries 0, 1, 2, ..., and raises `bad` if one of them has no row of the table.
template <SparseIndex Index>
__global__ void number_entries(const Index* indices, std::int64_t entries, std::int64_t rows,
                               std::int32_t* numbers, int* bad) {
  const std::int64_t entry = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (entry >= entries) return;
  numbers[entry] = static_cast<std::int32_t>(entry);
  if (indices[entry] < 0 || indices[entry] >= rows) atomicOr(bad, 1);
}

/// values_out[row] = the sum of the row's entries in their original order, which makes it the same in each
/// run. In f32, rounded once. A block loops over rows, a thread takes every blockDim-th feature.
template <Floating T>
__global__ void sum_entries(const T* values, const std::int32_t* sorted, const std::int32_t* begins,
                            const std::int32_t* lengths, const std::int32_t* count, std::int64_t features,
                            T* values_out) {
  for (std::int64_t row = blockIdx.x; row < *count; row += gridDim.x) {
    const std::int32_t* entries = sorted + begins[row];
    for (std::int64_t feature = threadIdx.x; feature < features; feature += blockDim.x) {
      float sum = static_cast<float>(values[entries[0] * features + feature]);
      for (std::int32_t i = 1; i < lengths[row]; ++i)
        sum += static_cast<float>(values[entries[i] * features + feature]);
      values_out[row * features + feature] = static_cast<T>(sum);
    }
  }
}

/// Sorts a gradient's entries by row and adds up those of one row. On one GPU, no communication. Source:
/// PyTorch's coalesce(), which "Sparse All-Reduce in PyTorch" calls first.
template <SparseIndex Index, Floating T>
class Coalesce {
 public:
  /// For tables of that shape. shape.entries does not matter: memory grows with the calls.
  Coalesce(Rank& rank, SparseShape shape)
      : rank_(rank), shape_(shape), found_(rank.device(), 2), found_on_host_(2) {}

  /// Enqueues everything, and waits for the number of rows, which sizes the buffers. `indices` [entries] in
  /// any order, `values` [entries, F], fewer than 2^31 entries. The result's rows ascend; it is valid until
  /// the next call. If an index is not in the table, bad_index() is true, and the result is invalid.
  SparseRows<Index, T> run(const Index* indices, const T* values, std::int64_t entries, cudaStream_t stream) {
    bad_index_ = false;
    if (entries == 0) return {};
    find(indices, entries, stream);
    sum(values, entries, sums_.at_least(shape_.elements(entries), stream), stream);
    CUDA_CHECK(cudaMemcpyAsync(found_on_host_.data(), found_.data(), found_.bytes(), cudaMemcpyDeviceToHost,
                               stream));
    rank_.synchronize(stream);
    bad_index_ = found_on_host_[1] != 0;
    return {rows_.data(), sums_.data(), found_on_host_[0]};
  }

  // ---- The same in two parts, without a wait ------------------------------------------------------------
  /// Enqueues the search for the rows: found_rows() has them, found() their number. No wait.
  void find(const Index* indices, std::int64_t entries, cudaStream_t stream) {
    CUDA_CHECK(cudaMemsetAsync(found_.data(), 0, found_.bytes(), stream));
    if (entries == 0) return;
    make_room(entries, stream);
    sort(indices, entries, stream);
    find_rows(entries, stream);
  }
  /// Enqueues the sums of the rows that find() has found, to `sums`, which has room for them. `entries` as
  /// there.
  void sum(const T* values, std::int64_t entries, T* sums, cudaStream_t stream) {
    // Not by cub::DeviceReduce::ReduceByKey: its sums of floats differ from run to run (CCCL issue 9995).
    if (entries == 0) return;
    sum_entries<<<blocks_for_rows(entries), kBlockThreads, 0, stream>>>(
        values, sorted_.data(), begins_.data(), lengths_.data(), found_.data(), shape_.features, sums);
    CUDA_CHECK(cudaGetLastError());
  }
  /// Device memory, after find(): the number of rows, followed by a flag: an index is bad.
  std::int32_t* found() const { return found_.data(); }
  /// Device memory, after find(): the rows, ascending. Null before the first call with entries.
  const Index* found_rows() const { return rows_.data(); }
  /// The arguments of sum_entries(), for a caller's own sum, after find() of at least one entry.
  const std::int32_t* sorted_entries() const { return sorted_.data(); }
  const std::int32_t* begins() const { return begins_.data(); }    ///< see sorted_entries()
  const std::int32_t* lengths() const { return lengths_.data(); }  ///< see sorted_entries()

  /// True if an index of the last call was below 0, or not below the table's rows.
  bool bad_index() const { return bad_index_; }

 private:
  // ---- Step 1: the entries' numbers, in the order of their rows ----------------------------------------
  void sort(const Index* indices, std::int64_t entries, cudaStream_t stream) {
    number_entries<<<blocks_for(entries), kBlockThreads, 0, stream>>>(indices, entries, shape_.rows,
                                                                      numbers_.data(), found_.data() + 1);
    CUDA_CHECK(cudaGetLastError());
    // [task sort: which entries come first, and which sort keeps the order of those of one row?]
    // [blank] const std::size_t bytes = sizeof(Index) * static_cast<std::size_t>(entries);
    // [blank] cudaMemcpyAsync(sorted_indices_.data(), indices, bytes, cudaMemcpyDefault, stream);
    // [blank] cudaMemcpyAsync(sorted_.data(), numbers_.data(), entries * 4, cudaMemcpyDefault, stream);
    // A radix sort is stable: entries of one row keep their order.
    with_temporary(temporary_, stream, [&](void* temporary, std::size_t& bytes) {
      return cub::DeviceRadixSort::SortPairs(temporary, bytes, indices, sorted_indices_.data(),
                                             numbers_.data(), sorted_.data(), static_cast<int>(entries), 0,
                                             row_bits(shape_.rows), stream);
    });
    // [/task]
  }

  // ---- Step 2: where each row begins, and how many entries it has --------------------------------------
  void find_rows(std::int64_t entries, cudaStream_t stream) {
    // There are at most as many rows as entries. The lengths beyond the last row are read below: zeros.
    CUDA_CHECK(cudaMemsetAsync(lengths_.data(), 0, static_cast<std::size_t>(entries) * sizeof(std::int32_t),
                               stream));
    // [task rows: how do runs of equal row numbers become rows?]
    with_temporary(temporary_, stream, [&](void* temporary, std::size_t& bytes) {
      return cub::DeviceRunLengthEncode::Encode(temporary, bytes, sorted_indices_.data(), rows_.data(),
                                                lengths_.data(), found_.data(), static_cast<int>(entries),
                                                stream);
    });
    with_temporary(temporary_, stream, [&](void* temporary, std::size_t& bytes) {
      return cub::DeviceScan::ExclusiveSum(temporary, bytes, lengths_.data(), begins_.data(),
                                           static_cast<int>(entries), stream);
    });
    // [/task]
  }

  void make_room(std::int64_t entries, cudaStream_t stream) {
    const auto most = static_cast<std::size_t>(entries);
    for (GrowingBuffer<std::int32_t>* numbers : {&numbers_, &sorted_, &begins_, &lengths_})
      numbers->at_least(most, stream);
    sorted_indices_.at_least(most, stream);
    rows_.at_least(most, stream);
  }

  Rank& rank_;
  SparseShape shape_;
  DeviceBuffer<std::int32_t> found_;  // how many rows, and whether an index is bad
  PinnedBuffer<std::int32_t> found_on_host_;
  bool bad_index_ = false;
  GrowingBuffer<std::int32_t> numbers_{rank_}, sorted_{rank_}, begins_{rank_}, lengths_{rank_};
  GrowingBuffer<Index> sorted_indices_{rank_}, rows_{rank_};
  GrowingBuffer<T> sums_{rank_};
  GrowingBuffer<std::byte> temporary_{rank_};
};

}  // namespace overlap::sparse_baselines
