// Chapter 12, version 4: all local rows against all global ones at once, in a matrix of bytes, as torch.eq
// does by broadcasting; then the place of the one true entry of each of its rows, as argmax does.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "09_sparse_v1_nonzero/sparse_all_reduce.cuh"
#include "overlap/data/cost.hpp"
#include "overlap/data/sparse.hpp"
#include "overlap/gpu/growing_buffer.hpp"
#include "overlap/gpu/launch.hpp"

namespace overlap::sparse_broadcast_eq {

inline constexpr int kFlagsPerVector = 16;  ///< what a thread loads or stores at once
inline constexpr int kRowsOfStrip = 32;     ///< local rows that a thread compares with its global ones
inline constexpr int kMatrixThreads = 256;  ///< in a block
inline constexpr int kLoadsAtOnce = 4;      ///< vectors that a lane loads before it tests the first one
inline constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< of a grid

/// Flags, one byte each: byte j of the vector is byte j % 4 of word j / 4, the lowest first, as in memory.
struct alignas(kFlagsPerVector) FlagVec16 {
  std::uint32_t words[kFlagsPerVector / 4];  ///< 16 bytes, for one load or store
};

/// Packs of a row of the matrix, `global_count` columns: the last one may have flags to spare, always 0, so
/// that each row begins at a multiple of 16 bytes.
__host__ __device__ inline std::int64_t vectors_per_row(std::int64_t global_count) {
  return (global_count + kFlagsPerVector - 1) / kFlagsPerVector;
}

/// Device memory of a matrix. In 64 bits: 50,000 rows against just as many others pass 2^31.
inline std::int64_t matrix_bytes(std::int64_t local_count, std::int64_t global_count) {
  return local_count * vectors_per_row(global_count) * kFlagsPerVector;
}

// ---- Step 1: compare everything with everything -----------------------------------------------------------

/// matrix[row][column] = (local[row] == global[column]). An item of work is a strip of one vector's columns
/// and kRowsOfStrip rows; neighbouring threads take neighbouring vectors, so a warp stores 512 bytes in one
/// piece. The global numbers stay in registers for the whole strip; reloading them for each row would read
/// four bytes for each byte written. Items are counted in 64 bits and dealt out round-robin to a grid of any
/// size: a grid with a row of blocks for each local row ends at 65,535 of them.
template <SparseIndex Index>
__global__ void compare_all(const Index* local, std::int64_t local_count, const Index* global,
                            std::int64_t global_count, FlagVec16* matrix) {
  const std::int64_t vectors = vectors_per_row(global_count);
  const std::int64_t strips = (local_count + kRowsOfStrip - 1) / kRowsOfStrip;
  const std::int64_t threads = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t item = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; item < vectors * strips;
       item += threads) {
    const std::int64_t vector = item % vectors, first_row = item / vectors * kRowsOfStrip;
    Index columns[kFlagsPerVector];
    // [task columns: which global rows does this thread compare, and what stands behind the last one?]
    // [blank] for (Index& column : columns) column = sparse_nonzero::kNoRow;
    for (int i = 0; i < kFlagsPerVector; ++i) {
      const std::int64_t column = vector * kFlagsPerVector + i;
      columns[i] =
          column < global_count ? global[column] : Index{sparse_nonzero::kNoRow};  // which no local row is
    }
    // [/task]
    const std::int64_t end_row = min(first_row + kRowsOfStrip, local_count);
    for (std::int64_t row = first_row; row < end_row; ++row) {
      const Index wanted = local[row];
      FlagVec16 flags;
      // [task compare: which byte of which word says that column i is the wanted one?]
      // [blank] flags = {};
      for (int word = 0; word < kFlagsPerVector / 4; ++word) {
        flags.words[word] = 0;
        for (int byte = 0; byte < 4; ++byte)
          flags.words[word] |= static_cast<std::uint32_t>(columns[4 * word + byte] == wanted) << 8 * byte;
      }
      // [/task]
      matrix[row * vectors + vector] = flags;
    }
  }
}

// ---- Step 2: where is the true entry of each row? ---------------------------------------------------------

/// positions[row] = the column of the true entry of a row of the matrix; -1 if it has none. An argmax would
/// return 0 then, a valid row, and so hide the error. A warp loops over rows.
__global__ void find_true(const FlagVec16* matrix, std::int64_t local_count, std::int64_t global_count,
                          std::int32_t* positions) {
  const std::int64_t vectors = vectors_per_row(global_count);
  const unsigned lane = threadIdx.x % kWarp;
  const std::int64_t warps = std::int64_t{gridDim.x} * (blockDim.x / kWarp);
  const std::int64_t warp = std::int64_t{blockIdx.x} * (blockDim.x / kWarp) + threadIdx.x / kWarp;
  for (std::int64_t row = warp; row < local_count; row += warps) {
    unsigned found = 0;  // column + 1: 0 is none
    // [task reduce: which vectors does a lane look at, and how does the warp agree on the column?]
    for (std::int64_t first = lane; first < vectors; first += kLoadsAtOnce * kWarp) {
      FlagVec16 flags[kLoadsAtOnce];
      for (int i = 0; i < kLoadsAtOnce; ++i) {
        const std::int64_t vector = first + i * kWarp;
        flags[i] = vector < vectors ? matrix[row * vectors + vector] : FlagVec16{};
      }
      for (int i = 0; i < kLoadsAtOnce; ++i) {
        for (int word = 0; word < kFlagsPerVector / 4; ++word) {
          const auto four = static_cast<int>(flags[i].words[word]);
          if (four == 0) continue;                 // nearly always
          const int byte = (__ffs(four) - 1) / 8;  // __ffs counts bits from 1
          found = static_cast<unsigned>((first + i * kWarp) * kFlagsPerVector + 4 * word + byte) + 1;
        }
      }
    }
    // At most one lane has a match, since the global list has each row once.
    found = __reduce_max_sync(0xffffffffu, found);
    // [/task]
    if (lane == 0) positions[row] = static_cast<std::int32_t>(found) - 1;
  }
}

