// Chapter 20 on virtual GPUs: right in any order of events and on 64 GPUs, moving just the bytes of its cost
// card over each link, and faster than the flat gather where the links between nodes are slow.
#include <gtest/gtest.h>

#include <string>

#include "02_gather_then_multiply/gather_then_multiply.cuh"
#include "03_ring_all_gather/ring_all_gather.cuh"
#include "20_two_nodes/two_level_gemm.cuh"
#include "abort_flag.hpp"
#include "dense_virtual.hpp"
#include "ownership.hpp"

namespace overlap::two_nodes::virtual_gpus {
namespace {

using tensor_core_gemm::Tile;
using Gemm = TwoLevelGemm<__half, Major::kMN, Tile<64, 64, 2>>;
using Problem = GatherProblem<__half>;

struct Grid {
  int nodes, per_node;
  int ranks() const { return nodes * per_node; }
};
constexpr Grid kGrids[] = {{2, 1}, {2, 2}, {3, 2}, {2, 4}, {4, 2}};

TEST_F(OnVirtualGpus, CallsAtOnceAreRightInTwentySchedules) {
  in_random_schedules(20, [](std::uint64_t seed) {
    const Grid grid = kGrids[seed % std::size(kGrids)];
    expect_right<Gemm, Problem>(grid.ranks(), {150, 8 * grid.ranks(), 72}, seed, 4, grid.per_node);
  });
}

TEST_F(OnVirtualGpus, TheCallerOwnsItsMatricesInManySchedules) {
  in_random_schedules(10, [](std::uint64_t) {
    run_ranks(4, [](Rank& rank) { expect_caller_owns_matrices_on<Gemm, Problem>(rank, {100, 32, 72}, 2); });
  });
}

TEST_F(OnVirtualGpus, SameSeedSameSchedule) {
  expect_same_seed_same_schedule([] { expect_right<Gemm, Problem>(4, {100, 32, 8}, 1, 2, 2); });
}

TEST_F(OnVirtualGpus, SixtyFourGpusInEightNodesAreRight) {
  vgpu::use_nodes(8, 8);
  expect_right<Gemm, Problem>(64, {200, 8 * 64, 16}, 1, 2, 8);
}

// One node: NCCL's rails, too, would wait for rank 0, and only a stop ends them.
TEST_F(OnVirtualGpus, TheAbortFlagAloneEndsACallsWaits) {
  expect_the_abort_flag_ends_waits<Gemm, Problem>(3, {130, 48, 72}, 3);
}

/// What one call moves, on nodes of their own.
template <typename Algorithm, typename... More>
LinkTraffic traffic_on(Grid grid, MatmulShape shape, More... more) {
  vgpu::reset();
  vgpu::use_nodes(grid.nodes, grid.per_node);
  return traffic_of_a_call<Algorithm, Problem>(grid.ranks(), shape, more...);
}

TEST_F(OnVirtualGpus, MovesTheBytesOfItsCostCardOverEachLink) {
  for (const std::int64_t rows : {1, 3, 150, 256, 401}) {
    for (const Grid grid : {Grid{1, 1}, Grid{1, 4}, Grid{2, 1}, Grid{2, 2}, Grid{4, 2}, Grid{3, 2}}) {
      SCOPED_TRACE(std::to_string(rows) + " rows on " + std::to_string(grid.nodes) + " x " +
                   std::to_string(grid.per_node));
      const int ranks = grid.ranks();
      const MatmulShape shape{rows, 8 * ranks, 16};
      const LinkTraffic moved = traffic_on<Gemm>(grid, shape, grid.per_node);
      for (int rank = 0; rank < ranks; ++rank) {
        const Nodes nodes{rank, ranks, grid.per_node};
        const auto bytes_of = [&](int owner) {
          return balanced_share(rows, ranks, owner).size() * shape.k * 2;
        };
        Moved rail_in, rail_out, node_in, node_out;
        for (int other = 0; other < ranks; ++other) {
          if (other == rank) continue;
          const bool is_near = nodes.is_near(other);
          (is_near ? node_in : rail_in) += moved.over(other, rank);
          (is_near ? node_out : rail_out) += moved.over(rank, other);
          std::int64_t expected = 0;  // over this very link
          if (is_near) {
            for (int step = 0; step < nodes.count(); ++step) expected += bytes_of(nodes.at(step, 0));
          } else if (other % grid.per_node == nodes.local()) {
            expected = bytes_of(rank);
          }
          EXPECT_EQ(moved.over(rank, other).bytes, expected) << "from rank " << rank << " to rank " << other;
        }
        const Cost rail = Gemm::rail_cost(shape, ranks, rank, grid.per_node);
        const Cost node = Gemm::node_cost(shape, ranks, rank, grid.per_node);
        EXPECT_EQ(rail_in.bytes, rail.bytes_in);
        EXPECT_EQ(rail_out.bytes, rail.bytes_out);
        EXPECT_EQ(rail_out.copies, rail.messages);
        EXPECT_EQ(node_in.bytes, node.bytes_in);
        EXPECT_EQ(node_out.bytes, node.bytes_out);
        if (rows >= ranks) {  // else some of its messages are signals alone
          EXPECT_EQ(node_out.copies, node.messages);
        }
        using Flat = gemm_on_signals::GemmOnSignals<__half, Major::kMN, Tile<64, 64, 2>>;
        EXPECT_EQ(moved.over(rank, rank).bytes, Flat::bytes_of_edges(shape, ranks, rank));
      }
    }
  }
}

// The flat gather sends every shard to each rank of the other nodes, the two-level one once to each node.
TEST_F(OnVirtualGpus, BetweenNodesMoveAsManyTimesFewerBytesAsANodeHasRanks) {
  const Grid grid{2, 4};
  const MatmulShape shape{256, 64, 16};
  const auto between = [&](const LinkTraffic& moved) {
    std::int64_t bytes = 0;
    for (int from = 0; from < 8; ++from) {
      for (int to = 0; to < 8; ++to) bytes += from / 4 != to / 4 ? moved.over(from, to).bytes : 0;
    }
    return bytes;
  };
  using Flat = gemm_on_signals::GemmOnSignals<__half, Major::kMN, Tile<64, 64, 2>>;
  const std::int64_t two_level = between(traffic_on<Gemm>(grid, shape, grid.per_node));
  EXPECT_EQ(two_level, 8 * 32 * 32);
  EXPECT_EQ(between(traffic_on<Flat>(grid, shape)), 4 * two_level);
}

// A ring is one path through all ranks: almost as few bytes leave a node as with two levels, but all of them
// along the one rail of its first rank, whose left neighbour is elsewhere.
TEST_F(OnVirtualGpus, AFlatRingSendsAllThatLeavesANodeAlongOneRail) {
  for (const Grid grid : {Grid{2, 2}, Grid{2, 4}, Grid{3, 2}}) {
    SCOPED_TRACE(std::to_string(grid.nodes) + " x " + std::to_string(grid.per_node));
    const int ranks = grid.ranks();
    const MatmulShape shape{32 * ranks, 8 * ranks, 16};
    constexpr std::int64_t kShard = 32 * 16 * sizeof(__half);
    const LinkTraffic moved = traffic_on<ring_all_gather::RingAllGatherMatmul<__half>>(grid, shape);
    const LinkTraffic two_level = traffic_on<Gemm>(grid, shape, grid.per_node);
    for (int from = 0; from < ranks; ++from) {
      std::int64_t ring_out = 0, rail_out = 0;
      for (int to = 0; to < ranks; ++to) {
        if (from / grid.per_node == to / grid.per_node) continue;
        ring_out += moved.over(from, to).bytes;
        rail_out += two_level.over(from, to).bytes;
      }
      const int shards_left = from % grid.per_node == 0 ? ranks - 1 : 0;
      EXPECT_EQ(ring_out, shards_left * kShard) << "rank " << from;
      EXPECT_EQ(rail_out, (grid.nodes - 1) * kShard) << "rank " << from;
    }
  }
}

/// Modelled time of one call, ms.
template <typename Algorithm, typename... More>
double time_of(Grid grid, MatmulShape shape, More... more) {
  vgpu::reset();
  vgpu::use_nodes(grid.nodes, grid.per_node);
  return modelled_ms<Algorithm, Problem>(grid.ranks(), shape, more...);
}

TEST_F(OnVirtualGpus, IsFasterThanTheFlatGatherAndThanGatheringFirst) {
  constexpr Grid kGrid{2, 2};
  constexpr MatmulShape kShape{4 * 256, 4 * 1024, 128};
  const double two_level = time_of<TwoLevelGemm<__half>>(kGrid, kShape, kGrid.per_node);
  EXPECT_LT(two_level, 0.95 * time_of<gemm_on_signals::GemmOnSignals<__half>>(kGrid, kShape));
  EXPECT_LT(two_level, 0.95 * time_of<gather_then_multiply::GatherThenMultiply<__half>>(kGrid, kShape));
}

TEST_F(OnVirtualGpus, RanksThatShareAGpuHaveNoRails) {
  vgpu::use_gpus(1);
  EXPECT_THROW(run_ranks(4, [](Rank& rank) { Gemm algorithm(rank, {150, 32, 72}, 2); }), Skip);
  expect_right<Gemm, Problem>(3, {150, 24 * 8, 72}, 1, 3, 3);  // one node needs none
}

}  // namespace
}  // namespace overlap::two_nodes::virtual_gpus
