// Chapter 18 on any GPUs of compute capability 9.0: both kernels are right for every number of ranks and
// rows, call after call; they do not write the caller's inputs; a rank that throws ends the run.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "16_tensor_core_gemm/fitting.cuh"
#include "18_ring_in_kernel/ring_ahead.cuh"
#include "18_ring_in_kernel/ring_in_kernel.cuh"
#include "dense_run.hpp"
#include "in_company.hpp"
#include "overlap/gpu/host_copy.hpp"
#include "ownership.hpp"
#include "stopped_run.hpp"

namespace overlap::ring_in_kernel {
namespace {

template <typename T>
using Problem = GatherProblem<T>;

/// So many ranks, each with `columns` columns: shares of n have to be multiples of 8.
MatmulShape on(int ranks, std::int64_t m, std::int64_t columns, std::int64_t k) {
  return {m, ranks * columns, k};
}

/// Fewer rows than ranks, around a tile, several tiles of which the last is partly filled, more tiles than
/// multiprocessors, one block of k and more than there are stages.
std::vector<MatmulShape> shapes_on(int ranks) {
  return {on(ranks, 1, 8, 8),           on(ranks, 5, 16, 72),           on(ranks, 128 * ranks, 8, 64),
          on(ranks, 33, 264, 136),      on(ranks, 129 * ranks, 40, 72), on(ranks, 130 * ranks - 1, 24, 328),
          on(ranks, 200 * ranks, 8, 8), on(ranks, 2 * ranks, 520, 24)};
}

class OnRanks : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(RingInKernel, OnRanks, testing::Values(1, 2, 3, 4, 8),
                         testing::PrintToStringParamName());

TEST_P(OnRanks, AreRightInBothTypes) {
  const std::vector<MatmulShape> shapes = shapes_on(GetParam());
  expect_all_right<RingInKernel<__half>, Problem<__half>>(GetParam(), shapes);
  expect_all_right<RingInKernel<__nv_bfloat16>, Problem<__nv_bfloat16>>(GetParam(), shapes);
  expect_all_right<RingAhead<__half>, Problem<__half>>(GetParam(), shapes);
  expect_all_right<RingAhead<__nv_bfloat16>, Problem<__nv_bfloat16>>(GetParam(), shapes);
}

TEST_P(OnRanks, AreRightWithTilesForFewRows) {
  const int ranks = GetParam();
  // A shard without rows and more k-blocks than stages, one of half a tile, one of a tile and a bit.
  const std::vector<MatmulShape> shapes = {on(ranks, std::max(1, ranks - 1), 8, 584),
                                           on(ranks, 32 * ranks, 136, 72), on(ranks, 65 * ranks + 1, 8, 72)};
  expect_all_right<RingAhead<__half, SmallTile>, Problem<__half>>(ranks, shapes);
  expect_all_right<RingAhead<__nv_bfloat16, MiddleTile>, Problem<__nv_bfloat16>>(ranks, shapes);
  expect_all_right<Fitting<RingAhead<__half>>, Problem<__half>>(ranks, shapes);
  expect_right<Fitting<RingAhead<__half>>, Problem<__half>>(ranks, shapes[1], 1, calls_at_once(12));
}

TEST_P(OnRanks, AreRightOnRandomSizes) {
  // 200 sizes in all, over the five numbers of ranks.
  const unsigned seed = 20261218 + static_cast<unsigned>(GetParam());
  SCOPED_TRACE("seed " + std::to_string(seed));
  const std::vector<MatmulShape> shapes = random_shapes(40, seed, {300}, {8, 8 * GetParam()}, {12, 8});
  expect_all_right<RingInKernel<__half>, Problem<__half>>(GetParam(), shapes, seed);
  expect_all_right<RingAhead<__half>, Problem<__half>>(GetParam(), shapes, seed);
}

TEST_P(OnRanks, CallsFollowEachOtherAtOnce) {
  for (const std::int64_t m : {1, 13, 150}) {
    const MatmulShape shape = on(GetParam(), m, 8, 24);
    expect_right<RingInKernel<__half>, Problem<__half>>(GetParam(), shape, 1, calls_at_once(20));
    expect_right<RingAhead<__half>, Problem<__half>>(GetParam(), shape, 1, calls_at_once(20));
  }
}

TEST_P(OnRanks, TheCallerOwnsAAndBAndCBehindTheCall) {
  run_ranks(GetParam(), [](Rank& rank) {
    for (const std::int64_t m : {1, 19}) {
      const MatmulShape shape = on(rank.size(), m, 16, 40);
      expect_caller_owns_matrices_on<RingInKernel<__half>, Problem<__half>>(rank, shape);
      expect_caller_owns_matrices_on<RingAhead<__half>, Problem<__half>>(rank, shape);
    }
  });
}

TEST(Tunings, AreAllRight) {
  const std::vector<MatmulShape> shapes = {on(3, 300, 264, 72), on(3, 7, 520, 136)};
  for (const Tuning tuning : {Tuning{Minor::kN, 8}, Tuning{Minor::kM, 1}, Tuning{Minor::kN, 1},
                              Tuning{Minor::kM, 8, 1}, Tuning{Minor::kM, 8, 2}}) {
    expect_all_right<RingInKernel<__half>, Problem<__half>>(3, shapes, 1, 1, tuning);
    expect_all_right<RingAhead<__half>, Problem<__half>>(3, shapes, 1, 1, tuning);
  }
  expect_all_right<RingInKernel<__half, tensor_core_gemm::Tile<64, 256, 4>>, Problem<__half>>(3, shapes);
  expect_all_right<RingInKernel<__half, tensor_core_gemm::Tile<128, 128, 2>>, Problem<__half>>(3, shapes);
  expect_all_right<RingAhead<__half, tensor_core_gemm::Tile<64, 128, 6>>, Problem<__half>>(3, shapes);
}

TEST(Turns, EachBlockIsSentByOneTileOfTheRow) {
  for (const int senders : {1, 2, 3, 16}) {
    for (int block = 0; block < 40; ++block) {
      int sent = 0;
      for (int n = 0; n < 20; ++n) sent += Turns{senders}.sends(n, block);
      EXPECT_EQ(sent, 1) << senders << " senders, k-block " << block;
    }
  }
}

TEST(Pieces, EachIsCountedAsOftenAsItHasBlocks) {
  for (const int along_k : {1, 2, 3, 4, 5, 8, 63, 64}) {
    const Pieces pieces = Pieces::of({3, 1, along_k});
    std::map<int, std::uint32_t> counted;
    for (int m = 0; m < 3; ++m) {
      for (int block = 0; block < along_k; ++block) ++counted[pieces.word(2, m, block)];
    }
    for (int m = 0; m < 3; ++m) {
      for (int block = 0; block < along_k; ++block)
        EXPECT_EQ(counted[pieces.word(2, m, block)], pieces.counts(block))
            << along_k << ", k-block " << block;
    }
    EXPECT_GE(counted.begin()->first, 2 * pieces.words());
    EXPECT_LT(counted.rbegin()->first, 3 * pieces.words());
  }
}

TEST(Tunings, TakeEachTileOnce) {
  for (const Minor minor : {Minor::kM, Minor::kN}) {
    for (const int width : {1, 2, 8}) {
      const ShardOrder order{{5, 3, 1}, {minor, width}};
      std::set<std::pair<int, int>> seen;
      for (int i = 0; i < order.tiles(); ++i) {
        const TilePlace tile = order(i);
        EXPECT_TRUE(tile.m >= 0 && tile.m < 5 && tile.n >= 0 && tile.n < 3);
        EXPECT_TRUE(seen.insert({tile.m, tile.n}).second) << i;
      }
    }
  }
  // Strips of two tiles: along m the second tile is below the first, along n beside it.
  EXPECT_EQ((ShardOrder{{5, 3, 1}, {Minor::kM, 2}}(1).m), 1);
  EXPECT_EQ((ShardOrder{{5, 3, 1}, {Minor::kN, 2}}(1).n), 1);
}

TEST(Tunings, TakeTilesInGroupsUnlessTheyAreAskedNotTo) {
  for (const Tuning tuning : {Tuning{}, kArticle}) {
    const ShardOrder order{{20, 3, 1}, tuning};
    for (int i = 0; i < order.tiles(); ++i) {  // a column of eight rows of tiles, then the next column
      const TilePlace tile = order(i), expected = tensor_core_gemm::place_of(i, order.tiling, 8);
      ASSERT_TRUE(tile.m == expected.m && tile.n == expected.n) << i;
    }
  }
}

// ---- In company ------------------------------------------------------------------------------------------
class InCompany : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(RingInKernel, InCompany, testing::Values(2, 4));

TEST_P(InCompany, AreRightInOppositeOrderBesideNccl) {
  expect_right_beside_nccl<RingInKernel<__half>, Problem<__half>>(GetParam(), kArticle, kNcclBlocks);
  expect_right_beside_nccl<RingAhead<__half>, Problem<__half>>(GetParam(), Tuning{}, kNcclBlocks);
}

TEST_P(InCompany, TwoAreRightInOppositeOrder) {
  expect_two_right<RingInKernel<__half>, Problem<__half>>(GetParam(), kArticle);
  expect_two_right<RingAhead<__half>, Problem<__half>>(GetParam(), Tuning{});
}

// ---- A rank that throws ----------------------------------------------------------------------------------
TEST(ARankThatThrows, EndsTheRun) {
  expect_stopped_run<RingInKernel<__half>, Problem<__half>>(3, 2, 0, on(3, 300, 264, 72));
  expect_stopped_run<RingAhead<__half>, Problem<__half>>(3, 2, 0, on(3, 300, 264, 72));
}

// ---- Unsupported -----------------------------------------------------------------------------------------
TEST(Refused, RowsThatTmaCannotStepOver) {
  const auto refused = [](MatmulShape shape) {
    EXPECT_THROW(run_ranks(2, [&](Rank& rank) { RingInKernel<__half> algorithm(rank, shape); }), UsageError);
    EXPECT_THROW(run_ranks(2, [&](Rank& rank) { RingAhead<__half> algorithm(rank, shape); }), UsageError);
  };
  refused({8, 16, 12});
  refused({8, 24, 16});
}

TEST(NothingToMove, IsNoKernelAndZerosWithoutDepth) {
  run_ranks(2, [](Rank& rank) {
    const DeviceBuffer<__half> nothing(rank.device(), 8), c(rank.device(), 5 * 8);
    CUDA_CHECK(cudaMemset(c.data(), 0xff, c.bytes()));
    CUDA_CHECK(cudaDeviceSynchronize());
    RingInKernel<__half> none(rank, {0, 16, 8});
    none.run(nothing.data(), nothing.data(), c.data(), rank.stream());
    rank.synchronize(rank.stream());
    for (const __half value : on_host(c.data(), 5 * 8)) EXPECT_TRUE(is_nan(value));
    RingAhead<__half> sums_of_nothing(rank, {5, 16, 0});
    sums_of_nothing.run(nothing.data(), nothing.data(), c.data(), rank.stream());
    rank.synchronize(rank.stream());
    for (const __half value : on_host(c.data(), 5 * 8)) EXPECT_EQ(value_of(value), 0);
  });
}

// ---- Cost ------------------------------------------------------------------------------------------------
TEST(CostOf, IsThePagesCostCard) {
  // 8 ranks with 1024 rows each, k = 4096, f16: shards of 8 MiB, 8 x 64 boxes of 128 x 64.
  const MatmulShape whole{8192, 32768, 4096};
  const Cost cost = RingInKernel<__half>::cost(whole, 8, 3);
  EXPECT_EQ(cost.messages, 7 * 8 * 64);
  EXPECT_EQ(cost.bytes_out, 58'720'256);
  EXPECT_EQ(cost.bytes_in, 58'720'256);
  EXPECT_EQ(cost.launches, 1);
  EXPECT_EQ(cost.memory, 117'440'512);
  EXPECT_EQ(RingAhead<__half>::cost(whole, 8, 3), cost);
}

TEST(CostOf, CountsUnevenAndEmptyShares) {
  // 2 rows on 3 ranks: shards of 1, 1, 0 rows of 16 elements. Rank 0 does not send on rank 2's, which has
  // none.
  const MatmulShape whole{2, 24, 16};
  const Cost first = RingInKernel<__half>::cost(whole, 3, 0);
  EXPECT_EQ(first.bytes_out, 64);
  EXPECT_EQ(first.bytes_in, 32);
  EXPECT_EQ(first.messages, 2);
  const Cost last = RingInKernel<__half>::cost(whole, 3, 2);
  EXPECT_EQ(last.bytes_out, 32);
  EXPECT_EQ(last.bytes_in, 64);
  EXPECT_EQ(last.messages, 1);
  EXPECT_EQ(RingAhead<__half>::cost(whole, 3, 0).messages, 2);
  EXPECT_EQ(RingAhead<__half>::cost(whole, 3, 2).messages, 1);
  EXPECT_EQ(RingInKernel<__half>::cost({0, 24, 16}, 3, 0), Cost{});
  EXPECT_EQ(RingInKernel<__half>::cost({64, 8, 8}, 1, 0).bytes_out, 0);
  // Without columns there are slots all the same: 22 x 8 elements, rounded up to 256, 2 of them, twice.
  EXPECT_EQ(RingInKernel<__half>::cost({64, 0, 8}, 3, 0), Cost{.memory = 2048});
}

}  // namespace
}  // namespace overlap::ring_in_kernel