/// Blocks of kMatrixThreads for so many threads, at least one; at most `most`: then threads take several
/// items each.
inline unsigned matrix_blocks(std::int64_t threads, std::int64_t most) {
  return static_cast<unsigned>(
      std::clamp((threads + kMatrixThreads - 1) / kMatrixThreads, std::int64_t{1}, most));
}

/// Enqueues both steps: positions[j] = the place of local.indices[j] in the global list, -1 if it is not in
/// it. `matrix` has matrix_bytes(). Without local rows nothing is launched.
template <SparseIndex Index>
void find_by_matrix(RowList<Index> local, RowList<Index> global, FlagVec16* matrix, std::int32_t* positions,
                    cudaStream_t stream, std::int64_t max_blocks = kMaxBlocks) {
  if (local.count == 0) return;
  const std::int64_t strips = (local.count + kRowsOfStrip - 1) / kRowsOfStrip;
  compare_all<<<matrix_blocks(vectors_per_row(global.count) * strips, max_blocks), kMatrixThreads, 0,
                stream>>>(local.indices, local.count, global.indices, global.count, matrix);
  CUDA_CHECK(cudaGetLastError());
  find_true<<<matrix_blocks(local.count * kWarp, max_blocks), kMatrixThreads, 0, stream>>>(
      matrix, local.count, global.count, positions);
  CUDA_CHECK(cudaGetLastError());
}

/// The search of version 4.
class BroadcastEqSearch {
 public:
  /// `budget`: the most bytes of a rank's matrix; by default half of the free memory of its GPU. The smallest
  /// budget of any rank is used by all, so that all refuse the same calls. Collective.
  explicit BroadcastEqSearch(const sparse_nonzero::SparseFrame& frame,
                             std::optional<std::int64_t> budget = std::nullopt)
      : matrix_(frame.rank) {
    const std::vector<std::int64_t> budgets =
        frame.rank.exchange(budget ? *budget : half_of_the_free_memory());
    budget_ = *std::min_element(budgets.begin(), budgets.end());
  }

  std::int64_t budget() const { return budget_; }  ///< bytes that the matrix may take, on all ranks

  /// See RowSearch.
  template <SparseIndex Index>
  void operator()(RowList<Index> local, RowList<Index> global, std::int32_t* positions, cudaStream_t stream) {
    const std::int64_t vectors = local.count * vectors_per_row(global.count);
    FlagVec16* matrix = matrix_.at_least(static_cast<std::size_t>(vectors), stream);
    find_by_matrix(local, global, matrix, positions, stream);
  }

  /// Refuses a matrix above the budget, on all ranks: each computes the size for the rank with the most rows.
  void require_room(std::int64_t max_local, std::int64_t global) const {
    const std::int64_t bytes = matrix_bytes(max_local, global);
    if (bytes <= budget_) return;
    // The requirement is rounded up, the budget down, so that the two never print as equal.
    constexpr std::int64_t kMib = 1 << 20;
    throw SparseInputError("the matrix of " + std::to_string(max_local) + " x " + std::to_string(global) +
                           " bytes takes " + std::to_string((bytes + kMib - 1) / kMib) +
                           " MiB, and its budget is " + std::to_string(budget_ / kMib) + " MiB");
  }

  /// The cost of the search. Its memory is written once and read once.
  static Cost cost(const sparse_nonzero::SparseCall& call) {
    if (call.local == 0) return {};
    return {.launches = 2,
            .comparisons = call.local * call.global,
            .memory = matrix_bytes(call.local, call.global)};
  }

 private:
  static std::int64_t half_of_the_free_memory() {
    std::size_t free = 0, total = 0;
    CUDA_CHECK(cudaMemGetInfo(&free, &total));
    return static_cast<std::int64_t>(free / 2);
  }

  std::int64_t budget_ = 0;
  GrowingBuffer<FlagVec16> matrix_;
};

/// Version 4. Source: "Sparse All-Reduce in PyTorch" (Speechmatics), "v4: broadcast torch.eq".
template <SparseIndex Index, Floating T>
using BroadcastEqAllReduce = sparse_nonzero::SparseAllReduce<Index, T, BroadcastEqSearch>;

}  // namespace overlap::sparse_broadcast_eq
