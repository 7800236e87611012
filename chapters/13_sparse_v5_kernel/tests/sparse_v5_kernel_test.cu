// Chapter 13 on any GPUs: version 5 is right for every distribution of rows, around every tile.
#include <gtest/gtest.h>

#include <cstdint>

#include "13_sparse_v5_kernel/tile_search.cuh"
#include "sparse_search_tests.hpp"

#include "sparse_version_suite.hpp"

namespace overlap::sparse_kernel {
namespace {

const bool kTileSearch = test_sparse_version<VersionOf<TileSearchAllReduce>>("TileSearch");
INSTANTIATE_TEST_SUITE_P(TileSearch, OnRanks, testing::Values(1, 2, 3, 4, 8),
                         testing::PrintToStringParamName());

TEST_P(OnRanks, MakesTheHostWaitAsOftenAsItsCostCardSays) {
  expect_host_waits_of_the_cost_card<TileSearchAllReduce>(GetParam());
}

TEST_P(OnRanks, IsRightAroundTiles) {
  expect_right_with_sizes_around<TileSearchAllReduce, std::int32_t, float>(GetParam(), kSearchTile);
}

TEST(TilesFor, AreCountedInIntegers) {
  EXPECT_EQ(tiles_for(0), 0);
  EXPECT_EQ(tiles_for(1), 1);
  EXPECT_EQ(tiles_for(256), 1);
  EXPECT_EQ(tiles_for(257), 2);
  EXPECT_EQ(tiles_for((1 << 24) + 1), (1 << 16) + 1);  // ceil of a float: 65536
  EXPECT_EQ(tiles_for(INT32_MAX), 1 << 23);
}

TEST(TileSearchCost, IsThePagesCostCard) {
  using Version32 = TileSearchAllReduce<std::int32_t, float>;
  const sparse_nonzero::SparseCall call = {
      .ranks = 2, .rank = 1, .features = 2048, .local = 50'000, .most = 50'000, .global = 99'500};
  const Cost cost = Version32::cost(call);
  EXPECT_EQ(cost.comparisons, 4'975'000'000);
  EXPECT_EQ(cost.launches, 1);
  EXPECT_EQ(cost.memory, 0);
  EXPECT_EQ(cost.host_waits, 3);
  const sparse_nonzero::SparseCall empty = {
      .ranks = 2, .rank = 1, .features = 2048, .local = 0, .most = 50'000, .global = 50'000};
  const Cost none = Version32::cost(empty);
  EXPECT_EQ(none.comparisons, 0);
  EXPECT_EQ(none.launches, 0);
}

}  // namespace
}  // namespace overlap::sparse_kernel
