// Chapter 05 on any GPUs: ring and pull on two streams are right for every number of ranks and any sizes,
// call after call.
#include <gtest/gtest.h>

#include "05_two_streams/experiments/openings.cuh"
#include "05_two_streams/experiments/split_waves.hpp"
#include "05_two_streams/pull_two_streams.cuh"
#include "05_two_streams/ring_two_streams.cuh"
#include "dense_run.hpp"

namespace overlap::two_streams {
namespace {

constexpr Opening kOpenings[] = {Opening::kBefore, Opening::kBeside, Opening::kCopyFirst, Opening::kAfter,
                                 Opening::kBarrierAfter};

template <typename T, template <typename> class Algorithm, typename... More>
void expect_all_right_of(int ranks, const std::vector<MatmulShape>& shapes, std::uint64_t seed = 1,
                         int calls = 1, More... more) {
  expect_all_right<Algorithm<T>, GatherProblem<T>>(ranks, shapes, seed, calls, more...);
}

class OnRanks : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(TwoStreams, OnRanks, testing::Values(1, 2, 3, 4, 8),
                         testing::PrintToStringParamName());

TEST_P(OnRanks, AreRightInAllTypes) {
  expect_all_right_of<__half, RingTwoStreams>(GetParam(), dense_shapes());
  expect_all_right_of<__nv_bfloat16, RingTwoStreams>(GetParam(), dense_shapes());
  expect_all_right_of<float, RingTwoStreams>(GetParam(), dense_shapes());
  expect_all_right_of<__half, PullTwoStreams>(GetParam(), dense_shapes());
  expect_all_right_of<__nv_bfloat16, PullTwoStreams>(GetParam(), dense_shapes());
  expect_all_right_of<float, PullTwoStreams>(GetParam(), dense_shapes());
}

TEST_P(OnRanks, AreRightOnRandomSizes) {
  // 200 sizes in all, over the five numbers of ranks. Each opening of the pull gets a fifth.
  const unsigned seed = 20261205 + static_cast<unsigned>(GetParam());
  SCOPED_TRACE("seed " + std::to_string(seed));
  const std::vector<MatmulShape> shapes = random_shapes(40, seed);
  expect_all_right_of<__half, RingTwoStreams>(GetParam(), shapes, seed);
  for (std::size_t i = 0; i < 5; ++i)
    expect_all_right_of<__half, PullWithOpening>(GetParam(), every(5, i, shapes), seed, 1, kOpenings[i]);
}

TEST_P(OnRanks, CallsFollowEachOtherAtOnce) {
  expect_all_right_of<float, RingTwoStreams>(GetParam(), {{13, 6, 5}}, 1, calls_at_once(50));
  for (const Opening opening : kOpenings)
    expect_all_right_of<float, PullWithOpening>(GetParam(), {{13, 6, 5}}, 1, calls_at_once(10), opening);
}

/// cuBLAS guarantees the same bits in each run only if each stream has its own handle.
template <typename Algorithm>
void expect_a_handle_for_each_stream(int ranks) {
  run_ranks(ranks, [](Rank& rank) {
    GatherProblem<float> problem(rank, {32, 16, 8}, 1);
    Algorithm algorithm(rank, problem.whole());
    problem.fill_exact();
    rank.barrier();  // fill_exact() waits for an idle GPU: no rank that shares it may have called run() yet
    algorithm.run(problem.a(), problem.b(), problem.c(), rank.stream());
    rank.synchronize(rank.stream());
    cudaStream_t first = nullptr, second = nullptr;
    CUBLAS_CHECK(cublasGetStream(rank.cublas(0), &first));
    CUBLAS_CHECK(cublasGetStream(rank.cublas(1), &second));
    EXPECT_EQ(first, rank.stream());
    EXPECT_EQ(second, rank.second_stream());
    rank.barrier();
  });
}

TEST(TwoStreamsHandles, EachStreamHasItsOwn) {
  for (const int ranks : {2, 3}) {
    expect_a_handle_for_each_stream<RingTwoStreams<float>>(ranks);
    expect_a_handle_for_each_stream<PullTwoStreams<float>>(ranks);
  }
}

TEST(RingTwoStreamsCost, IsThePagesCostCard) {
  // 8 ranks with 1024 rows each, k = 4096, f16: shards of 8 MiB.
  const Cost cost = RingTwoStreams<__half>::cost({8192, 32768, 4096}, 8, 3);
  EXPECT_EQ(cost.products, 8);
  EXPECT_EQ(cost.messages, 7);
  EXPECT_EQ(cost.bytes_out, 58'720'256);
  EXPECT_EQ(cost.bytes_in, 58'720'256);
  EXPECT_EQ(cost.memory, 117'440'512);
}

TEST(PullTwoStreamsCost, IsThePagesCostCard) {
  const MatmulShape whole{8192, 32768, 4096};
  const Cost cost = PullTwoStreams<__half>::cost(whole, 8, 3);
  EXPECT_EQ(cost.products, 8);
  EXPECT_EQ(cost.messages, 7);
  EXPECT_EQ(PullTwoStreams<__half>::signals(8), 14);
  EXPECT_EQ(cost.bytes_in, 58'720'256);
  EXPECT_EQ(cost.bytes_out, 58'720'256);
  EXPECT_EQ(PullTwoStreams<__half>::bytes_published(whole, 8, 3), 8'388'608);
  EXPECT_EQ(cost.memory, 67'108'864);
}

TEST(PullTwoStreamsCost, CountsUnevenAndEmptyShares) {
  // 2 rows and 1 column on 3 ranks: shards of 1, 1, 0 rows; only rank 0 has a column.
  const MatmulShape whole{2, 1, 10};
  const Cost first = PullTwoStreams<float>::cost(whole, 3, 0);
  EXPECT_EQ(first.products, 2);
  EXPECT_EQ(first.messages, 2);  // both others pull it
  EXPECT_EQ(first.bytes_out, 80);
  EXPECT_EQ(first.bytes_in, 40);
  EXPECT_EQ(PullTwoStreams<float>::bytes_published(whole, 3, 0), 40);
  const Cost last = PullTwoStreams<float>::cost(whole, 3, 2);
  EXPECT_EQ(last.products, 0);
  EXPECT_EQ(last.messages, 0);
  EXPECT_EQ(last.bytes_out, 0);
  EXPECT_EQ(last.bytes_in, 80);
  EXPECT_EQ(PullTwoStreams<float>::bytes_published(whole, 3, 2), 0);
  EXPECT_EQ(PullTwoStreams<float>::bytes_published(whole, 1, 0), 0);
}

TEST(SplitWaves, CountsPartialWaves) {
  // The article's example with its 8 shards: 4096 x 4096 in 256 x 256 tiles are 256 tiles, 2 waves on 132
  // multiprocessors. Eight parts of 32 tiles are 8 partial waves on one stream. On two streams two parts, 64
  // tiles, run at a time: the next part of a stream waits for the previous part of that stream.
  const SplitWaves split = split_waves({4096, 4096, 1}, 8, {256, 256}, 132);
  EXPECT_EQ(split.whole, 2);
  EXPECT_EQ(split.one_stream, 8);
  EXPECT_EQ(split.two_streams, 4);
  // Parts that do not fill their last row of tiles need more tiles, which a second stream does not recover.
  const SplitWaves uneven = split_waves({4 * 65, 128, 1}, 4, {64, 128}, 2);
  EXPECT_EQ(uneven.whole, 3);
  EXPECT_EQ(uneven.one_stream, 4);
  EXPECT_EQ(uneven.two_streams, 4);
  // Two parts of 65 and 64 rows: the larger part needs a second row of tiles.
  EXPECT_EQ(split_waves({129, 128, 1}, 2, {64, 128}, 1).one_stream, 3);
  EXPECT_EQ(split_waves({129, 128, 1}, 2, {64, 128}, 1).two_streams, 3);
  // 4 parts of 10 tiles on 8 multiprocessors: any two parts fill the GPU.
  const SplitWaves filled = split_waves({4 * 64, 1280, 1}, 4, {64, 128}, 8);
  EXPECT_EQ(filled.one_stream, 8);
  EXPECT_EQ(filled.two_streams, 5);
  // Tiles are counted along rows and along columns.
  EXPECT_EQ(split_waves({256, 64, 1}, 1, {64, 128}, 1).whole, 4);
  EXPECT_EQ(split_waves({64, 256, 1}, 1, {64, 128}, 1).whole, 2);
}

}  // namespace
}  // namespace overlap::two_streams
