// Tests of a version's search alone, also on lists that no all-reduce produces.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "09_sparse_v1_nonzero/sparse_all_reduce.cuh"
#include "overlap/data/sparse.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/host_copy.hpp"
#include "overlap/gpu/phase_clock.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/stream.hpp"
#include "sparse_run.hpp"

namespace overlap {

/// What a search wants of an all-reduce, without one.
class FrameAlone {
  DeviceBuffer<int> lost_;

 public:
  explicit FrameAlone(Rank& rank, SparseShape shape = {})
      : lost_(on_device(rank.device(), std::vector<int>{0})),
        clock(rank.device()),
        waits(std::make_unique<sparse_nonzero::HostWaits>(rank)),
        frame{rank, shape, *waits, clock, lost_.data()} {}

  PhaseClock clock;
  std::unique_ptr<sparse_nonzero::HostWaits> waits;
  sparse_nonzero::SparseFrame frame;
};

/// What stands in positions that nobody has written.
inline constexpr std::int32_t kUntouched = 0x5a5a5a5a;

/// What a search takes for granted, as in an all-reduce it may.
struct Granted {
  std::int32_t before = kUntouched;  ///< stands in all positions
  bool rows = false;                 ///< neither list is empty
};
/// The most that it may.
inline constexpr Granted kAsInAnAllReduce = {sparse_nonzero::kNoRow, true};

/// find(local, global, positions, stream) enqueues the search. Rows that the list lacks get -1; nothing is
/// written behind the last position.
template <SparseIndex Index, typename Find>
void expect_places(Rank& rank, const std::vector<Index>& local, const std::vector<Index>& global, Find&& find,
                   Granted granted = {}) {
  constexpr std::size_t kBehind = 300;  // more than a block of threads
  std::vector<std::int32_t> places(local.size(), granted.before);
  places.resize(local.size() + kBehind, kUntouched);
  const auto local_on_gpu = on_device(rank.device(), local), global_on_gpu = on_device(rank.device(), global);
  const auto positions = on_device(rank.device(), places);
  CUDA_CHECK(cudaDeviceSynchronize());
  find(RowList<Index>{local_on_gpu.data(), std::ssize(local)},
       RowList<Index>{global_on_gpu.data(), std::ssize(global)}, positions.data(), rank.stream());
  rank.synchronize(rank.stream());
  for (std::size_t i = 0; i < local.size(); ++i) {
    const auto place = std::find(global.begin(), global.end(), local[i]);
    places[i] = place == global.end() ? -1 : static_cast<std::int32_t>(place - global.begin());
  }
  EXPECT_EQ(on_host(positions.data(), std::ssize(places)), places)
      << local.size() << " rows among " << global.size();
}

/// A list of row numbers in another type.
template <SparseIndex Index>
std::vector<Index> list_of(const std::vector<std::int64_t>& rows) {
  return {rows.begin(), rows.end()};
}

/// Lists of all sizes around warps, blocks and `tile`, with some, all or no rows in common.
template <typename Find>
void expect_all_places(Rank& rank, std::int64_t tile, Find&& find, Granted granted = {}) {
  std::vector<std::int64_t> sizes = sizes_around(tile), few = {1, 31, 257};
  if (!granted.rows) sizes.push_back(0), few.push_back(0);
  for (const std::int64_t local : few) {
    for (const std::int64_t global : sizes)  // every third one of the local list is in it
      expect_places<std::int32_t>(rank, list_of<std::int32_t>(stride(2, 2, local)),
                                  list_of<std::int32_t>(stride(0, 3, global)), find, granted);
  }
  for (const std::int64_t size : sizes) {
    expect_places<std::int64_t>(rank, stride(0, 2, size), stride(0, 3, 100), find, granted);
    expect_places<std::int64_t>(rank, stride(7, 3, size), stride(7, 3, size), find, granted);
    expect_places<std::int64_t>(rank, stride(1, 2, 33), stride(0, 2, size), find, granted);
  }
  // Equal in 32 bits, and not in 64.
  const std::int64_t far = std::int64_t{1} << 32;
  expect_places<std::int64_t>(rank, {5, 7, far + 6, far + 7, 3 * far}, {5, 6, far + 5, far + 7, 3 * far},
                              find, granted);
  // No row of this rank is the padding's, and no thread without a row has one.
  expect_places<std::int32_t>(rank, {0}, {-1, 0}, find, granted);
}

}  // namespace overlap
