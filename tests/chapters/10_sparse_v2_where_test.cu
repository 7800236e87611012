// Chapter 10 on any GPUs: version 2 is right wherever version 1 is, and its loop makes no host wait.
#include "10_sparse_v2_where/where.cuh"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "overlap/backend.hpp"
#include "sparse_version_tests.hpp"

namespace overlap {
namespace {

class OnRanks : public testing::TestWithParam<int> {
 protected:
  static void SetUpTestSuite() { backend::prepare(); }
  void SetUp() override {
    if (!enough_gpus(GetParam())) GTEST_SKIP() << "NCCL wants a GPU for each of " << GetParam() << " ranks";
  }
};
INSTANTIATE_TEST_SUITE_P(WhereAllReduce, OnRanks, testing::Values(1, 2, 3, 4, 8));

TEST_P(OnRanks, IsRightOnAllDistributions) {
  expect_right_on_distributions<WhereAllReduce, std::int32_t, float>(GetParam());
}

TEST_P(OnRanks, IsRightOnRandomGradients) {  // 200 in all, over the five numbers of ranks
  const std::uint64_t seed = 20261122 + 1000 * static_cast<std::uint64_t>(GetParam());
  SCOPED_TRACE("seeds from " + std::to_string(seed));
  expect_right_on_random_gradients<WhereAllReduce, std::int32_t, float>(GetParam(), seed, 40);
}

TEST_P(OnRanks, IsRightInEveryType) {
  expect_right_call_after_call<WhereAllReduce, std::int32_t, float>(GetParam());
  expect_right_call_after_call<WhereAllReduce, std::int64_t, __half>(GetParam());
  expect_right_call_after_call<WhereAllReduce, std::int32_t, __nv_bfloat16>(GetParam());
}

TEST_P(OnRanks, IsRightWithAnyFeatures) {
  expect_right_with_any_features<WhereAllReduce, std::int64_t, float>(GetParam());
}

TEST_P(OnRanks, KeepsNansInfinitiesZerosAndDenormals) {
  expect_special_values<WhereAllReduce, std::int32_t>(GetParam());
}

TEST_P(OnRanks, HasTheSameBitsInEachCallOnEachRankAndWithEachIndexType) {
  expect_same_bits_in_each_call<WhereAllReduce>(GetParam(), GetParam() == 4 ? 100 : 3);
}

TEST_P(OnRanks, RefusesIndicesThatAreNotInTheTable) {
  expect_bad_indices_refused<WhereAllReduce, std::int32_t>(GetParam());
}

TEST_P(OnRanks, HasTheSamePhasesOnAllRanks) { expect_same_phases_on_all_ranks<WhereAllReduce>(GetParam()); }

TEST_P(OnRanks, MakesTheHostWaitAsOftenAsItsCostCardSays) {
  expect_host_waits_of_the_cost_card<WhereAllReduce>(GetParam());
}

TEST(WhereAllReduce, IsRightWithSizesAroundABlock) {
  backend::prepare();
  if (!enough_gpus(2)) GTEST_SKIP() << "NCCL wants a GPU for each of 2 ranks";
  expect_right_with_sizes_around<WhereAllReduce, std::int32_t, float>(2, kSearchThreads);
}

template <typename T>
void to_device(const DeviceBuffer<T>& buffer, const std::vector<T>& host) {
  CUDA_CHECK(cudaMemcpy(buffer.data(), host.data(), buffer.bytes(), cudaMemcpyHostToDevice));
}

// What chapter 11 records: the loop alone writes only where a row of this rank belongs, and leaves the rest,
// whatever that holds.
TEST(WhereLoop, WritesTheNumberOfTheRoundWhereTheRowBelongs) {
  backend::prepare();
  CUDA_CHECK(cudaSetDevice(0));
  const std::vector<std::int64_t> local = {3, 8, 900'000'000'000},
                                  global = {1, 3, 8, 9, 900'000'000'000, 900'000'000'001};
  const std::vector<std::int32_t> steps = {0, 1, 2}, before = {70, 71, 72, 73, 74, 75};
  const Stream stream(0);
  const DeviceBuffer<std::int64_t> local_rows(0, local.size()), global_rows(0, global.size());
  const DeviceBuffer<std::int32_t> numbers(0, steps.size()), sources(0, global.size());
  const DeviceBuffer<char> flags(0, global.size());
  to_device(local_rows, local);
  to_device(global_rows, global);
  to_device(numbers, steps);
  to_device(sources, before);
  const WhereLoop<std::int64_t> loop = {
      local_rows.data(), 3, global_rows.data(), 6, numbers.data(), flags.data(), sources.data()};
  enqueue_where_loop(loop, stream);
  CUDA_CHECK(cudaStreamSynchronize(stream));
  EXPECT_EQ(on_host(sources.data(), 6), (std::vector<std::int32_t>{70, 0, 1, 73, 2, 75}));
}

TEST(SparseCost, DiffersFromVersion1sInWaitsAndMemoryAlone) {
  const SparseCall call = {
      .ranks = 8, .rank = 1, .features = 2048, .local = 50'000, .most = 50'000, .global = 386'277};
  const SparseCost v1 = NonzeroAllReduce<std::int32_t, float>::cost(call),
                   v2 = WhereAllReduce<std::int32_t, float>::cost(call);
  EXPECT_EQ(v2.comparisons, v1.comparisons);
  EXPECT_EQ(v2.launches, 100'002);
  EXPECT_EQ(v2.host_waits, 3);
  EXPECT_EQ(v2.extra_bytes, 2'131'385);
  EXPECT_EQ(v2.bytes_in, v1.bytes_in);
  EXPECT_EQ(v2.bytes_out, v1.bytes_out);
}

}  // namespace
}  // namespace overlap
