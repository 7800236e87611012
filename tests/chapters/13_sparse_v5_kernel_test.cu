// Chapter 13 on any GPUs: version 5 is right for every distribution of rows, around every tile.
#include <gtest/gtest.h>

#include <cstdint>

#include "13_sparse_v5_kernel/tile_search.cuh"
#include "overlap/backend.hpp"
#include "sparse_search_tests.hpp"
#include "sparse_version_tests.hpp"

namespace overlap {
namespace {

class OnRanks : public testing::TestWithParam<int> {
 protected:
  static void SetUpTestSuite() { backend::prepare(); }
  void SetUp() override {
    if (!enough_gpus(GetParam())) GTEST_SKIP() << "NCCL wants " << GetParam() << " GPUs";
  }
};
INSTANTIATE_TEST_SUITE_P(TileSearch, OnRanks, testing::Values(1, 2, 3, 4, 8));

TEST_P(OnRanks, IsRightOnEveryDistribution) {
  expect_right_on_distributions<TileSearchAllReduce, std::int32_t, float>(GetParam());
}

TEST_P(OnRanks, IsRightInEveryType) {
  expect_right_on_distributions<TileSearchAllReduce, std::int64_t, __half>(GetParam());
  expect_right_with_any_features<TileSearchAllReduce, std::int64_t, __nv_bfloat16>(GetParam());
}

TEST_P(OnRanks, IsRightOnRandomGradients) {  // 200 in all, over the five numbers of ranks
  const std::uint64_t seed = 20261123 + 1000 * static_cast<std::uint64_t>(GetParam());
  expect_right_on_random_gradients<TileSearchAllReduce, std::int32_t, float>(GetParam(), seed, 20);
  expect_right_on_random_gradients<TileSearchAllReduce, std::int64_t, __half>(GetParam(), seed + 20, 20);
}

TEST_P(OnRanks, IsRightWithAnyFeatures) {
  expect_right_with_any_features<TileSearchAllReduce, std::int32_t, float>(GetParam());
}

TEST_P(OnRanks, IsRightAroundTiles) {
  expect_right_with_sizes_around<TileSearchAllReduce, std::int32_t, float>(GetParam(), kSearchTile);
}

TEST_P(OnRanks, IsRightCallAfterCall) {
  expect_right_call_after_call<TileSearchAllReduce, std::int32_t, float>(GetParam());
  expect_right_call_after_call<TileSearchAllReduce, std::int64_t, __half>(GetParam());
}

TEST_P(OnRanks, CarriesSpecialValues) {
  expect_special_values<TileSearchAllReduce, std::int32_t>(GetParam());
}

TEST_P(OnRanks, HasTheSameBitsInEachCall) {
  expect_same_bits_in_each_call<TileSearchAllReduce>(GetParam(), 3);
}

TEST_P(OnRanks, RefusesBadIndices) {
  expect_bad_indices_refused<TileSearchAllReduce, std::int64_t>(GetParam());
}

TEST_P(OnRanks, WaitsAsOftenAsItsCostCardSays) {
  expect_host_waits_of_the_cost_card<TileSearchAllReduce>(GetParam());
}

// More rows than 32 bits have numbers for: equal in the lower half are 5 and 2^32 + 5, on different ranks.
TEST_P(OnRanks, TellsRowsApartThatAreEqualInThirtyTwoBits) {
  const std::int64_t far = std::int64_t{1} << 32;
  Entries entries;
  for (int rank = 0; rank < GetParam(); ++rank) entries.push_back({5, far * (rank % 3) + 5, far + rank});
  const SparseData data({4 * far, 3, 3}, entries, 1);
  expect_sums<TileSearchAllReduce, std::int64_t, float>({data}, "rows above 2^32");
}

// ---- The search alone -------------------------------------------------------------------------------------

TEST(TileSearch, FindsEachRowThatIsThereAndNoOther) {
  backend::prepare();
  run_ranks(1, [](Rank& rank) {
    expect_all_places(rank, kSearchTile, [](auto... arguments) { find_by_tiles(arguments...); });
  });
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
  using Version = TileSearchAllReduce<std::int32_t, float>;
  const SparseCall call = {
      .ranks = 2, .rank = 1, .features = 2048, .local = 50'000, .most = 50'000, .global = 99'500};
  const SparseCost cost = Version::cost(call);
  EXPECT_EQ(cost.comparisons, 4'975'000'000);
  EXPECT_EQ(cost.launches, 1);
  EXPECT_EQ(cost.extra_bytes, 0);
  EXPECT_EQ(cost.host_waits, 3);
  const SparseCall empty = {
      .ranks = 2, .rank = 1, .features = 2048, .local = 0, .most = 50'000, .global = 50'000};
  const SparseCost none = Version::cost(empty);
  EXPECT_EQ(none.comparisons, 0);
  EXPECT_EQ(none.launches, 0);
}

}  // namespace
}  // namespace overlap
