// Chapter 17 with few rows, on any GPUs of compute capability 9.0: blocks push the shards, and the result is
// right on every element for every number of ranks, call after call.
#include "17_gemm_on_signals/experiments/pushed_by_blocks.cuh"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "16_tensor_core_gemm/fitting.cuh"
#include "in_company.hpp"
#include "signalled_gemm_run.hpp"

namespace overlap::gemm_on_signals::few_rows {
namespace {

using tensor_core_gemm::MiddleTile;
template <typename T>
using Small = PushedByBlocks<T>;
template <typename T>
using Middle = PushedByBlocks<T, Major::kMN, MiddleTile>;
template <typename T>
using Fitted = tensor_core_gemm::Fitting<PushedByBlocks<T>, tensor_core_gemm::product_of_a_rank>;

class FewRows : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(PushedByBlocks, FewRows, testing::Values(1, 2, 3, 4, 8),
                         testing::PrintToStringParamName());

/// At most seven tiles of 64 x 128. Ranks without rows, tiles with rows of all ranks and of two, shards that
/// end with a tile; one k-block, whole pieces, pieces with fewer k-blocks and columns, and pieces with more
/// boxes than there are stages.
std::vector<MatmulShape> shapes_on(int ranks) {
  const std::int64_t n = 8 * ranks;
  return {
      {1, n, 8},          {ranks, n, 16}, {3 * ranks + 1, 2 * n, 72}, {7 * ranks, 17 * n, 264},
      {130, 9 * n, 1032}, {400, n, 1000}, {40 * ranks, n, 256},       {ranks < 8 ? 64 * ranks : 440, n, 328}};
}

TEST_P(FewRows, AreRightInBothTypes) {
  expect_all_right<Small<__half>, GatherProblem<__half>>(GetParam(), shapes_on(GetParam()));
  expect_all_right<Small<__nv_bfloat16>, GatherProblem<__nv_bfloat16>>(GetParam(), shapes_on(GetParam()));
  expect_all_right<Middle<__half>, GatherProblem<__half>>(GetParam(), shapes_on(GetParam()));
  expect_all_right<Fitted<__nv_bfloat16>, GatherProblem<__nv_bfloat16>>(GetParam(), shapes_on(GetParam()));
}

TEST_P(FewRows, AreRightOnRandomSizes) {
  // 200 sizes in all, of up to four rows and one column of tiles.
  const unsigned seed = 17440 + static_cast<unsigned>(GetParam());
  SCOPED_TRACE("seed " + std::to_string(seed));
  const int ranks = GetParam();
  const std::vector<MatmulShape> shapes = random_shapes(40, seed, {256}, {16, 8 * ranks}, {90, 8});
  expect_all_right<Small<__half>, GatherProblem<__half>>(ranks, shapes, seed);
}

TEST_P(FewRows, CallsFollowEachOtherAtOnce) {
  const int ranks = GetParam(), calls = calls_at_once(12);
  expect_right<Small<__half>, GatherProblem<__half>>(ranks, {150, 16 * ranks, 520}, 1, calls);
  expect_right<Small<__half>, GatherProblem<__half>>(ranks, {1, 16 * ranks, 72}, 1, calls);
}

TEST_P(FewRows, TheCallerOwnsItsMatricesBehindTheCall) {
  expect_caller_owns_signalled<Small<__half>>(GetParam());
}

TEST_P(FewRows, NothingToMultiplyIsNoCall) {
  expect_nothing_to_multiply_to_be_no_call<Small<__half>>(GetParam());
}

TEST_P(FewRows, ARankThatThrowsInTheMiddleEndsTheRun) {
  expect_a_rank_that_throws_to_end_the_run<Small<__half>>(GetParam());
}

TEST(FewRowsInCompany, AreRightInOppositeOrderBesideNccl) {
  constexpr int kRanks = 2;
  int gpus = 0;
  CUDA_CHECK(cudaGetDeviceCount(&gpus));
  if (kRanks > gpus) GTEST_SKIP() << "NCCL needs " << kRanks << " GPUs";
  run_or_skip([&] {
    run_in_company<Small<__half>, GatherProblem<__half>>(
        kRanks, {130, 64, 520}, [](Rank& rank) { return nccl_of(rank, kNcclBlocks); }, kNcclBlocks);
  });
}

TEST(FewRowsCalls, AreRightWhereWordsOverflow) {
  const WordsThatOverflow soon;
  expect_right<Small<__half>, GatherProblem<__half>>(2, {70, 32, 520}, 1, 6);
}

TEST(FewRowsPieces, GrowAndHaveAllBlocksOnce) {
  for (const int along_k : {0, 1, 4, 5, 12, 13, 128, 544, 545, 5000}) {
    const Pieces pieces = growing_pieces(along_k);
    SCOPED_TRACE(std::to_string(along_k) + " k-blocks in " + std::to_string(pieces.count));
    EXPECT_LE(pieces.count, kMostPieces);
    EXPECT_EQ(pieces.blocks, along_k <= 544 ? 1 : along_k == 545 ? 2 : 10);
    EXPECT_EQ(pieces.begin(0), 0);
    for (int piece = 0; piece < pieces.count; ++piece)
      EXPECT_EQ(pieces.begin(piece + 1) - pieces.begin(piece), pieces.blocks * (1 + piece / 4));
    EXPECT_GE(pieces.begin(pieces.count), along_k);
    EXPECT_TRUE(along_k == 0 || pieces.begin(pieces.count - 1) < along_k);  // none is empty
  }
}

TEST(FewRowsCost, IsThePagesCostCard) {
  // 2 ranks with 128 rows each, k = 8192, f16: shards of 2 MiB in 30 pieces: four each of 1 to 7 k-blocks,
  // two of 8.
  const MatmulShape whole{256, 7168, 8192};
  EXPECT_EQ(Small<__half>::cost(whole, 2, 1), (Cost{.messages = 30,
                                                    .bytes_out = 2'097'152,
                                                    .bytes_in = 2'097'152,
                                                    .launches = 1,
                                                    .memory = 8'388'608}));
  EXPECT_EQ(Small<__half>::cost({0, 16, 8}, 2, 0), Cost{});
  EXPECT_EQ(Small<__half>::cost({4, 16, 0}, 2, 0), Cost{});
}

}  // namespace
}  // namespace overlap::gemm_on_signals::few_rows
