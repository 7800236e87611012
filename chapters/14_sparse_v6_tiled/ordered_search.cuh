// Chapter 14, version 6: both lists of row numbers ascend, so most of version 5's comparisons are
// unnecessary. And the roles are exchanged: the threads of a block share a few local rows, and each thread
// compares its own entry of the global list. So there are many more blocks than in version 5, enough to fill
// a GPU.
//
// Source: "Sparse All-Reduce in PyTorch" (D. MacLeod, Speechmatics), "v6: CUDA (optimized)"; the page beside
// this file explains the differences.
#pragma once

#include <cuda/atomic>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "09_sparse_v1_nonzero/sparse_all_reduce.cuh"
#include "overlap/data/cost.hpp"
#include "overlap/data/sparse.hpp"

namespace overlap::sparse_tiled {

/// Threads of a block, and entries of the global list that they compare in one step: a tile.
inline constexpr int kSweepThreads = 256;
/// Local rows of a block, by default: on an H200 fewer are slower, and more hardly faster (the program's
/// sweep).
inline constexpr int kRowsPerBlock = 64;
/// Rows that a thread compares before it branches.
inline constexpr int kRowsAtOnce = 8;

/// Which of its block's rows a thread compares an entry with.
enum class Compare {
  kInRange,  ///< with none if the entry is below the first of them, else with all: version 6 as it runs here
  kAll,      ///< with all, as in the article
  kUnmatched,  ///< with those that have no match yet: the article's rejected try
};

/// What the threads of a block share.
template <SparseIndex Index>
struct BlockRows {
  alignas(16) Index rows[kSweepThreads];  ///< the row numbers; aligned so that wide loads are possible
  int matched[kSweepThreads];             ///< by row, 1 once it has a match. Only for Compare::kUnmatched
  int unmatched;                          ///< rows without a match
};

// ---- Step 1: a block takes its rows ----------------------------------------------------------------------
/// `rows` of rows_per_block exist: the last block may have fewer. Each thread loads one, and the next thread
/// sets the counter: hence rows_per_block < kSweepThreads. Called by all threads; the barrier at its end is
/// the kernel's only one, because after it the threads return at different times.
template <SparseIndex Index>
__device__ inline void take_rows(BlockRows<Index>& block, const Index* local, int rows, int rows_per_block) {
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < rows) block.rows[thread] = local[thread];
  block.matched[thread] = 0;
  // [task counter: how many matches does the block have to find, also the last block?]
  // [blank] (void)rows_per_block;
  // Not rows_per_block: the last block would wait for rows that do not exist, and sweep to the end of the
  // list.
  if (thread == rows_per_block) block.unmatched = rows;
  // [/task]
  __syncthreads();
}

// ---- Step 2: where the sweep begins, and when it ends ----------------------------------------------------
/// The first place of the global list that this thread compares. All local rows are in the global list, and
/// both ascend: at least k local rows precede local row number k. So no row of a block is before place number
/// `first_row`. A tile begins at a multiple of its size, so that the load of a warp stays within one cache
/// line.
__device__ inline std::int64_t first_place(std::int64_t first_row) {
  // [task start: which is the first tile that can hold a match of the block?]
  // [blank] return INT64_MAX - first_row;
  return first_row / kSweepThreads * kSweepThreads + threadIdx.x;
  // [/task]
}

/// True if the entry cannot be one of the block's rows: it is below the first of them, as are all entries up
/// to the block's first match. One comparison instead of one with each row, and no read of the counter.
template <Compare compare, SparseIndex Index>
__device__ inline bool is_before_rows(Index entry, Index lowest) {
  return compare == Compare::kInRange && entry < lowest;
}

/// True once all rows of the block have a match. Other threads decrement the counter without a barrier in
/// between: atomic, so that this is no race; relaxed, because an old value only costs time.
template <SparseIndex Index>
__device__ inline bool all_matched(BlockRows<Index>& block) {
  const cuda::atomic_ref<int, cuda::thread_scope_block> unmatched(block.unmatched);
  return unmatched.load(cuda::memory_order_relaxed) <= 0;
}

// ---- Step 3: a thread compares an entry with the block's rows --------------------------------------------
/// Local row `row` of the block is at `place` of the global list. No two entries are equal: no other thread
/// writes this position, and no row is counted twice.
template <SparseIndex Index>
__device__ inline void match(BlockRows<Index>& block, int row, std::int64_t place, std::int32_t* positions) {
  // [task match: what is to be kept, and what do the other threads of the block have to know?]
  // [blank] (void)block, (void)row, (void)place, (void)positions;
  positions[row] = static_cast<std::int32_t>(place);
  atomicSub(&block.unmatched, 1);
  // [/task]
}

/// True if the entry is one of kRowsAtOnce rows. There is no branch between the comparisons, so the rows are
/// read by few wide loads; all threads of a warp read the same address, which is one access.
template <SparseIndex Index>
__device__ inline bool is_among(Index entry, const Index* rows) {
  bool found = false;
  for (int i = 0; i < kRowsAtOnce; ++i) found |= entry == rows[i];
  return found;
}

