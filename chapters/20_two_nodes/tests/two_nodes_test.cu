// Chapter 20 on any GPUs of compute capability 9.0: right on every element for ranks in nodes of any size,
// for tiles that reach over the borders of shards and nodes, call after call; a run that is stopped ends.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "20_two_nodes/two_level_gemm.cuh"
#include "signalled_gemm_run.hpp"

namespace overlap::two_nodes {
namespace {

using tensor_core_gemm::Tile;
using SmallTile = Tile<64, 64, 2>;
template <typename T>
using Large = TwoLevelGemm<T>;
template <typename T>
using Small = TwoLevelGemm<T, Major::kMN, SmallTile>;

/// How many nodes of how many ranks.
struct Grid {
  int nodes, per_node;
  int ranks() const { return nodes * per_node; }
  friend void PrintTo(const Grid& grid, std::ostream* out) { *out << grid.nodes << " x " << grid.per_node; }
};

class OnNodes : public testing::TestWithParam<Grid> {
 protected:
  int ranks() const { return GetParam().ranks(); }
  int per_node() const { return GetParam().per_node; }
};
INSTANTIATE_TEST_SUITE_P(TwoLevelGemm, OnNodes,
                         testing::Values(Grid{1, 1}, Grid{1, 3}, Grid{2, 1}, Grid{2, 2}, Grid{3, 1},
                                         Grid{4, 2}, Grid{3, 2}, Grid{2, 4}));

TEST_P(OnNodes, AreRightInBothTypes) {
  const std::vector<MatmulShape> shapes = signalled_shapes(ranks(), 17);
  expect_all_right<Large<__half>, GatherProblem<__half>>(ranks(), shapes, 1, 1, per_node());
  expect_all_right<Small<__half>, GatherProblem<__half>>(ranks(), shapes, 1, 1, per_node());
  expect_all_right<Large<__nv_bfloat16>, GatherProblem<__nv_bfloat16>>(ranks(), shapes, 1, 1, per_node());
}

TEST_P(OnNodes, AreRightOnRandomSizes) {
  // 240 sizes in all, over the eight grids.
  const unsigned seed = 20200 + static_cast<unsigned>(10 * ranks() + per_node());
  SCOPED_TRACE("seed " + std::to_string(seed));
  expect_all_right<Small<__half>, GatherProblem<__half>>(
      ranks(), random_signalled_shapes(ranks(), 30, 500, seed), seed, 1, per_node());
}

TEST_P(OnNodes, CallsFollowEachOtherAtOnce) {
  const int calls = calls_at_once(12), n = 16 * ranks();
  expect_right<Small<__half>, GatherProblem<__half>>(ranks(), {150, n, 72}, 1, calls, per_node());
  // Ranks without rows: nobody waits for their shards.
  expect_right<Small<__half>, GatherProblem<__half>>(ranks(), {1, n, 72}, 1, calls, per_node());
  expect_right<Small<__half>, GatherProblem<__half>>(ranks(), {(ranks() + 1) / 2, n, 72}, 1, calls,
                                                     per_node());
}

TEST_P(OnNodes, TheCallerOwnsItsMatricesBehindTheCall) {
  expect_caller_owns_signalled<Small<__half>>(ranks(), per_node());
}

TEST_P(OnNodes, TransfersAloneEndWhenAllShardsAreHere) {
  expect_transfers_alone_to_end<Small<__half>>(ranks(), {2 * ranks() + 1, 8 * ranks(), 64}, per_node());
}

TEST_P(OnNodes, NothingToMultiplyIsNoCall) {
  expect_nothing_to_multiply_to_be_no_call<Large<__half>>(ranks(), per_node());
}

// NCCL waits for its sender, too.
TEST_P(OnNodes, ARankThatThrowsInTheMiddleEndsTheRun) {
  expect_a_rank_that_throws_to_end_the_run<Small<__half>>(ranks(), per_node());
}

TEST(Calls, AreRightWhereWordsOverflow) {
  const WordsThatOverflow soon;
  expect_right<Small<__half>, GatherProblem<__half>>(4, {70, 64, 72}, 1, 6, 2);
}

// ---- Nodes and order -------------------------------------------------------------------------------------
TEST(NodesOfRanks, TellWhoseShardComesWhen) {
  const Nodes nodes{5, 8, 4};  // rank 1 of node 1
  EXPECT_EQ(nodes.count(), 2);
  EXPECT_EQ(nodes.node(), 1);
  EXPECT_EQ(nodes.local(), 1);
  EXPECT_EQ(nodes.at(1, 0), 1);
  EXPECT_EQ(nodes.at(0, -2), 7);
  EXPECT_TRUE(nodes.is_near(4) && nodes.is_near(7) && !nodes.is_near(3));
  std::vector<int> owners;
  for (int arrival = 0; arrival < 8; ++arrival) owners.push_back(nodes.owner(arrival));
  EXPECT_EQ(owners, (std::vector<int>{5, 6, 7, 4, 1, 2, 3, 0}));
  std::vector<int> of_three;
  for (int arrival = 0; arrival < 6; ++arrival) of_three.push_back(Nodes{1, 6, 2}.owner(arrival));
  EXPECT_EQ(of_three, (std::vector<int>{1, 0, 5, 4, 3, 2}));
}

/// After which arrival all rows of the tile are here.
int latest_arrival(const Nodes& nodes, const Shards& shards, int first, int end) {
  int latest = 0;
  for (int arrival = 0; arrival < nodes.ranks; ++arrival) {
    const int owner = nodes.owner(arrival);
    if (shards.begin(owner) < end && first < shards.end(owner) && shards.begin(owner) < shards.end(owner))
      latest = arrival;
  }
  return latest;
}

TEST(NodeOrder, TakesEachTileOnceAsRowsArrive) {
  for (const int rows : {1, 5, 63, 64, 200, 513, 1000, 2048}) {
    for (const Grid grid : {Grid{1, 1}, Grid{1, 4}, Grid{2, 1}, Grid{2, 4}, Grid{3, 2}, Grid{8, 8}}) {
      const Shards shards{rows, grid.ranks()};
      const Tiling tiling{(rows + 63) / 64, 3, 1};
      for (int rank = 0; rank < grid.ranks(); ++rank) {
        SCOPED_TRACE(testing::Message()
                     << rows << " rows, rank " << rank << " of " << grid.nodes << " x " << grid.per_node);
        const Nodes nodes{rank, grid.ranks(), grid.per_node};
        const NodeOrder order = node_order(nodes, shards, tiling, 64);
        expect_tiles_as_rows_arrive(
            order, rows, [&](int first, int end) { return latest_arrival(nodes, shards, first, end); });
      }
    }
  }
}

TEST(NodeOrder, OfOneArrivalIsInGroups) {
  expect_tiles_in_groups(node_order({0, 1, 1}, {20 * 64, 1}, {20, 3, 1}, 64));
}

/// The article's formula for several nodes ("swizzle m"), of a row of tiles.
int article_swizzle(int pid_m, const Nodes& nodes, int tiles_per_rank) {
  const int m_rank = pid_m / tiles_per_rank, inside = pid_m - m_rank * tiles_per_rank;
  const int node = (m_rank / nodes.per_node + nodes.node()) % nodes.count();
  const int local = (m_rank % nodes.per_node + nodes.rank) % nodes.per_node;
  return (node * nodes.per_node + local) * tiles_per_rank + inside;
}

TEST(NodeOrder, IsTheArticlesOnTwoNodesOfWholeTiles) {
  for (int rank = 0; rank < 8; ++rank) {
    const Nodes nodes{rank, 8, 4};
    const NodeOrder ours = node_order(nodes, {8 * 256, 8}, {16, 1, 1}, 128);
    for (int i = 0; i < 16; ++i) ASSERT_EQ(ours(i).m, article_swizzle(i, nodes, 2)) << "rank " << rank;
  }
}

// 8 shards of 100 rows are 7 rows of tiles; the article's formula counts one for each rank.
TEST(NodeOrder, OfTheArticleIsNoPermutationOtherwise) {
  const Nodes nodes{1, 8, 4};
  std::set<int> rows_of_tiles;
  for (int pid_m = 0; pid_m < 7; ++pid_m) rows_of_tiles.insert(article_swizzle(pid_m, nodes, 1));
  EXPECT_EQ(rows_of_tiles.count(4), 0U);  // never computed
  EXPECT_EQ(rows_of_tiles.count(7), 1U);  // does not exist
  const NodeOrder ours = node_order(nodes, {800, 8}, {7, 1, 1}, 128);
  std::set<int> all;
  for (int i = 0; i < 7; ++i) all.insert(ours(i).m);
  EXPECT_EQ(all, (std::set<int>{0, 1, 2, 3, 4, 5, 6}));
}

// With three nodes it takes the nodes from left to right, while it forwards them from right to left.
TEST(NodeOrder, OfTheArticleTakesThreeNodesTheOtherWayRound) {
  const Nodes nodes{0, 3, 1};
  EXPECT_EQ(article_swizzle(1, nodes, 1), 1);
  EXPECT_EQ(nodes.owner(1), 2);  // as the article forwards them, too: node_rank + n_nodes - 1
  EXPECT_EQ(node_order(nodes, {3 * 64, 3}, {3, 1, 1}, 64)(1).m, 2);
}

// ---- What cannot be --------------------------------------------------------------------------------------
void expect_refused(int ranks, int per_node, MatmulShape shape, const std::string& sentence) {
  expect_thrown<UsageError>(
      [&] { run_ranks(ranks, [&](Rank& rank) { Large<__half> algorithm(rank, shape, per_node); }); },
      sentence);
}

TEST(Refused, SizesThatTmaCannotStepOver) { expect_refused(1, 1, {64, 64, 60}, "--k: rows of 60 elements"); }

TEST(Refused, NodesThatDoNotHoldAllRanks) {
  expect_refused(3, 2, {64, 64, 64}, "nodes of 2 ranks cannot hold 3");
  expect_refused(1, 0, {64, 64, 64}, "nodes of 0 ranks cannot hold 1");
}

TEST(Refused, MoreRanksThanThereAreSignals) {
  EXPECT_THROW(node_order({0, 65, 5}, {65, 65}, {2, 1, 1}, 64), UsageError);
}

// ---- Cost ------------------------------------------------------------------------------------------------
TEST(CostOf, IsThePagesCostCard) {
  // 2 nodes of 8 ranks with 1024 rows each, k = 4096, f16: shards of 8 MiB.
  const MatmulShape whole{16384, 65536, 4096};
  EXPECT_EQ(Large<__half>::rail_cost(whole, 16, 3, 8),
            (Cost{.messages = 1, .bytes_out = 8'388'608, .bytes_in = 8'388'608}));
  EXPECT_EQ(Large<__half>::node_cost(whole, 16, 3, 8),
            (Cost{.messages = 14, .bytes_out = 117'440'512, .bytes_in = 117'440'512}));
  const Cost cost = Large<__half>::cost(whole, 16, 3, 8);
  EXPECT_EQ(cost.messages, 15);
  EXPECT_EQ(cost.bytes_in, 15 * 8'388'608);
  EXPECT_EQ(cost.launches, 1);
  EXPECT_EQ(cost.memory, 268'435'456);
  // One node: chapter 17.
  EXPECT_EQ(Large<__half>::cost(whole, 16, 3, 16),
            gemm_on_signals::GemmOnSignals<__half>::cost(whole, 16, 3));
}

TEST(CostOf, CountsUnevenAndEmptyShares) {
  // 5 rows of 16 bytes on 2 x 2 ranks: 2, 1, 1, 1. Rank 2's rail ends at rank 0.
  EXPECT_EQ(Large<__half>::rail_cost({5, 32, 8}, 4, 2, 2),
            (Cost{.messages = 1, .bytes_out = 16, .bytes_in = 32}));
  EXPECT_EQ(Large<__half>::node_cost({5, 32, 8}, 4, 2, 2),
            (Cost{.messages = 2, .bytes_out = 48, .bytes_in = 32}));
  // 1 row: rank 3 has none, sends nothing along its rail, and raises two signals for rank 2.
  EXPECT_EQ(Large<__half>::rail_cost({1, 32, 8}, 4, 3, 2), Cost{});
  EXPECT_EQ(Large<__half>::node_cost({1, 32, 8}, 4, 3, 2), (Cost{.messages = 2, .bytes_in = 16}));
}

TEST(CostOf, CountsNoKernelWithNothingToCompute) {
  for (const MatmulShape shape : {MatmulShape{0, 32, 8}, MatmulShape{5, 0, 8}, MatmulShape{5, 32, 0}}) {
    EXPECT_EQ(Large<__half>::cost(shape, 4, 0, 2).launches, 0)
        << shape.m << " x " << shape.n << " x " << shape.k;
  }
}

}  // namespace
}  // namespace overlap::two_nodes
