// Chapter 19 on any GPUs of compute capability 9.0: right for every number of ranks, all sizes that TMA
// takes, both types, call after call; fused_reduce_scatter_order_test.cu tests the reduction order.
#include "19_fused_reduce_scatter/fused_reduce_scatter.cuh"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "block_run.hpp"
#include "dense_run.hpp"
#include "in_company.hpp"
#include "stopped_run.hpp"

namespace overlap::fused_reduce_scatter {
namespace {

using tensor_core_gemm::Tile;

/// Small tiles, so that small GEMMs have many.
using Small = Tile<64, 64, 2>;
using Wide = Tile<128, 128, 2>;
template <SixteenBit T, typename Wire = SixteenBitWire>
using WithSmallTiles = FusedReduceScatter<T, Wire, Small>;

class OnRanks : public testing::TestWithParam<int> {
 protected:
  /// A depth of which each rank gets `eights` times 8.
  std::int64_t depth(int eights) const { return std::int64_t{8} * eights * GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(FusedReduceScatter, OnRanks, testing::Values(1, 2, 3, 4, 8),
                         testing::PrintToStringParamName());

TEST_P(OnRanks, AreRightAroundTiles) {
  // One row and fewer rows than ranks; no whole tile; several tiles of each owner; a long k.
  const std::vector<MatmulShape> shapes = {{1, 8, depth(1)},    {5, 24, depth(2)},    {3, 136, depth(9)},
                                           {130, 72, depth(3)}, {257, 136, depth(8)}, {300, 264, depth(1)}};
  expect_all_right<FusedReduceScatter<__half>, ScatterProblem<__half>>(GetParam(), shapes);
  expect_all_right<WithSmallTiles<__nv_bfloat16>, ScatterProblem<__nv_bfloat16>>(GetParam(), shapes);
  expect_all_right<WithSmallTiles<__half, F32Wire>, ScatterProblem<__half>>(GetParam(), shapes);
}

TEST_P(OnRanks, OtherTilesAndTypesAreRight) {
  const std::vector<MatmulShape> shapes = {{150, 200, depth(5)}, {7, 8, depth(1)}};
  expect_all_right<FusedReduceScatter<__nv_bfloat16>, ScatterProblem<__nv_bfloat16>>(GetParam(), shapes);
  expect_all_right<FusedReduceScatter<__nv_bfloat16, F32Wire>, ScatterProblem<__nv_bfloat16>>(GetParam(),
                                                                                              shapes);
  expect_all_right<FusedReduceScatter<__half, F32Wire>, ScatterProblem<__half>>(GetParam(), shapes);
  expect_all_right<FusedReduceScatter<__half, SixteenBitWire, Wide>, ScatterProblem<__half>>(GetParam(),
                                                                                             shapes);
}

TEST_P(OnRanks, AreRightOnRandomSizes) {
  // 40 sizes for each of the five numbers of ranks; each algorithm runs a third of them.
  const unsigned seed = 20261900 + static_cast<unsigned>(GetParam());
  SCOPED_TRACE("seed " + std::to_string(seed));
  const std::vector<MatmulShape> shapes = random_shapes(40, seed, {200}, {20, 8}, {10, 8 * GetParam()});
  expect_all_right<WithSmallTiles<__half>, ScatterProblem<__half>>(GetParam(), every(3, 0, shapes), seed);
  expect_all_right<WithSmallTiles<__nv_bfloat16>, ScatterProblem<__nv_bfloat16>>(GetParam(),
                                                                                 every(3, 1, shapes), seed);
  expect_all_right<WithSmallTiles<__half, F32Wire>, ScatterProblem<__half>>(GetParam(), every(3, 2, shapes),
                                                                            seed);
}

TEST_P(OnRanks, CallsMayFollowEachOtherAtOnce) {
  // With rows for all ranks, and with one row: ranks without rows must not run ahead.
  const std::vector<MatmulShape> shapes = {{150, 72, depth(2)}, {1, 8, depth(1)}};
  const int calls = calls_at_once(6);
  expect_all_right<WithSmallTiles<__half>, ScatterProblem<__half>>(GetParam(), shapes, 1, calls);
  expect_all_right<WithSmallTiles<__half, F32Wire>, ScatterProblem<__half>>(GetParam(), shapes, 1, calls);
}

TEST_P(OnRanks, MakeZerosOfNoSums) {
  run_ranks(GetParam(), [](Rank& rank) {
    const MatmulShape whole{5, 16, 0};
    const std::int64_t own = balanced_share(whole.m, rank.size(), rank.id()).size() * whole.n;
    const DeviceBuffer<__half> c(rank.device(), own);
    if (own > 0) CUDA_CHECK(cudaMemset(c.data(), 0xff, c.bytes()));
    CUDA_CHECK(cudaDeviceSynchronize());
    FusedReduceScatter<__half> algorithm(rank, whole);
    algorithm.run(nullptr, nullptr, c.data(), rank.stream());
    rank.synchronize(rank.stream());
    std::vector<__half> found(static_cast<std::size_t>(own));
    if (own > 0) CUDA_CHECK(cudaMemcpy(found.data(), c.data(), c.bytes(), cudaMemcpyDeviceToHost));
    for (const __half element : found) ASSERT_EQ(value_of(element), 0);
  });
}

// ---- Chapter 07's block with chapter 17's kernel and this one ---------------------------------------------
TEST_P(OnRanks, BlocksAreRight) {
  expect_right_blocks<SmallBlock<__half>>(GetParam(), block_shapes(GetParam()));
  expect_right_blocks<FusedBlock<__half>>(GetParam(), block_shapes(GetParam()));
  expect_right_blocks<SmallBlock<__nv_bfloat16>>(GetParam(), block_shapes(GetParam()));
}

TEST_P(OnRanks, BlocksAreRightOnRandomSizes) {
  const unsigned seed = 20261907 + static_cast<unsigned>(GetParam());
  SCOPED_TRACE("seed " + std::to_string(seed));
  expect_right_blocks<SmallBlock<__half>>(GetParam(), random_block_shapes(GetParam(), 20, seed), seed);
}

TEST_P(OnRanks, BlocksMayFollowEachOtherAtOnce) {
  // One token: ranks without any must not run ahead in either half.
  const std::int64_t f = 8 * GetParam();
  const int calls = calls_at_once(5);
  expect_right_blocks<SmallBlock<__half>>(GetParam(), {{70, 3 * f, 72}, {1, f, 8}}, 5, calls);
}

TEST_P(OnRanks, BlocksAreRightOnRandomNormals) {
  for (const Activation activation : {Activation::kGeluTanh, Activation::kGeluErf}) {
    const Verification all = found_on(GetParam(), [activation](Rank& rank) {
      MlpProblem<__half> problem(rank, {40, 48 * rank.size(), 64}, 3, activation);
      SmallBlock<__half> block(rank, problem.whole());
      problem.fill_normal();
      problem.poison_result();
      rank.barrier();
      block.run(problem.a(), problem.b(), problem.c(), rank.stream());
      rank.synchronize(rank.stream());
      return problem.compare_normal(false);
    });
    EXPECT_TRUE(all.ok()) << describe(all);
    EXPECT_EQ(all.elements, 40 * 64);
  }
}

TEST(Block, IsSkippedWhereTmaCannotStepOverItsRows) {
  const auto reason_of = [](MatmulShape shape) {
    return run_dense<FusedBlock<__half>, MlpProblem<__half>>(2, shape, 1).skipped;
  };
  EXPECT_EQ(reason_of({33, 48, 16}), "");
  EXPECT_NE(reason_of({33, 48, 20}).find("--k: rows of 20 elements of 16 bits"), std::string::npos);
  EXPECT_NE(reason_of({33, 40, 16}).find("--n: rows of 20 elements of 16 bits"), std::string::npos);
  EXPECT_NE(reason_of({1 << 16, 16, 1 << 15}).find("2147483648 elements is too large"), std::string::npos);
}

TEST(CostOf, ABlockIsThePagesCostCard) {
  // A rank's 1024 of 8192 tokens are a shard of the first GEMM, and 8 x 32 tiles of 128 x 256 of the second.
  const Cost cost = FusedBlock<__half>::cost({8192, 28672, 8192}, 8, 3);
  const std::int64_t shard = 1024 * 8192 * 2, hidden = 8192 * 3584 * 2;
  EXPECT_EQ(cost.messages, 7 + 7 * 256);
  EXPECT_EQ(cost.bytes_out, 234'881'024);  // 2 * 7 shards: those of chapter 07's other forms
  EXPECT_EQ(cost.bytes_in, 234'881'024);
  EXPECT_EQ(cost.launches, 5);
  EXPECT_EQ(cost.products, 0);
  EXPECT_EQ(cost.memory, shard + hidden + 2 * 8 * shard + 2 * 8 * shard + 8 * 256 * 4);
  EXPECT_EQ(cost.memory, 612'376'576);
}

// ---- Unsupported -----------------------------------------------------------------------------------------
class InCompany : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(FusedReduceScatter, InCompany, testing::Values(2, 4));

TEST_P(InCompany, IsRightInOppositeOrderBesideNccl) {
  expect_right_beside_nccl<FusedReduceScatter<__half>, ScatterProblem<__half>>(GetParam(), kNcclBlocks);
}

TEST_P(InCompany, TwoAreRightInOppositeOrder) {
  expect_two_right<FusedReduceScatter<__half>, ScatterProblem<__half>>(GetParam());
}

TEST(Calls, AreRightWhereWordsOverflow) {
  const WordsThatOverflow soon;
  expect_right<FusedReduceScatter<__half>, ScatterProblem<__half>>(2, {70, 72, 32}, 1, 6);
}

TEST(Stopped, ByARankThatThrowsInsteadOfMakingItsCall) {
  expect_stopped_run<WithSmallTiles<__half>, ScatterProblem<__half>>(3, 1, 1, {130, 72, 48});
  expect_stopped_run<WithSmallTiles<__half, F32Wire>, ScatterProblem<__half>>(3, 2, 1, {130, 72, 48});
}

void expect_refused(int ranks, MatmulShape whole, const std::string& sentence) {
  const auto run = [&](Rank& rank) {
    require_all_sizes(whole, rank.size());
    FusedReduceScatter<__half> algorithm(rank, whole);
  };
  expect_thrown<UsageError>([&] { run_ranks(ranks, run); }, sentence);
}

TEST(Refused, RowsThatTmaCannotStepOver) {
  expect_refused(2, {64, 64, 24}, "--k: rows of 12 elements");
  expect_refused(3, {64, 63, 24}, "--n: rows of 63 elements");
  expect_refused(2, {1 << 16, 1 << 15, 16}, "2147483648 elements is too large");
}

// ---- Order and cost --------------------------------------------------------------------------------------
TEST(Order, TakesEachTileOnceOwnerByOwnerTheOwnLast) {
  for (const int ranks : {1, 2, 3, 8}) {
    for (const std::int64_t m : {1, 5, 200, 1000}) {
      const Owners owners = Owners::of<Tile<64, 128, 2>>({m, 300, 64}, ranks);
      for (int rank = 0; rank < ranks; ++rank) {
        const OwnedOrder order{owners, rank, 2};
        std::set<std::tuple<int, int, int>> seen;
        int last_step = 0;
        for (int i = 0; i < order.tiles(); ++i) {
          const OwnedTile tile = order(i);
          const Tiling tiling = owners.tiling(tile.owner);
          ASSERT_TRUE(tile.place.m >= 0 && tile.place.m < tiling.along_m);
          ASSERT_TRUE(tile.place.n >= 0 && tile.place.n < 3);
          EXPECT_TRUE(seen.insert({tile.owner, tile.place.m, tile.place.n}).second) << i;
          const int step = (tile.owner - rank - 1 + 2 * ranks) % ranks;
          EXPECT_GE(step, last_step);
          last_step = step;
        }
        EXPECT_EQ(last_step, ranks - 1);
        EXPECT_EQ(order(order.tiles() - 1).owner, rank);
      }
    }
  }
}

TEST(Order, OfAnOwnerIsInGroups) {
  const Owners owners = Owners::of<Tile<64, 128, 2>>({2 * 20 * 64, 300, 64}, 2);
  const OwnedOrder order{owners, 0};
  for (int i = 0; i < order.tiles() / 2; ++i) {  // a column of eight rows of tiles, then the next column
    const OwnedTile tile = order(i);
    const auto expected = tensor_core_gemm::place_of(i, owners.tiling(1), 8);
    ASSERT_EQ(tile.owner, 1);
    ASSERT_TRUE(tile.place.m == expected.m && tile.place.n == expected.n) << i;
  }
}

TEST(OwnersOf, HaveTheirRowsAndAtLeastOneRowOfTiles) {
  const Owners owners = Owners::of<Tile<64, 128, 2>>({131, 300, 64}, 2);
  EXPECT_EQ(owners.rows(0), 66);
  EXPECT_EQ(owners.rows(1), 65);
  EXPECT_EQ(owners.tiling(0).along_m, 2);
  EXPECT_EQ(owners.tiles(), 12);
  const Owners few = Owners::of<Tile<64, 128, 2>>({1, 8, 64}, 3);
  EXPECT_EQ(few.rows(2), 0);
  EXPECT_EQ(few.tiling(2).along_m, 1);
}

TEST(CostOf, AFusedCallIsThePagesCostCard) {
  // f16, [8192, 32768] times [32768, 4096] on 8 GPUs: 1024 rows of each are 8 x 16 tiles of 128 x 256.
  const MatmulShape whole{8192, 4096, 32768};
  const std::int64_t chunk = 8'388'608;  // 1024 x 4096 elements of 2 bytes
  const Cost cost = FusedReduceScatter<__half>::cost(whole, 8, 3);
  EXPECT_EQ(cost.messages, 7 * 128);
  EXPECT_EQ(cost.bytes_out, 7 * chunk);
  EXPECT_EQ(cost.bytes_in, 7 * chunk);
  EXPECT_EQ(cost.launches, 1);
  EXPECT_EQ(cost.products, 0);
  EXPECT_EQ(cost.memory, 16 * chunk + 8 * 128 * 4);
  EXPECT_EQ((FusedReduceScatter<__half, F32Wire>::cost(whole, 8, 3).bytes_out), 14 * chunk);
  const Cost alone = FusedReduceScatter<__half>::cost(whole, 1, 0);
  EXPECT_EQ(alone.messages, 0);
  EXPECT_EQ(alone.bytes_out, 0);
  EXPECT_EQ(alone.bytes_in, 0);
}

TEST(CostOf, ACallWithNothingToComputeMovesAndLaunchesNothing) {
  for (const MatmulShape shape : {MatmulShape{0, 8, 16}, MatmulShape{70, 0, 16}, MatmulShape{70, 8, 0}}) {
    SCOPED_TRACE(std::to_string(shape.m) + " x " + std::to_string(shape.n) + " x " + std::to_string(shape.k));
    const Cost cost = FusedReduceScatter<__half>::cost(shape, 2, 0);
    EXPECT_EQ(cost, Cost{.memory = cost.memory});
  }
}

}  // namespace
}  // namespace overlap::fused_reduce_scatter
