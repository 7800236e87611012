// Chapter 13 on virtual GPUs: right in any order of events, moving just the bytes of its cost card, and
// faster than the loop of version 2.
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "10_sparse_v2_where/where.cuh"
#include "13_sparse_v5_kernel/tile_search.cuh"

#include "far_rows.hpp"
#include "sparse_virtual_suite.hpp"

namespace overlap::sparse_kernel {
namespace {

INSTANTIATE_TYPED_TEST_SUITE_P(TileSearch, SparseVersionOnVirtualGpus, VersionOf<TileSearchAllReduce>);

// One launch, where version 2 has two for each row. (The model cannot compare it with version 4, because it
// counts the threads' instructions and not the bytes of the matrix.)
TEST_F(OnVirtualGpus, IsFasterThanVersion2InTheModel) {
  const SparseData data({1000, 8, 60}, 4, RowPattern::kUniform, 0, 1);
  EXPECT_LT(2 * map_ms<TileSearchAllReduce>(data), map_ms<sparse_where::WhereAllReduce>(data));
}

// Only row numbers, fewer than 2^31 of them, but 2^33 bytes.
TEST_F(FarRows, TheLastRowOfTheLongestListIsFound) {
  constexpr std::int64_t count = INT32_MAX, last = count - 1;
  const DeviceBuffer<std::int32_t> local(0, count), global(0, 300), positions(0, count);
  std::vector<std::int32_t> numbers(300);
  std::iota(numbers.begin(), numbers.end(), 0);
  put(global, 0, numbers);
  put(local, last - 1, {1, 271});
  const auto blocks = static_cast<unsigned>(tiles_for(count));
  run_block(blocks - 1, [&] {
    search_tiles<<<blocks, kSearchTile>>>(local.data(), count, global.data(), 300, positions.data());
  });
  EXPECT_EQ(at(positions, last - 2), -1);
  EXPECT_EQ(at(positions, last - 1), 1);
  EXPECT_EQ(at(positions, last), 271);
}

}  // namespace
}  // namespace overlap::sparse_kernel