/// Searches for `entry`, which is at `place` of the global list, among the block's rows. `positions` [rows]
/// are theirs.
template <Compare compare, SparseIndex Index>
__device__ inline void compare_with_rows(BlockRows<Index>& block, int rows, Index entry, std::int64_t place,
                                         std::int32_t* positions) {
  if constexpr (compare == Compare::kUnmatched) {
    for (int row = 0; row < rows; ++row) {
      // Testing whether a row has its match takes a load, a comparison and a branch: as much as comparing it.
      const cuda::atomic_ref<int, cuda::thread_scope_block> matched(block.matched[row]);
      if (matched.load(cuda::memory_order_relaxed) != 0 || entry != block.rows[row]) continue;
      // Not store(): in machine code that is a plain store, which compute-sanitizer takes for a race.
      matched.exchange(1, cuda::memory_order_relaxed);
      return match(block, row, place, positions);
    }
  } else {
    int row = 0;
    while (row + kRowsAtOnce <= rows && !is_among(entry, block.rows + row)) row += kRowsAtOnce;
    // One by one: the rows that contain it, or the last rows, too few to be compared at once.
    for (; row < rows; ++row)
      if (entry == block.rows[row]) return match(block, row, place, positions);
  }
}

/// positions[j] = the place of local[j] in the global list, for each j < local_count. Both lists ascend, none
/// has a number twice, and each local number is in the global list. Blocks of kSweepThreads threads, each for
/// rows_per_block of the local rows.
template <Compare compare, SparseIndex Index>
__global__ void ordered_search(const Index* local, std::int64_t local_count, const Index* global,
                               std::int64_t global_count, int rows_per_block, std::int32_t* positions) {
  __shared__ BlockRows<Index> block;
  const std::int64_t first_row = std::int64_t{blockIdx.x} * rows_per_block;
  const int rows = static_cast<int>(min(std::int64_t{rows_per_block}, local_count - first_row));
  take_rows(block, local + first_row, rows, rows_per_block);
  const Index lowest = block.rows[0];
  for (std::int64_t place = first_place(first_row); place < global_count; place += kSweepThreads) {
    const Index entry = global[place];
    if (is_before_rows<compare>(entry, lowest)) continue;
    if (all_matched(block)) break;
    compare_with_rows<compare>(block, rows, entry, place, positions + first_row);
  }
}

// ---- The version -----------------------------------------------------------------------------------------
/// Returns `rows_per_block`. Throws std::invalid_argument unless it is 1 to kSweepThreads - 1.
inline int checked_rows_per_block(int rows_per_block) {
  if (rows_per_block >= 1 && rows_per_block < kSweepThreads) return rows_per_block;
  throw std::invalid_argument("rows per block: " + std::to_string(rows_per_block) + " is not between 1 and " +
                              std::to_string(kSweepThreads - 1));
}

/// The number of blocks for so many local rows.
inline std::int64_t sweep_blocks(std::int64_t rows, int rows_per_block) {
  return (rows + rows_per_block - 1) / rows_per_block;
}

/// Comparisons of a search of n local rows that are evenly distributed among the global ones: each block
/// sweeps from its first tile to the tile that has its last row. (The tests' data are uneven; there it is not
/// exact.)
inline std::int64_t sweep_comparisons(std::int64_t local, std::int64_t global, int rows_per_block,
                                      Compare compare) {
  std::int64_t comparisons = 0;
  for (std::int64_t first = 0; first < local; first += rows_per_block) {
    const std::int64_t rows = std::min<std::int64_t>(rows_per_block, local - first);
    const std::int64_t begin = first / kSweepThreads * kSweepThreads;
    const std::int64_t first_match = first * global / local, last_match = (first + rows - 1) * global / local;
    const std::int64_t end = std::min(global, (last_match / kSweepThreads + 1) * kSweepThreads);
    comparisons += compare == Compare::kInRange
                       ? end - begin + (end - first_match) * rows  // with the first, with all
                       : (end - begin) * rows;
  }
  return comparisons;
}

/// The search of version 6: makes use of the order of both lists.
class OrderedSearch {
 public:
  /// Throws std::invalid_argument unless 1 <= rows_per_block < kSweepThreads.
  explicit OrderedSearch(int rows_per_block = kRowsPerBlock, Compare compare = Compare::kInRange)
      : rows_per_block_(checked_rows_per_block(rows_per_block)), compare_(compare) {}

  /// See RowSearch. At least one local row: a grid of no blocks is an error.
  template <SparseIndex Index>
  void operator()(RowList<Index> local, RowList<Index> global, std::int32_t* positions,
                  cudaStream_t stream) const {
    const auto blocks = static_cast<unsigned>(sweep_blocks(local.count, rows_per_block_));
    switch (compare_) {
      case Compare::kInRange:
        ordered_search<Compare::kInRange><<<blocks, kSweepThreads, 0, stream>>>(
            local.indices, local.count, global.indices, global.count, rows_per_block_, positions);
        break;
      case Compare::kAll:
        ordered_search<Compare::kAll><<<blocks, kSweepThreads, 0, stream>>>(
            local.indices, local.count, global.indices, global.count, rows_per_block_, positions);
        break;
      case Compare::kUnmatched:
        ordered_search<Compare::kUnmatched><<<blocks, kSweepThreads, 0, stream>>>(
            local.indices, local.count, global.indices, global.count, rows_per_block_, positions);
        break;
    }
    CUDA_CHECK(cudaGetLastError());
  }

  /// The cost of the search; its comparisons if a rank's rows are evenly distributed among those of all
  /// ranks.
  static Cost cost(const sparse_nonzero::SparseCall& call, int rows_per_block = kRowsPerBlock,
                   Compare compare = Compare::kInRange) {
    return {.launches = call.local > 0 ? 1 : 0,
            .comparisons = sweep_comparisons(call.local, call.global, rows_per_block, compare)};
  }

 private:
  int rows_per_block_;
  Compare compare_;
};

/// Version 6.
template <SparseIndex Index, Floating T>
using OrderedSearchAllReduce = sparse_nonzero::SparseAllReduce<Index, T, OrderedSearch>;

}  // namespace overlap::sparse_tiled
