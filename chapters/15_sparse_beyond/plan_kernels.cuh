// Chapter 15: the kernels of a plan. They work on the messages of all ranks, each a header and behind it a
// bit for each row of the table, or a list of rows that is filled up with kNoRow.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "09_sparse_v1_nonzero/index_lists.cuh"
#include "15_sparse_beyond/look_up.cuh"
#include "overlap/data/sparse.hpp"

namespace overlap::sparse_beyond {

using Word = std::uint32_t;           ///< of a bitmap
inline constexpr int kWordBits = 32;  ///< rows of a word

/// The header of a rank's message.
struct PlanHeader {
  std::int64_t count;      ///< how many
  std::int64_t bad_index;  ///< not 0: one of them is not in the table
};

/// The messages of all ranks, one behind the other.
struct Messages {
  std::byte* first;    ///< that of rank 0
  std::int64_t bytes;  ///< of each
  int ranks;           ///< how many

  /// The header of a rank's message.
  __host__ __device__ PlanHeader& header(int rank) const {
    return *reinterpret_cast<PlanHeader*>(first + rank * bytes);
  }
  /// Its bits.
  __host__ __device__ Word* words(int rank) const { return reinterpret_cast<Word*>(&header(rank) + 1); }
  /// Its rows.
  template <SparseIndex Index>
  __host__ __device__ Index* list(int rank) const {
    return reinterpret_cast<Index*>(&header(rank) + 1);
  }
};

/// The number of this thread in the grid.
__device__ inline std::int64_t thread_of_grid() {
  return std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}

// ---- The message of a rank --------------------------------------------------------------------------------

/// One thread. Publishes the number of rows found, and then limits it to the capacity, so that no later
/// kernel writes beyond it. A rank that receives a number above the capacity throws.
__global__ inline void write_header(Messages messages, int rank, std::int32_t* found, std::int64_t room) {
  messages.header(rank) = {found[0], found[1]};
  if (found[0] > room) found[0] = static_cast<std::int32_t>(room);
}

/// Sets the bit of each row. Threads share words: atomically.
template <SparseIndex Index>
__global__ void mark_rows(const Index* rows, const std::int32_t* found, std::int64_t words, Word* bitmap) {
  const std::int64_t j = thread_of_grid();
  if (j >= *found) return;
  // [task mark: which bit of which word is a row's, and which rows have none?]
  // [blank] (void)rows, (void)words, (void)bitmap;
  const std::int64_t row = rows[j];
  if (row < 0 || row / kWordBits >= words) return;  // the header says so
  atomicOr(&bitmap[row / kWordBits], Word{1} << row % kWordBits);
  // [/task]
}

/// Copies the rows.
template <SparseIndex Index>
__global__ void write_list(const Index* rows, const std::int32_t* found, Index* list) {
  const std::int64_t j = thread_of_grid();
  if (j < *found) list[j] = rows[j];
}

// ---- From bitmaps -----------------------------------------------------------------------------------------

/// counts[rank][w] = bits in word w of that rank's bitmap, and of all of them together behind those.
__global__ inline void count_bits(Messages messages, std::int64_t words, std::int32_t* counts) {
  const std::int64_t w = thread_of_grid();
  if (w >= words) return;
  Word any = 0;
  for (int rank = 0; rank < messages.ranks; ++rank) {
    const Word word = messages.words(rank)[w];
    counts[rank * words + w] = __popc(word);
    any |= word;
  }
  counts[messages.ranks * words + w] = __popc(any);
}

/// The headers of all ranks, for the host: counts[1 + 2 r] and [2 + 2 r] are rank r's.
__device__ inline void copy_headers(const Messages& messages, std::int64_t* counts) {
  for (int rank = 0; rank < messages.ranks; ++rank) {
    counts[1 + 2 * rank] = messages.header(rank).count;
    counts[2 + 2 * rank] = messages.header(rank).bad_index;
  }
}

/// Each thread lists the rows of one word: rows[g], and places[rank][g], where that rank has the row, or -1.
/// below[rank][w] is how many bits are set before word w in that bitmap and in all those before it.
template <SparseIndex Index>
__global__ void list_rows(Messages messages, std::int64_t words, const std::int32_t* below, std::int64_t most,
                          Index* rows, std::int32_t* places, std::int64_t* counts) {
  const std::int64_t w = thread_of_grid();
  if (w >= words) return;
  const auto set_before = [&](int bitmap) { return below[bitmap * words + w] - below[bitmap * words]; };
  Word any = 0;
  for (int rank = 0; rank < messages.ranks; ++rank) any |= messages.words(rank)[w];
  std::int64_t g = set_before(messages.ranks);
  for (Word left = any; left != 0; left &= left - 1, ++g) {
    if (g >= most) break;  // never: each rank marks at most its capacity
    const int bit = __ffs(static_cast<int>(left)) - 1;
    rows[g] = static_cast<Index>(w * kWordBits + bit);
    // [task list: how many of a rank's rows come before this one?]
    // [blank] for (int rank = 0; rank < messages.ranks; ++rank) places[rank * most + g] = 0;
    for (int rank = 0; rank < messages.ranks; ++rank) {
      const Word word = messages.words(rank)[w], bits_below = (Word{1} << bit) - 1;
      places[rank * most + g] = (word >> bit & 1) != 0 ? set_before(rank) + __popc(word & bits_below) : -1;
    }
    // [/task]
  }
  if (w != words - 1) return;
  counts[0] = g;
  copy_headers(messages, counts);
}

// ---- From lists -------------------------------------------------------------------------------------------

/// keys[rank * length + j] = row j of that rank's list, without headers and padding between messages.
template <SparseIndex Index>
__global__ void collect_lists(Messages messages, std::int64_t length, Index* keys) {
  const std::int64_t i = thread_of_grid();
  if (i >= messages.ranks * length) return;
  keys[i] = messages.list<Index>(static_cast<int>(i / length))[i % length];
}

/// One thread. The sort uses only the bits of row numbers; in these the padding is all ones, which no row is:
/// after the selection one padding entry is left, the last one.
template <SparseIndex Index>
__global__ void drop_padding(Messages messages, const Index* rows, std::int64_t* counts) {
  if (counts[0] > 0 && rows[counts[0] - 1] == Index{sparse_nonzero::kNoRow}) --counts[0];
  copy_headers(messages, counts);
}

/// places[rank][g] = j where row j of that rank's list is the g-th of all.
template <SparseIndex Index>
__global__ void find_places(Messages messages, std::int64_t length, const Index* rows,
                            const std::int64_t* global, std::int64_t most, std::int32_t* places) {
  const std::int64_t i = thread_of_grid();
  if (i >= messages.ranks * length) return;
  const int rank = static_cast<int>(i / length);
  const std::int64_t j = i % length;
  if (j >= messages.header(rank).count) return;
  const Index row = messages.list<Index>(rank)[j];
  const std::int64_t g = lower_bound(rows, *global, row);
  if (g < *global && rows[g] == row) places[rank * most + g] = static_cast<std::int32_t>(j);
}

}  // namespace overlap::sparse_beyond
