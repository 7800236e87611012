// What versions of the sparse all-reduce are tested with that have a search of their own: the search alone,
// on lists that no all-reduce would give it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "overlap/gpu/check.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/stream.hpp"
#include "sparse_run.hpp"

namespace overlap {

/// The search alone. find(local, local_count, global, global_count, positions, stream) enqueues it. Rows that
/// are not in the list have no place: -1, whatever stood there before. Nothing is written behind the last
/// position.
template <SparseIndex Index, typename Find>
void expect_places(Rank& rank, const std::vector<Index>& local, const std::vector<Index>& global,
                   const Find& find) {
  constexpr std::int32_t kUntouched = 0x5a5a5a5a;
  constexpr std::size_t kBehind = 300;  // more than a block of threads
  const DeviceBuffer<Index> local_on_gpu(rank.device(), local.size());
  const DeviceBuffer<Index> global_on_gpu(rank.device(), global.size());
  const DeviceBuffer<std::int32_t> positions(rank.device(), local.size() + kBehind);
  if (!local.empty())
    CUDA_CHECK(cudaMemcpy(local_on_gpu.data(), local.data(), local_on_gpu.bytes(), cudaMemcpyHostToDevice));
  if (!global.empty()) {
    CUDA_CHECK(
        cudaMemcpy(global_on_gpu.data(), global.data(), global_on_gpu.bytes(), cudaMemcpyHostToDevice));
  }
  CUDA_CHECK(cudaMemset(positions.data(), 0x5a, positions.bytes()));
  CUDA_CHECK(cudaDeviceSynchronize());
  find(local_on_gpu.data(), static_cast<std::int64_t>(local.size()), global_on_gpu.data(),
       static_cast<std::int64_t>(global.size()), positions.data(), rank.stream());
  rank.synchronize(rank.stream());
  std::vector<std::int32_t> places;
  for (const Index row : local) {
    const auto place = std::find(global.begin(), global.end(), row);
    places.push_back(place == global.end() ? -1 : static_cast<std::int32_t>(place - global.begin()));
  }
  places.resize(places.size() + kBehind, kUntouched);
  EXPECT_EQ(on_host(positions.data(), static_cast<std::int64_t>(positions.size())), places)
      << local.size() << " rows among " << global.size();
}

/// A list of row numbers in another type.
template <SparseIndex Index>
std::vector<Index> list_of(const std::vector<std::int64_t>& rows) {
  return {rows.begin(), rows.end()};
}

/// Lists of all sizes around warps, blocks and `tile`, with rows that are in the other list and rows that are
/// not.
template <typename Find>
void expect_all_places(Rank& rank, std::int64_t tile, const Find& find) {
  std::vector<std::int64_t> sizes = sizes_around(tile);
  sizes.push_back(0);
  for (const std::int64_t local : {0, 1, 31, 257}) {
    for (const std::int64_t global : sizes)  // every third one of the local list is in it
      expect_places<std::int32_t>(rank, list_of<std::int32_t>(stride(2, 2, local)),
                                  list_of<std::int32_t>(stride(0, 3, global)), find);
  }
  for (const std::int64_t local : sizes)
    expect_places<std::int64_t>(rank, stride(0, 2, local), stride(0, 3, 100), find);
  // Equal in 32 bits, and not in 64.
  const std::int64_t far = std::int64_t{1} << 32;
  expect_places<std::int64_t>(rank, {5, 7, far + 6, far + 7, 3 * far}, {5, 6, far + 5, far + 7, 3 * far},
                              find);
  // No row of this rank is the padding's, and no thread without a row has one.
  expect_places<std::int32_t>(rank, {0}, {-1, 0}, find);
}

}  // namespace overlap
