// Chapter 14, version 6 with prefetching: while a thread compares its entry of one tile, an asynchronous copy
// brings that of the next tile into shared memory.
//
// Source: "Sparse All-Reduce in PyTorch" (Speechmatics), the end of "v6: CUDA (optimized)". The printed code
// fetches the wrong tile every second time; the page of the experiment explains why.
#pragma once

#include <cuda/pipeline>

#include <cstdint>
#include <stdexcept>

#include "14_sparse_v6_tiled/ordered_search.cuh"
#include "overlap/data/cost.hpp"
#include "overlap/data/sparse.hpp"

namespace overlap::sparse_tiled {

/// Tiles that are present or being copied at a time.
inline constexpr int kStages = 2;

/// Does what ordered_search() does. Each thread copies its own entries, one of each tile, and waits for no
/// other thread: the pipeline is one of a single thread, and no slot is ever read by another.
template <Compare compare, SparseIndex Index>
__global__ void prefetch_search(const Index* local, std::int64_t local_count, const Index* global,
                                std::int64_t global_count, int rows_per_block, std::int32_t* positions) {
  __shared__ BlockRows<Index> block;
  __shared__ Index tiles[kStages][kSweepThreads];
  const std::int64_t first_row = std::int64_t{blockIdx.x} * rows_per_block;
  const int rows = static_cast<int>(min(std::int64_t{rows_per_block}, local_count - first_row));
  take_rows(block, local + first_row, rows, rows_per_block);
  const Index lowest = block.rows[0];

  const std::int64_t begin = first_place(first_row);
  cuda::pipeline<cuda::thread_scope_thread> pipeline = cuda::make_pipeline();
  // ---- A stage is filled: the thread's entry of the step-th tile of this sweep ---------------------------
  const auto fetch = [&](std::int64_t step) {
    pipeline.producer_acquire();
    // [task fetch: from where does the entry of a step come, where does it go, and how many bytes are it?]
    // [blank] (void)step, (void)global;
    const std::int64_t place = begin + step * kSweepThreads;
    // Beyond the end of the list nothing is copied; the empty stage is committed all the same.
    if (place < global_count) {
      cuda::memcpy_async(&tiles[step % kStages][threadIdx.x], global + place,
                         cuda::aligned_size_t<sizeof(Index)>(sizeof(Index)), pipeline);
    }
    // [/task]
    pipeline.producer_commit();
  };

  // ---- The sweep -----------------------------------------------------------------------------------------
  fetch(0);
  for (std::int64_t step = 0; begin + step * kSweepThreads < global_count; ++step) {
    fetch(step + 1);  // into the slot that was read in the step before
    // [task arrive: what must be over before the entry is read, and what need not be?]
    cuda::pipeline_consumer_wait_prior<kStages - 1>(pipeline);  // all stages but the last one
    // [/task]
    const Index entry = tiles[step % kStages][threadIdx.x];
    pipeline.consumer_release();
    if (is_before_rows<compare>(entry, lowest)) continue;
    if (all_matched(block)) break;
    compare_with_rows<compare>(block, rows, entry, begin + step * kSweepThreads, positions + first_row);
  }
  // A copy may still be pending: the block's shared memory must not be released before it has completed.
  cuda::pipeline_consumer_wait_prior<0>(pipeline);
}

/// The search of version 6 with prefetching.
class PrefetchSearch {
 public:
  /// See OrderedSearch. There is none for Compare::kUnmatched: throws std::invalid_argument.
  explicit PrefetchSearch(int rows_per_block = kRowsPerBlock, Compare compare = Compare::kInRange)
      : rows_per_block_(checked_rows_per_block(rows_per_block)), compare_(compare) {
    if (compare == Compare::kUnmatched)
      throw std::invalid_argument("the search that skips matched rows has no form that prefetches");
  }

  /// See RowSearch. At least one local row.
  template <SparseIndex Index>
  void operator()(RowList<Index> local, RowList<Index> global, std::int32_t* positions,
                  cudaStream_t stream) const {
    const auto blocks = static_cast<unsigned>(sweep_blocks(local.count, rows_per_block_));
    if (compare_ == Compare::kInRange) {
      prefetch_search<Compare::kInRange><<<blocks, kSweepThreads, 0, stream>>>(
          local.indices, local.count, global.indices, global.count, rows_per_block_, positions);
    } else {
      prefetch_search<Compare::kAll><<<blocks, kSweepThreads, 0, stream>>>(
          local.indices, local.count, global.indices, global.count, rows_per_block_, positions);
    }
    CUDA_CHECK(cudaGetLastError());
  }

  /// The cost of the search: the same as without prefetching.
  static Cost cost(const sparse_nonzero::SparseCall& call, int rows_per_block = kRowsPerBlock,
                   Compare compare = Compare::kInRange) {
    return OrderedSearch::cost(call, rows_per_block, compare);
  }

 private:
  int rows_per_block_;
  Compare compare_;
};

/// Version 6 with prefetching.
template <SparseIndex Index, Floating T>
using PrefetchSearchAllReduce = sparse_nonzero::SparseAllReduce<Index, T, PrefetchSearch>;

}  // namespace overlap::sparse_tiled
