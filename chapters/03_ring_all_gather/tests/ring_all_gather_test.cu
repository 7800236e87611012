// Chapter 03 on any GPUs: right for every number of ranks, any sizes and types, and call after call.
#include "03_ring_all_gather/ring_all_gather.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "dense_run.hpp"
#include "late_rank.hpp"

namespace overlap::ring_all_gather {
namespace {

class OnRanks : public OnRanksOfNccl {};
INSTANTIATE_TEST_SUITE_P(RingAllGather, OnRanks, testing::Values(1, 2, 3, 4, 8),
                         testing::PrintToStringParamName());

template <Floating T>
void expect_ring(int ranks, const std::vector<MatmulShape>& shapes, std::uint64_t seed = 1, int calls = 1) {
  expect_all_right<RingAllGatherMatmul<T>, GatherProblem<T>>(ranks, shapes, seed, calls);
}

TEST_P(OnRanks, IsRightOnEvenAndUnevenSizes) { expect_ring<__half>(GetParam(), dense_shapes()); }

TEST_P(OnRanks, IsRightInEveryType) {
  expect_ring<__nv_bfloat16>(GetParam(), {{33, 37, 29}, {5, 3, 7}});
  expect_ring<float>(GetParam(), {{33, 37, 29}, {5, 3, 7}});
}

// A rank with rows but without columns multiplies nothing, but must still send its rows and pass on those of
// others.
TEST_P(OnRanks, IsRightWithFewerRowsOrColumnsThanRanks) {
  for (int count = 1; count < GetParam(); ++count) {
    expect_ring<__half>(GetParam(), {{count, 11, 3}, {11, count, 3}, {count, count, 3}});
  }
}

TEST_P(OnRanks, IsRightOnRandomSizes) {  // 200 sizes in all, over the five numbers of ranks
  const unsigned seed = 20261121 + static_cast<unsigned>(GetParam());
  SCOPED_TRACE("seed " + std::to_string(seed));
  expect_ring<__half>(GetParam(), random_shapes(40, seed), seed);
}

TEST_P(OnRanks, CallsMayFollowEachOtherAtOnce) {
  expect_ring<__half>(GetParam(), {{64, 64, 32}, {33, 37, 29}, {5, 3, 7}}, 1, calls_at_once(6));
}

TEST_P(OnRanks, TheCommunicationAloneEndsWhenAllShardsAreHere) {
  run_ranks_or_skip(GetParam(), [](Rank& rank) {
    GatherProblem<float> problem(rank, {32, 16, 8}, 1);
    RingAllGatherMatmul<float> ring(rank, problem.whole());
    problem.fill_exact();
    expect_all_wait_for_a_late_rank(rank,
                                    [&](cudaStream_t stream) { ring.communicate(problem.a(), stream); });
  });
}

TEST(RingAllGather, NeedsAGpuForEachRank) {
  int gpus = 0;
  CUDA_CHECK(cudaGetDeviceCount(&gpus));
  if (gpus >= 16) GTEST_SKIP() << "there are GPUs enough";
  const DenseRun run = run_dense<RingAllGatherMatmul<__half>, GatherProblem<__half>>(gpus + 1, {8, 8, 8}, 1);
  EXPECT_NE(run.skipped.find("NCCL wants a GPU for each rank"), std::string::npos) << run.skipped;
}

TEST(RingAllGatherOrder, EachRankHoldsEachShardOnceAndGetsItFromTheRight) {
  for (const int ranks : {1, 2, 3, 8}) {
    for (int rank = 0; rank < ranks; ++rank) {
      std::vector<bool> held(static_cast<std::size_t>(ranks));
      EXPECT_EQ(shard_in_step(rank, ranks, 0), rank);
      for (int step = 0; step < ranks; ++step) {
        const int shard = shard_in_step(rank, ranks, step);
        held[static_cast<std::size_t>(shard)] = true;
        if (step == 0) continue;
        EXPECT_EQ(shard, shard_in_step((rank + 1) % ranks, ranks, step - 1));
      }
      EXPECT_EQ(std::count(held.begin(), held.end(), true), ranks);
    }
  }
}

TEST(RingAllGatherCost, IsThatOfAnAllGather) {
  // (P - 1) / P of A into each rank and out of it.
  for (const int ranks : {1, 2, 4, 8}) {
    for (int rank = 0; rank < ranks; ++rank) {
      const Cost cost = RingAllGatherMatmul<__half>::cost({1024, 512, 256}, ranks, rank);
      EXPECT_EQ(cost.bytes_in, 1024 * 256 * 2 / ranks * (ranks - 1));
      EXPECT_EQ(cost.bytes_out, cost.bytes_in);
      EXPECT_EQ(cost.memory, cost.bytes_in);
      EXPECT_EQ(cost.messages, ranks - 1);
      EXPECT_EQ(cost.products, ranks);
    }
  }
}

TEST(RingAllGatherCost, CountsUnevenAndEmptyShards) {
  // 5 rows on 3 ranks: 2, 2 and 1. Rank 1 holds shards 1, 2 and 0, and passes on the first two.
  const Cost cost = RingAllGatherMatmul<float>::cost({5, 4, 3}, 3, 1);
  EXPECT_EQ(cost.bytes_in, (1 + 2) * 3 * 4);
  EXPECT_EQ(cost.bytes_out, (2 + 1) * 3 * 4);
  // Rank 0 holds shards 0, 1 and 2: the shards that arrive and need slots are smaller than those that it
  // passes on.
  const Cost first = RingAllGatherMatmul<float>::cost({5, 4, 3}, 3, 0);
  EXPECT_EQ(first.bytes_in, (2 + 1) * 3 * 4);
  EXPECT_EQ(first.bytes_out, (2 + 2) * 3 * 4);
  EXPECT_EQ(first.memory, (2 + 1) * 3 * 4);
  // 2 rows on 4 ranks: shards 2 and 3 are empty. Rank 3 holds 3, 0, 1 and 2, and passes on the first three.
  const Cost empty = RingAllGatherMatmul<float>::cost({2, 4, 3}, 4, 3);
  EXPECT_EQ(empty.messages, 2);
  EXPECT_EQ(empty.products, 2);
  EXPECT_EQ(RingAllGatherMatmul<float>::cost({2, 4, 3}, 4, 1).messages, 1);
  // One column on 2 ranks: rank 1 multiplies nothing, but passes shards on.
  EXPECT_EQ(RingAllGatherMatmul<float>::cost({2, 1, 3}, 2, 1).products, 0);
  EXPECT_EQ(RingAllGatherMatmul<float>::cost({2, 1, 3}, 2, 1).messages, 1);
}

TEST(RingAllGatherCost, IsThePagesCostCard) {
  const Cost cost = RingAllGatherMatmul<__half>::cost({8192, 32768, 4096}, 8, 0);
  EXPECT_EQ(cost.products, 8);
  EXPECT_EQ(cost.messages, 7);
  EXPECT_EQ(cost.bytes_in, 58'720'256);
  EXPECT_EQ(cost.bytes_out, 58'720'256);
  EXPECT_EQ(cost.memory, 58'720'256);
}

}  // namespace
}  // namespace overlap::ring_all_gather
