// Chapter 12 on any GPUs: version 4 is right for every distribution of rows, and refuses a matrix that is too
// large.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#include "12_sparse_v4_broadcast_eq/broadcast_eq.cuh"
#include "sparse_search_tests.hpp"

#include "sparse_version_suite.hpp"

namespace overlap::sparse_broadcast_eq {
namespace {

const bool kBroadcastEq = test_sparse_version<VersionOf<BroadcastEqAllReduce>>("BroadcastEq");
INSTANTIATE_TEST_SUITE_P(BroadcastEq, OnRanks, testing::Values(1, 2, 3, 4, 8),
                         testing::PrintToStringParamName());

TEST_P(OnRanks, MakesTheHostWaitAsOftenAsItsCostCardSays) {
  expect_host_waits_of_the_cost_card<BroadcastEqAllReduce>(GetParam());
}

TEST_P(OnRanks, IsRightAroundPacksAndStrips) {
  expect_right_with_sizes_around<BroadcastEqAllReduce, std::int32_t, float>(GetParam(), kFlagsPerVector);
  expect_right_with_sizes_around<BroadcastEqAllReduce, std::int32_t, float>(GetParam(), kRowsOfStrip);
}

// 20 rows of 20 bytes, each padded to 32.
TEST_P(OnRanks, TheBudgetIsEnoughToTheLastByte) {
  const SparseShape shape{100, 3, 20};
  const SparseData right(shape, Entries(static_cast<std::size_t>(GetParam()), stride(0, 2, 20)), 1);
  run_ranks(GetParam(), [&](Rank& rank) {
    BroadcastEqAllReduce<std::int32_t, float> algorithm(rank, shape, 20 * 32);
    expect_sum<std::int32_t, float>(rank, algorithm, right, "the budget is just enough");
  });
}

// One more row, on one rank only; and the budgets of the ranks differ.
TEST_P(OnRanks, AboveTheSmallestBudgetAllRanksRefuse) {
  const SparseShape shape{100, 3, 21};
  const SparseData right(shape, Entries(static_cast<std::size_t>(GetParam()), stride(0, 2, 20)), 1);
  run_ranks(GetParam(), [&](Rank& rank) {
    const bool is_last = rank.id() + 1 == rank.size();
    BroadcastEqAllReduce<std::int32_t, float> algorithm(rank, shape,
                                                        is_last ? 20 * 32 : std::int64_t{1} << 40);
    EXPECT_EQ(algorithm.find().budget(), 20 * 32);
    expect_refused<std::int32_t, float>(rank, algorithm, shape, stride(0, 1, rank.id() == 0 ? 21 : 20),
                                        "the matrix of 21 x 21 bytes takes 1 MiB, and its budget is 0 MiB",
                                        right);
  });
}

TEST_P(OnRanks, WithoutABudgetHalfOfTheFreeMemoryIsIt) {
  run_ranks(GetParam(), [&](Rank& rank) {
    std::size_t free = 0, total = 0;
    const BroadcastEqAllReduce<std::int32_t, float> algorithm(rank, {100, 3, 20});
    CUDA_CHECK(cudaMemGetInfo(&free, &total));
    EXPECT_GT(algorithm.find().budget(), 0);
    EXPECT_LE(algorithm.find().budget(), static_cast<std::int64_t>(total / 2));
    EXPECT_EQ(algorithm.find().budget(), rank.exchange(algorithm.find().budget()).front());
    rank.barrier();
  });
}

// ---- The search alone -------------------------------------------------------------------------------------

// With grids of at most so many blocks; before, all flags of the matrix are set.
template <SparseIndex Index>
void find(Rank& rank, RowList<Index> local, RowList<Index> global, std::int32_t* positions,
          cudaStream_t stream, std::int64_t max_blocks) {
  const auto bytes = static_cast<std::size_t>(matrix_bytes(local.count, global.count));
  const DeviceBuffer<FlagVec16> matrix(rank.device(), bytes / sizeof(FlagVec16));
  if (bytes > 0) CUDA_CHECK(cudaMemset(matrix.data(), 1, bytes));
  CUDA_CHECK(cudaDeviceSynchronize());
  find_by_matrix(local, global, matrix.data(), positions, stream, max_blocks);
  rank.synchronize(stream);  // the matrix is freed next
}

class MatrixSearch : public testing::TestWithParam<std::int64_t> {};
INSTANTIATE_TEST_SUITE_P(BroadcastEq, MatrixSearch, testing::Values(1, 3, kMaxBlocks));

// A row without a true entry must not get place 0, as an argmax would return.
TEST_P(MatrixSearch, FindsEachRowThatIsThereAndNoOther) {
  run_ranks(1, [](Rank& rank) {
    expect_all_places(rank, kFlagsPerVector,
                      [&](auto... arguments) { find(rank, arguments..., GetParam()); });
  });
}

// 38 vectors x 19 strips, and 600 rows: more than a grid of one block or of three has threads, or warps.
TEST_P(MatrixSearch, GoesOnWhereTheGridEnds) {
  run_ranks(1, [](Rank& rank) {
    expect_places<std::int32_t>(rank, list_of<std::int32_t>(stride(2, 2, 600)),
                                list_of<std::int32_t>(stride(0, 3, 600)),
                                [&](auto... arguments) { find(rank, arguments..., GetParam()); });
  });
}

// One object for lists of all sizes: its matrix grows, and keeps flags of earlier lists.
TEST(BroadcastEqSearch, FindsEachRowThatIsThereAndNoOther) {
  run_ranks(1, [](Rank& rank) {
    const FrameAlone alone(rank);
    BroadcastEqSearch find(alone.frame);
    expect_all_places(rank, kRowsOfStrip, find);
  });
}

TEST(MatrixBytes, AreCountedInSixtyFourBits) {
  EXPECT_EQ(matrix_bytes(50'000, 386'277), std::int64_t{50'000} * 386'288);  // to a multiple of 16
  EXPECT_EQ(matrix_bytes(1, 1), 16);
  EXPECT_EQ(matrix_bytes(3, 16), 48);
  EXPECT_EQ(matrix_bytes(3, 17), 96);
  EXPECT_EQ(matrix_bytes(0, 17), 0);
}

TEST(BroadcastEqCost, IsThePagesCostCard) {
  using Version32 = BroadcastEqAllReduce<std::int32_t, float>;
  const sparse_nonzero::SparseCall call = {
      .ranks = 2, .rank = 1, .features = 2048, .local = 50'000, .most = 50'000, .global = 99'500};
  const Cost cost = Version32::cost(call);
  EXPECT_EQ(cost.comparisons, 4'975'000'000);
  EXPECT_EQ(cost.launches, 2);
  EXPECT_EQ(cost.memory, 50'000 * std::int64_t{99'504});
  EXPECT_EQ(cost.host_waits, 3);
  const sparse_nonzero::SparseCall empty = {
      .ranks = 2, .rank = 1, .features = 2048, .local = 0, .most = 50'000, .global = 50'000};
  const Cost none = Version32::cost(empty);
  EXPECT_EQ(none.comparisons, 0);
  EXPECT_EQ(none.launches, 0);
  EXPECT_EQ(none.memory, 0);
}

}  // namespace
}  // namespace overlap::sparse_broadcast_eq
