// Chapter 04 on any GPUs: the ring is right for every number of ranks and any sizes, call after call.
#include <gtest/gtest.h>

#include "04_copy_engine/copy_engine_ring.cuh"
#include "04_copy_engine/split_only.cuh"
#include "dense_run.hpp"

namespace overlap {
namespace {

class OnRanks : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(CopyEngine, OnRanks, testing::Values(1, 2, 3, 4, 8));

TEST_P(OnRanks, TheRingIsRightInAllTypes) {
  for (const MatmulShape shape : dense_shapes()) {
    expect_right<CopyEngineRing<__half>, GatherProblem<__half>>(GetParam(), shape);
    expect_right<CopyEngineRing<__nv_bfloat16>, GatherProblem<__nv_bfloat16>>(GetParam(), shape);
    expect_right<CopyEngineRing<float>, GatherProblem<float>>(GetParam(), shape);
  }
}

TEST_P(OnRanks, TheRingIsRightOnRandomSizes) {
  // 200 sizes in all, over the five numbers of ranks.
  const unsigned seed = 20261204 + GetParam();
  SCOPED_TRACE("seed " + std::to_string(seed));
  for (const MatmulShape shape : random_shapes(40, seed))
    expect_right<CopyEngineRing<__half>, GatherProblem<__half>>(GetParam(), shape, seed);
}

TEST_P(OnRanks, CallsFollowEachOtherAtOnce) {
  expect_right<CopyEngineRing<float>, GatherProblem<float>>(GetParam(), {13, 6, 5}, 1, 100);
}

TEST_P(OnRanks, TheSplitProductIsTheWholeProduct) {
  for (const int streams : {1, 2}) {
    for (const MatmulShape shape : {MatmulShape{64, 64, 32}, MatmulShape{5, 3, 7}}) {
      run_ranks(GetParam(), [&](Rank& rank) {
        GatherProblem<__half> problem(rank, shape, 1);
        SplitOnly<__half> split(rank, shape, streams);
        problem.fill_exact();
        problem.poison_result();
        split.run(problem.whole_a(), problem.b(), problem.c(), rank.stream());
        rank.synchronize(rank.stream());
        const Verification found = problem.compare_exact(false);
        EXPECT_TRUE(found.ok()) << describe(found);
      });
    }
  }
}

TEST(CopyEngineCost, IsThePagesCostCard) {
  // 8 ranks with 1024 rows each, k = 4096, f16: shards of 8 MiB.
  const RingPushCost cost = CopyEngineRing<__half>::cost({8192, 32768, 4096}, 8, 3);
  EXPECT_EQ(cost.steps, 8);
  EXPECT_EQ(cost.messages, 7);
  EXPECT_EQ(cost.bytes_out, 58'720'256);
  EXPECT_EQ(cost.bytes_in, 58'720'256);
  EXPECT_EQ(cost.bytes_of_slots, 117'440'512);
}

TEST(CopyEngineCost, CountsUnevenShares) {
  // 5 rows on 3 ranks: 2, 2, 1. Rank 0 keeps back what its left neighbour, rank 2, has already.
  const RingPushCost first = RingPush<float>::cost({5, 1, 10}, 3, 0);
  EXPECT_EQ(first.bytes_out, 4 * 10 * (5 - 1));
  EXPECT_EQ(first.bytes_in, 4 * 10 * (5 - 2));
  EXPECT_EQ(RingPush<float>::cost({5, 1, 10}, 1, 0).bytes_out, 0);
}

}  // namespace
}  // namespace overlap
