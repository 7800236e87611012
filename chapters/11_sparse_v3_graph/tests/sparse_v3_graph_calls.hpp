// Chapter 11 on any GPUs: one graph for calls of all lengths, correct for any content that the previous call
// has left in its lists. Part of 11_sparse_v3_graph_test.cu, and by itself what mutants are compiled with.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "11_sparse_v3_graph/graph.cuh"

#include "sparse_run.hpp"

namespace overlap::sparse_graph {
namespace {

class CallsOfOneGraph : public OnRanks {};
INSTANTIATE_TEST_SUITE_P(Graph, CallsOfOneGraph, testing::Values(1, 2, 3, 4, 8),
                         testing::PrintToStringParamName());

// A call leaves its row numbers and values in the graph's lists. The rows of the short call are also in the
// long one, but on other ranks: left-over entries would be found and added.
TEST_P(CallsOfOneGraph, ALongCallLeavesNothingToAShortOne) {
  const int ranks = GetParam();
  const SparseShape shape{200, 3, 40};
  const auto all = [&](std::int64_t count) { return lists_of(shape, ranks, 1, [=](int) { return count; }); };
  const auto apart = [&](std::int64_t count) {
    return lists_of(shape, ranks, ranks + 1, [=](int) { return count; });
  };
  const auto only_last = lists_of(shape, ranks, 1, [=](int rank) { return rank == ranks - 1 ? 7 : 0; });
  expect_sums<GraphAllReduce, std::int32_t, float>(
      {all(40), apart(4), all(0), all(39), only_last, apart(2), all(1), all(0), all(40), all(1)},
      "long, short, none");
}

// 250 calls in all, over the five numbers of ranks: of one shape, 50 on one object.
TEST_P(CallsOfOneGraph, IsRightOnRandomCallsOfOneGraph) {
  const std::uint64_t seed = 20261122 + static_cast<std::uint64_t>(GetParam());
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 draw(seed);
  const SparseShape shape{90, 4, 30};
  std::vector<SparseData> gradients;
  for (int call = 0; call < 50; ++call) {
    Entries entries(static_cast<std::size_t>(GetParam()));
    for (std::vector<std::int64_t>& rows : entries) {
      rows.resize(draw() % 5 == 0 ? 0 : draw() % 31);
      const std::uint64_t first = draw() % 60, span = 1 + draw() % 30;
      for (std::int64_t& row : rows) row = static_cast<std::int64_t>(first + draw() % span);
    }
    gradients.emplace_back(shape, std::move(entries), draw());
  }
  expect_sums<GraphAllReduce, std::int32_t, float>(gradients, "one graph");
}

}  // namespace
}  // namespace overlap::sparse_graph
