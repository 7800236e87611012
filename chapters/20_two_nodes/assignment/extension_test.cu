// The extension ring_of_nodes of chapter 20: right in any order of events, and no rank sends to another node
// than the next one.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "20_two_nodes/two_level_gemm.cuh"
#include "dense_run.hpp"
#include "on_virtual_gpus.hpp"

namespace overlap::two_nodes {
namespace {

using Gemm = TwoLevelGemm<__half, Major::kMN, tensor_core_gemm::Tile<64, 64, 2>>;
using Problem = GatherProblem<__half>;

struct Grid {
  int nodes, per_node;
  int ranks() const { return nodes * per_node; }
};
constexpr Grid kGrids[] = {{1, 1}, {1, 2}, {2, 1}, {3, 1}, {2, 2}, {4, 1}, {3, 2}, {2, 4}, {4, 2}};

// The race detector, too, runs tests that begin with Small.
TEST_F(OnVirtualGpus, SmallCallsAtOnceAreRight) {
  expect_right<Gemm, Problem>(3, {150, 24, 72}, 1, 3, 1);
  expect_right<Gemm, Problem>(4, {70, 32, 8}, 1, 3, 1);
  expect_right<Gemm, Problem>(6, {5, 48, 8}, 1, 3, 2);  // fewer rows than ranks
}

TEST_F(OnVirtualGpus, CallsAtOnceAreRight) {
  for (const Grid grid : kGrids) {
    expect_right<Gemm, Problem>(grid.ranks(), {150, 8 * grid.ranks(), 72}, 1, 4, grid.per_node);
    expect_right<Gemm, Problem>(grid.ranks(), {3, 8 * grid.ranks(), 8}, 1, 4, grid.per_node);
  }
}

TEST_F(OnVirtualGpus, CallsAtOnceAreRightInTenSchedules) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    for (const Grid grid : kGrids) {
      SCOPED_TRACE("schedule " + std::to_string(seed) + ", " + std::to_string(grid.nodes) + " nodes of " +
                   std::to_string(grid.per_node));
      vgpu::reset();
      vgpu::use_schedule(seed);
      const std::int64_t rows = seed % 3 == 0 ? 3 : 150;  // fewer than ranks, too
      expect_right<Gemm, Problem>(grid.ranks(), {rows, 8 * grid.ranks(), 72}, seed, 4, grid.per_node);
    }
  }
}

/// Bytes that went from each rank's GPU to each other's in one call.
std::vector<std::vector<std::int64_t>> bytes_of_a_call(Grid grid, MatmulShape shape) {
  const auto ranks = static_cast<std::size_t>(grid.ranks());
  std::vector<std::vector<std::int64_t>> bytes(ranks, std::vector<std::int64_t>(ranks));
  vgpu::reset();
  vgpu::use_nodes(grid.nodes, grid.per_node);
  run_ranks(grid.ranks(), [&](Rank& rank) {
    Problem problem(rank, shape, 1);
    Gemm algorithm(rank, shape, grid.per_node);
    problem.fill_exact();
    auto& own = bytes[static_cast<std::size_t>(rank.id())];
    const auto count = [&](int sign) {
      rank.barrier();
      for (int other = 0; other < grid.ranks(); ++other)
        own[static_cast<std::size_t>(other)] +=
            sign * static_cast<std::int64_t>(vgpu::traffic(rank.id(), other).bytes);
      rank.barrier();
    };
    count(-1);
    algorithm.run(problem.a(), problem.b(), problem.c(), rank.stream());
    rank.synchronize(rank.stream());
    count(1);
  });
  return bytes;
}

TEST_F(OnVirtualGpus, SendsToTheNextNodeAlone) {
  for (const std::int64_t rows : {3, 150, 401}) {
    for (const Grid grid : {Grid{2, 2}, Grid{3, 1}, Grid{3, 2}, Grid{4, 2}}) {
      const MatmulShape shape{rows, 8 * grid.ranks(), 16};
      const auto bytes = bytes_of_a_call(grid, shape);
      for (int from = 0; from < grid.ranks(); ++from) {
        const Nodes nodes{from, grid.ranks(), grid.per_node};
        const Cost cost = Gemm::rail_cost(shape, grid.ranks(), from, grid.per_node);
        for (int to = 0; to < grid.ranks(); ++to) {
          if (nodes.is_near(to)) continue;
          EXPECT_EQ(bytes[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)],
                    to == nodes.at(1, 0) ? cost.bytes_out : 0)
              << rows << " rows, " << grid.nodes << " nodes of " << grid.per_node << ", rank " << from
              << " to " << to;
        }
      }
    }
  }
}

}  // namespace
}  // namespace overlap::two_nodes
