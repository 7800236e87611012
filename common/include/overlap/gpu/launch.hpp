// How many blocks a kernel is launched with, where a lesson has no other reason to choose.
#pragma once

#include <algorithm>
#include <cstdint>

namespace overlap {

/// Threads of a warp.
inline constexpr int kWarp = 32;

/// Threads of a block, where nothing speaks for another number.
inline constexpr int kBlockThreads = 256;

/// Blocks of kBlockThreads for so many threads, each with an element of its own in the GPU's memory. A grid
/// has at most 2^31 - 1 blocks. That is not checked: the elements of so many, 5.5 x 10^11, are more than any
/// memory has room for, and are allocated before.
inline unsigned blocks_for(std::int64_t threads) {
  return static_cast<unsigned>((threads + kBlockThreads - 1) / kBlockThreads);
}

/// Blocks of a kernel that takes any number of rows, a block a row after the other: one for each row, as long
/// as there are not more of them than keep any GPU busy.
inline unsigned blocks_for_rows(std::int64_t rows) {
  return static_cast<unsigned>(std::min<std::int64_t>(rows, 65536));
}

}  // namespace overlap
