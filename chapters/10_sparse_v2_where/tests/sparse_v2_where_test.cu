// Chapter 10 on any GPUs: version 2 is right wherever version 1 is, and its loop makes no host wait.
#include "10_sparse_v2_where/where.cuh"

#include <gtest/gtest.h>

#include <vector>

#include "sparse_search_tests.hpp"
#include "sparse_version_suite.hpp"

namespace overlap::sparse_where {
namespace {

const bool kWhere = test_sparse_version<VersionOf<WhereAllReduce>>("Where");
INSTANTIATE_TEST_SUITE_P(Where, OnRanks, testing::Values(1, 2, 3, 4, 8), testing::PrintToStringParamName());

TEST_P(OnRanks, MakesTheHostWaitAsOftenAsItsCostCardSays) {
  expect_host_waits_of_the_cost_card<WhereAllReduce>(GetParam());
}

TEST(WhereAllReduce, IsRightWithSizesAroundABlock) {
  if (!enough_gpus(2)) GTEST_SKIP() << "NCCL wants a GPU for each of 2 ranks";
  expect_right_with_sizes_around<WhereAllReduce, std::int32_t, float>(2, kBlockThreads);
}

TEST(WhereSearch, FindsEachRowThatIsThereAndNoOther) {
  run_ranks(1, [](Rank& rank) {
    const FrameAlone alone(rank);
    WhereSearch find(alone.frame);
    expect_all_places(rank, kBlockThreads, find, kAsInAnAllReduce);
    EXPECT_EQ(alone.waits->count(), 0);
  });
}

// The part that chapter 11 captures: the loop alone writes only the places of this rank's rows and leaves all
// others unchanged.
TEST(WhereLoop, WritesTheNumberOfTheRoundWhereTheRowBelongs) {
  CUDA_CHECK(cudaSetDevice(0));
  const std::vector<std::int64_t> local = {3, 8, 900'000'000'000},
                                  global = {1, 3, 8, 9, 900'000'000'000, 900'000'000'001};
  const std::vector<std::int32_t> steps = {0, 1, 2}, before = {70, 71, 72, 73, 74, 75};
  const Stream stream(0);
  const auto local_rows = on_device(0, local), global_rows = on_device(0, global);
  const auto numbers = on_device(0, steps), sources = on_device(0, before);
  const DeviceBuffer<char> flags(0, global.size());
  const WhereLoop<std::int64_t> loop = {
      local_rows.data(), 3, global_rows.data(), 6, numbers.data(), flags.data(), sources.data()};
  enqueue_where_loop(loop, stream);
  CUDA_CHECK(cudaStreamSynchronize(stream));
  EXPECT_EQ(on_host(sources.data(), 6), (std::vector<std::int32_t>{70, 0, 1, 73, 2, 75}));
}

TEST(WhereCost, DiffersFromVersion1sInWaitsAndMemoryAlone) {
  const sparse_nonzero::SparseCall call = {
      .ranks = 8, .rank = 1, .features = 2048, .local = 50'000, .most = 50'000, .global = 386'277};
  const Cost v1 = sparse_nonzero::NonzeroAllReduce<std::int32_t, float>::cost(call),
             v2 = WhereAllReduce<std::int32_t, float>::cost(call);
  EXPECT_EQ(v2.comparisons, v1.comparisons);
  EXPECT_EQ(v2.launches, 100'002);
  EXPECT_EQ(v2.host_waits, 3);
  EXPECT_EQ(v2.memory, 2'131'385);
  EXPECT_EQ(v2.bytes_in, v1.bytes_in);
  EXPECT_EQ(v2.bytes_out, v1.bytes_out);
}

}  // namespace
}  // namespace overlap::sparse_where
