// Chapter 17 on any GPUs of compute capability 9.0: right on every element for every number of ranks, for
// tiles with rows of several shards, call after call; a stopped run ends.
#include "17_gemm_on_signals/gemm_on_signals.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <set>
#include <vector>

#include "16_tensor_core_gemm/fitting.cuh"
#include "in_company.hpp"
#include "overlap/gpu/host_copy.hpp"
#include "signalled_gemm_run.hpp"

namespace overlap::gemm_on_signals {
namespace {

using tensor_core_gemm::Tile;
using SmallTile = Tile<64, 64, 2>;
template <typename T>
using Large = GemmOnSignals<T>;
template <typename T>
using Small = GemmOnSignals<T, Major::kMN, SmallTile>;

class OnRanks : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(GemmOnSignals, OnRanks, testing::Values(1, 2, 3, 4, 8),
                         testing::PrintToStringParamName());

TEST_P(OnRanks, AreRightInBothTypes) {
  const std::vector<MatmulShape> shapes = signalled_shapes(GetParam(), 33);  // more tiles than blocks
  expect_all_right<Large<__half>, GatherProblem<__half>>(GetParam(), shapes);
  expect_all_right<Small<__half>, GatherProblem<__half>>(GetParam(), shapes);
  expect_all_right<Large<__nv_bfloat16>, GatherProblem<__nv_bfloat16>>(GetParam(), shapes);
}

TEST_P(OnRanks, AreRightOnRandomSizes) {
  // 250 sizes in all, over the five numbers of ranks, in one, two and five pieces a shard.
  const unsigned seed = 17170 + static_cast<unsigned>(GetParam());
  SCOPED_TRACE("seed " + std::to_string(seed));
  const std::vector<MatmulShape> shapes = random_signalled_shapes(GetParam(), 40, 500, seed);
  const int pieces[] = {1, 2, 5};
  for (std::size_t i = 0; i < 3; ++i) {
    expect_all_right<Small<__half>, GatherProblem<__half>>(GetParam(), every(3, i, shapes), seed, 1,
                                                           pieces[i]);
  }
  expect_all_right<Large<__half>, GatherProblem<__half>>(
      GetParam(), random_signalled_shapes(GetParam(), 10, 700, seed + 1), seed);
}

TEST_P(OnRanks, CallsFollowEachOtherAtOnce) {
  const int ranks = GetParam(), calls = calls_at_once(12);
  expect_right<Small<__half>, GatherProblem<__half>>(ranks, {150, 16 * ranks, 72}, 1, calls);
  expect_right<Small<__half>, GatherProblem<__half>>(ranks, {150, 16 * ranks, 264}, 1, calls, 3);
  // Ranks without rows: no tile waits for their shards.
  expect_right<Small<__half>, GatherProblem<__half>>(ranks, {1, 16 * ranks, 72}, 1, calls);
}

TEST_P(OnRanks, TheCallerOwnsItsMatricesBehindTheCall) {
  expect_caller_owns_signalled<Small<__half>>(GetParam());
}

// ---- Few rows --------------------------------------------------------------------------------------------
/// The tiles for few rows, and the tile chosen by the shape.
template <typename T>
using Middle = GemmOnSignals<T, Major::kMN, tensor_core_gemm::MiddleTile>;
template <typename T>
using Few = GemmOnSignals<T, Major::kMN, tensor_core_gemm::SmallTile>;
template <typename T>
using Fitted = tensor_core_gemm::Fitting<GemmOnSignals<T>>;

/// One tile for all shards or for several, shards of one tile and of one and a bit, ranks without rows; more
/// k-blocks than the smallest tile has stages.
std::vector<MatmulShape> few_rows_of(int ranks) {
  const std::int64_t n = 8 * ranks;
  return {{std::max(1, ranks - 1), n, 584},
          {7 * ranks, 2 * n, 136},
          {32 * ranks, 17 * n, 72},
          {65 * ranks + 1, n, 72}};
}

TEST_P(OnRanks, AreRightWithTilesForFewRows) {
  const std::vector<MatmulShape> shapes = few_rows_of(GetParam());
  expect_all_right<Few<__half>, GatherProblem<__half>>(GetParam(), shapes);
  expect_all_right<Middle<__nv_bfloat16>, GatherProblem<__nv_bfloat16>>(GetParam(), shapes, 1, 1, 3);
  expect_all_right<Fitted<__nv_bfloat16>, GatherProblem<__nv_bfloat16>>(GetParam(), shapes, 1, 1, 2);
}

TEST_P(OnRanks, CallsWithFewRowsFollowEachOtherAtOnce) {
  const int ranks = GetParam(), calls = calls_at_once(12);
  expect_right<Fitted<__half>, GatherProblem<__half>>(ranks, {32 * ranks, 16 * ranks, 72}, 1, calls);
  expect_right<Fitted<__half>, GatherProblem<__half>>(ranks, {20 * ranks + 1, 16 * ranks, 264}, 1, calls, 3);
}

// ---- B by columns ----------------------------------------------------------------------------------------
TEST_P(OnRanks, AreRightWithColumnsOfB) {
  const int ranks = GetParam();
  const MatmulShape whole{150, 24 * ranks, 136};
  run_ranks_or_skip(ranks, [&](Rank& rank) {
    GatherProblem<__half> problem(rank, whole, 5);
    problem.fill_exact();
    problem.poison_result();
    const std::int64_t n = problem.product().n, k = whole.k;
    const std::vector<__half> rows = on_host(problem.b(), n * k);
    std::vector<__half> columns(rows.size());
    for (std::int64_t i = 0; i < k; ++i) {
      for (std::int64_t j = 0; j < n; ++j)
        columns[static_cast<std::size_t>(j * k + i)] = rows[static_cast<std::size_t>(i * n + j)];
    }
    const DeviceBuffer<__half> b = on_device(rank.device(), columns);
    CUDA_CHECK(cudaDeviceSynchronize());
    GemmOnSignals<__half, Major::kK> algorithm(rank, whole);
    algorithm.run(problem.a(), b.data(), problem.c(), rank.stream());
    rank.synchronize(rank.stream());
    rank.barrier();
    const Verification found = problem.compare_exact(false);
    EXPECT_TRUE(found.ok()) << describe(found);
    EXPECT_EQ(found.elements, whole.m * n);
  });
}

TEST_P(OnRanks, TransfersAloneEndWhenAllShardsAreHere) {
  expect_transfers_alone_to_end<Small<__half>>(GetParam(), {GetParam() + 1, 8 * GetParam(), 64}, 2);
}

TEST_P(OnRanks, NothingToMultiplyIsNoCall) {
  expect_nothing_to_multiply_to_be_no_call<Large<__half>>(GetParam());
}

TEST_P(OnRanks, ARankThatThrowsInTheMiddleEndsTheRun) {
  expect_a_rank_that_throws_to_end_the_run<Small<__half>>(GetParam());
}

// ---- Shards and order ------------------------------------------------------------------------------------
// The kernel waits for copies only, which need no multiprocessor: none is set aside.
class InCompany : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(GemmOnSignals, InCompany, testing::Values(2, 4));

TEST_P(InCompany, IsRightInOppositeOrderBesideNccl) {
  expect_right_beside_nccl<GemmOnSignals<__half>, GatherProblem<__half>>(GetParam());
}

TEST(Calls, AreRightWhereWordsOverflow) {
  const WordsThatOverflow soon;
  expect_right<GemmOnSignals<__half>, GatherProblem<__half>>(2, {70, 32, 72}, 1, 6);
}

TEST(ShardsOfRows, AreBalancedShares) {
  for (const int rows : {0, 1, 7, 64, 100, 513}) {
    for (int ranks = 1; ranks <= 8; ++ranks) {
      const Shards shards{rows, ranks};
      for (int rank = 0; rank < ranks; ++rank) {
        EXPECT_EQ((Range{shards.begin(rank), shards.end(rank)}), balanced_share(rows, ranks, rank));
        for (int row = shards.begin(rank); row < shards.end(rank); ++row) ASSERT_EQ(shards.owner(row), rank);
        EXPECT_TRUE(shards.hold(rank, shards.begin(rank), shards.end(rank)));
        EXPECT_FALSE(shards.hold(rank, shards.begin(rank), shards.end(rank) + 1));
      }
    }
  }
}

TEST(PiecesOfColumns, HaveAllBlocksOnceAndSignalsOfTheirOwn) {
  for (const int along_k : {1, 2, 7, 64, 100, 128, 33'554'432}) {
    for (const int wanted : {1, 2, 3, 4, 8, 200, INT_MAX}) {
      if (std::min(wanted, along_k) > 1000) continue;  // long to count
      SCOPED_TRACE(std::to_string(along_k) + " k-blocks in " + std::to_string(wanted));
      const Pieces pieces = Pieces::of(along_k, wanted);
      EXPECT_LE(pieces.count, std::min(wanted, along_k));
      EXPECT_EQ(pieces.begin(0), 0);
      for (int piece = 1; piece < pieces.count; ++piece) {
        const int before = pieces.begin(piece) - pieces.begin(piece - 1);
        EXPECT_GT(before, 0);
        EXPECT_LE(std::min(pieces.begin(piece + 1), along_k) - pieces.begin(piece), before);
      }
      EXPECT_LT(pieces.begin(pieces.count - 1), along_k);  // none is empty
      EXPECT_GE(pieces.begin(pieces.count), along_k);
      EXPECT_EQ(pieces.signal(1, 0), pieces.signal(0, pieces.count - 1) + 1);
    }
  }
  EXPECT_EQ(Pieces::of(0, 4).count, 1);    // k = 0: a signal all the same
  const Pieces four = Pieces::of(128, 4);  // about 4 : 3 : 2 : 1
  EXPECT_EQ((std::vector{four.begin(1), four.begin(2), four.begin(3), four.begin(4)}),
            (std::vector{50, 88, 114, 128}));
}

/// Number of arrivals at `rank`, the own shard included, after which all rows of a tile are present.
int arrivals_before(const Shards& shards, int rank, int first, int last) {
  int latest = 0;
  for (int row = first; row < last; ++row)
    latest = std::max(latest, (shards.owner(row) - rank + shards.ranks) % shards.ranks);
  return latest;
}

TEST(Order, TakesEachTileOnceAsRowsArrive) {
  for (const int rows : {1, 5, 63, 64, 200, 513, 1000, 2048}) {
    for (const int ranks : {1, 2, 3, 4, 8}) {
      const Shards shards{rows, ranks};
      const Tiling tiling{(rows + 63) / 64, 3, 1};
      for (int rank = 0; rank < ranks; ++rank) {
        SCOPED_TRACE(testing::Message() << rows << " rows, rank " << rank << " of " << ranks);
        const ArrivalOrder order = arrival_order(shards, tiling, 64, rank);
        expect_tiles_as_rows_arrive(
            order, rows, [&](int first, int end) { return arrivals_before(shards, rank, first, end); });
      }
    }
  }
}

TEST(Order, OfOneArrivalIsInGroups) {
  expect_tiles_in_groups(arrival_order({20 * 64, 1}, {20, 3, 1}, 64, 0));
}

// The article's formulas, at sizes whose shards do not end with a tile: within one node a permutation that
// begins with other ranks' rows; for several nodes no permutation.
TEST(Order, OfTheArticleFitsShardsOfWholeTilesOnly) {
  constexpr int kRanks = 8, kRowsOfRank = 100, kTileRows = 128;
  constexpr int kAlongM = (kRanks * kRowsOfRank + kTileRows - 1) / kTileRows, kPerRank = 1;
  const int rank = 7;
  const int first_of_article = (0 + rank * kPerRank) % kAlongM;
  EXPECT_EQ(first_of_article, 0);  // rows 0 to 127: those of ranks 0 and 1
  const ArrivalOrder ours = arrival_order({800, kRanks}, {kAlongM, 1, 1}, kTileRows, rank);
  EXPECT_EQ(ours(0).m, 6);  // rows 768 to 799: its own
  std::set<int> rows_of_tiles;
  for (int pid_m = 0; pid_m < kAlongM; ++pid_m) {
    const int m_rank = pid_m / kPerRank;
    rows_of_tiles.insert((m_rank + 1) % kRanks * kPerRank + pid_m % kPerRank);  // as rank 1 has them
  }
  EXPECT_EQ(rows_of_tiles.count(0), 0U);        // never computed
  EXPECT_EQ(rows_of_tiles.count(kAlongM), 1U);  // does not exist
}

// ---- Unsupported -----------------------------------------------------------------------------------------
void expect_refused(MatmulShape shape, int pieces, const std::string& sentence) {
  expect_thrown<UsageError>(
      [&] { run_ranks(1, [&](Rank& rank) { Large<__half> algorithm(rank, shape, pieces); }); }, sentence);
}

TEST(Refused, SizesThatTmaCannotStepOver) { expect_refused({64, 64, 60}, 1, "--k: rows of 60 elements"); }

TEST(Refused, NoPiece) { expect_refused({64, 64, 64}, 0, "0 pieces of a shard"); }

TEST(Refused, MoreRanksThanTheKernelHasRoomFor) {
  EXPECT_THROW(arrival_order({100, kMaxRanks + 1}, {1, 1, 1}, 128, 0), UsageError);
}

// ---- Cost ------------------------------------------------------------------------------------------------
TEST(CostOf, IsThePagesCostCard) {
  // 8 ranks with 1024 rows each, k = 4096, f16: shards of 8 MiB.
  const MatmulShape whole{8192, 32768, 4096};
  const Cost cost = Large<__half>::cost(whole, 8, 3);
  EXPECT_EQ(cost.messages, 7);
  EXPECT_EQ(cost.bytes_out, 58'720'256);
  EXPECT_EQ(cost.bytes_in, 58'720'256);
  EXPECT_EQ(cost.launches, 1);
  EXPECT_EQ(cost.memory, 134'217'728);
  EXPECT_EQ(Large<__half>::cost(whole, 8, 3, 4).messages, 28);
  EXPECT_EQ(Large<__half>::bytes_of_edges(whole, 8, 3), 0);  // shards end with tiles
}

TEST(CostOf, CountsUnevenAndEmptyShares) {
  // 4 rows on 3 ranks: 2, 1, 1; all in one tile.
  EXPECT_EQ(Large<__half>::cost({4, 24, 8}, 3, 0),
            (Cost{.messages = 2, .bytes_out = 64, .bytes_in = 32, .launches = 1, .memory = 512}));
  EXPECT_EQ(Large<__half>::bytes_of_edges({4, 24, 8}, 3, 0), 32);
  // 1 row on 3 ranks: the last two have none, and still raise a signal for each other rank.
  EXPECT_EQ(Large<__half>::cost({1, 24, 8}, 3, 2),
            (Cost{.messages = 2, .bytes_out = 0, .bytes_in = 16, .launches = 1, .memory = 512}));
  // 3 ranks with 100 rows: rank 1 has 100 to 199, of which 100 to 127 and 128 to 199 lie in shared tiles.
  EXPECT_EQ(Large<__half>::bytes_of_edges({300, 24, 8}, 3, 1), 100 * 16);
  // With 200 rows it has 200 to 399: 200 to 255, and 384 to 399.
  EXPECT_EQ(Large<__half>::bytes_of_edges({600, 24, 8}, 3, 1), (56 + 16) * 16);
  EXPECT_EQ(Large<__half>::cost({300, 24, 8}, 1, 0), Cost{.launches = 1});
}

TEST(CostOf, CountsNoKernelWithNothingToCompute) {
  for (const MatmulShape shape : {MatmulShape{0, 24, 8}, MatmulShape{4, 0, 8}, MatmulShape{4, 24, 0}}) {
    EXPECT_EQ(Large<__half>::cost(shape, 3, 0).launches, 0)
        << shape.m << " x " << shape.n << " x " << shape.k;
  }
}

}  // namespace
}  // namespace overlap::gemm_on_signals
