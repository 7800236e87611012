// Chapter 11 on any GPUs: right for every distribution, type and number of ranks, for any content of the
// graph's lists, up to its full capacities and not beyond.
#include "11_sparse_v3_graph/graph.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "10_sparse_v2_where/where.cuh"

#include "sparse_search_tests.hpp"
#include "sparse_v3_graph_calls.hpp"
#include "sparse_version_suite.hpp"

namespace overlap::sparse_graph {
namespace {

const bool kGraph = test_sparse_version<VersionOf<GraphAllReduce>>("Graph");
INSTANTIATE_TEST_SUITE_P(Graph, OnRanks, testing::Values(1, 2, 3, 4, 8), testing::PrintToStringParamName());

using Graph32 = GraphAllReduce<std::int32_t, float>;

/// The result of count_lost() for rows 3 and 5 in the list 3, 4, 5, with these sources of its three places
/// and of one behind its end.
int lost_with(const std::vector<std::int32_t>& sources) {
  constexpr std::int32_t kDummy = 9;
  const auto on_gpu = [](const std::vector<std::int32_t>& values) { return on_device(0, values); };
  const auto local = on_gpu({3, 5}), global = on_gpu({3, 4, 5}), from = on_gpu(sources), lost = on_gpu({0});
  const SparseRows<std::int32_t, float> own{local.data(), nullptr, 2}, all{global.data(), nullptr, 3};
  count_lost<<<1, 32>>>(own, all, from.data(), std::int64_t{4}, kDummy, lost.data());
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  return on_host(lost.data(), 1).front();
}

TEST(CountLost, CountsRowsWithoutAPlaceAndPlacesOfOtherRows) {
  EXPECT_EQ(lost_with({0, 9, 1, 9}), 0);
  EXPECT_EQ(lost_with({0, 9, 9, 9}), 1) << "row 5 has no place";
  EXPECT_EQ(lost_with({9, 9, 9, 9}), 2);
  EXPECT_EQ(lost_with({0, 1, 9, 9}), 2) << "row 5 has the place of row 4";
  EXPECT_EQ(lost_with({1, 9, 0, 9}), 4) << "each has the other's place";
  EXPECT_EQ(lost_with({0, 9, 1, 0}), 1) << "a place behind the list";
  EXPECT_EQ(lost_with({0, 7, 1, 9}), 1) << "a row that the rank does not have";
}

/// Rows with values, and the places to which they are written among the global rows.
void expect_written(Rank& rank, GraphWriter<std::int32_t, float>& writer, int* lost,
                    const std::vector<std::int32_t>& local, const std::vector<std::int32_t>& global) {
  constexpr std::int64_t kFeatures = 3;
  std::vector<float> values, expected;
  for (const std::int32_t row : local) {
    for (int feature = 0; feature < kFeatures; ++feature)
      values.push_back(static_cast<float>(1 + row * kFeatures + feature));
  }
  for (const std::int32_t row : global) {
    const bool there = std::find(local.begin(), local.end(), row) != local.end();
    for (int feature = 0; feature < kFeatures; ++feature)
      expected.push_back(there ? static_cast<float>(1 + row * kFeatures + feature) : 0);
  }
  const auto local_rows = on_device(rank.device(), local), global_rows = on_device(rank.device(), global);
  const auto local_values = on_device(rank.device(), values);
  const auto out = on_device(rank.device(), std::vector<float>(expected.size(), -1));
  CUDA_CHECK(cudaDeviceSynchronize());
  writer.write({local_rows.data(), local_values.data(), std::ssize(local)},
               {global_rows.data(), nullptr, std::ssize(global)}, out.data(), rank.stream());
  rank.synchronize(rank.stream());
  EXPECT_EQ(on_host(out.data(), std::ssize(expected)), expected)
      << local.size() << " rows among " << global.size();
  EXPECT_EQ(on_host(lost, 1).front(), 0);
}

// Without ranks to make the lists: no row, one, some, all, as many as the capacity.
TEST(GraphWriter, WritesItsRowsToTheirPlacesAndZerosToAllOthers) {
  run_ranks(1, [](Rank& rank) {
    FrameAlone alone(rank, {5000, 3, 0});
    GraphWriter<std::int32_t, float> writer(alone.frame, {33, 300});
    const auto expect = [&](const std::vector<std::int64_t>& local, const std::vector<std::int64_t>& global) {
      expect_written(rank, writer, alone.frame.lost, list_of<std::int32_t>(local),
                     list_of<std::int32_t>(global));
    };
    alone.clock.start(rank.stream(), "test");
    expect(stride(0, 9, 33), stride(0, 1, 300));
    expect({}, stride(0, 2, 257));
    expect({4}, {4});
    expect(stride(11, 3, 31), stride(11, 3, 31));
    expect({256, 299}, stride(0, 1, 300));
    expect({4998}, {7, 4998, 4999});
    alone.clock.stop(rank.stream());
    rank.synchronize(rank.stream());
  });
}

// The blocks of the search have 256 threads: capacities and lists around that.
TEST_P(OnRanks, IsRightAroundTheSizeOfABlock) {
  if (GetParam() > 3) GTEST_SKIP() << "the sizes do not depend on the number of ranks";
  for (const std::int64_t count : {255, 256, 257}) {
    const SparseShape shape{2000, 1, 3};
    const SparseData data =
        lists_of(shape, GetParam(), GetParam(), [=](int rank) { return rank == 0 ? count : 3; });
    for (const SparseCapacity capacity : {SparseCapacity{count, count + 9}, {257, 512}, {258, 513}}) {
      if (capacity.local < count || capacity.global < static_cast<std::int64_t>(data.global_rows().size()))
        continue;
      expect_sums<GraphAllReduce, std::int32_t, float>({data}, std::to_string(count) + " rows", capacity);
    }
  }
}

TEST_P(OnRanks, IsFullAtItsCapacitiesAndRefusesOneRowMore) {
  const int ranks = GetParam();
  const SparseShape shape{300, 3, 0};
  const SparseCapacity capacity{10, 10 * ranks};
  const auto disjoint = [&](std::int64_t count) {
    return lists_of(shape, ranks, ranks, [=](int) { return count; });
  };
  const SparseData full = disjoint(10);
  run_ranks(ranks, [&](Rank& rank) {
    Graph32 graph(rank, shape, capacity);
    expect_sum<std::int32_t, float>(rank, graph, full, "n = capL, G = capG");
    // One row too many, of the last rank alone.
    const bool last = rank.id() == ranks - 1;
    expect_refused<std::int32_t, float>(rank, graph, shape, stride(0, 1, last ? 11 : 1),
                                        "11 rows of one rank, and the graph was recorded for 10", full);
    expect_refused<std::int32_t, float>(rank, graph, shape, stride(0, 1, last ? 200 : 0),
                                        "200 rows of one rank", disjoint(1));
  });
}

TEST_P(OnRanks, RefusesOneDifferentRowMoreThanItsCapacity) {
  const int ranks = GetParam();
  if (ranks == 1) GTEST_SKIP() << "one rank has no more rows than its own";
  const SparseShape shape{300, 3, 0};
  run_ranks(ranks, [&](Rank& rank) {
    const std::int64_t room = 10 + 4;
    Graph32 graph(rank, shape, SparseCapacity{10, room});
    // Rank 1 has 4 rows of its own, then 5; all others those of rank 0.
    const auto rows = [&](int of, std::int64_t more) {
      return of == 1 ? stride(100, 1, more) : stride(0, 1, 10);
    };
    Entries entries;
    for (int of = 0; of < ranks; ++of) entries.push_back(rows(of, 4));
    const SparseData full(shape, entries, 3);
    expect_sum<std::int32_t, float>(rank, graph, full, "G = capG");
    expect_refused<std::int32_t, float>(rank, graph, shape, rows(rank.id(), 5),
                                        "15 different rows, and the graph was recorded for 14", full);
  });
}

TEST_P(OnRanks, RefusesCapacitiesThatCannotBe) {
  run_ranks(GetParam(), [&](Rank& rank) {
    const SparseShape shape{50, 2, 8};
    for (const SparseCapacity capacity : {SparseCapacity{0, 8}, {8, 0}, {-1, 8}, {std::int64_t{1} << 31, 8}})
      EXPECT_THROW((Graph32(rank, shape, capacity)), std::invalid_argument);
    if (rank.size() > 1) {
      EXPECT_THROW((Graph32(rank, shape, SparseCapacity{8 + rank.id(), 20})), std::invalid_argument);
      EXPECT_THROW((Graph32(rank, shape, SparseCapacity{8, 20 + rank.id()})), std::invalid_argument);
    }
  });
}

TEST_P(OnRanks, HasTheBitsOfVersion2) {
  const int ranks = GetParam();
  const SparseShape shape{60, 7, 24};
  run_ranks(ranks, [&](Rank& rank) {
    Graph32 graph(rank, shape, SparseCapacity{30, 60});
    sparse_where::WhereAllReduce<std::int32_t, float> loop(rank, shape);
    for (std::uint64_t call = 1; call <= 5; ++call) {
      const SparseData data(shape, ranks, RowPattern::kUniform, 5, call);
      const DeviceGradient<std::int32_t, float> gradient(rank, data, SparseValues::kReal);
      const auto run = [&](auto& algorithm) {
        const auto result =
            algorithm.run(gradient.indices(), gradient.values(), gradient.count(), rank.stream());
        rank.synchronize(rank.stream());
        return std::pair(on_host(result.indices, result.count),
                         on_host(result.values, result.count * shape.features));
      };
      const auto [rows, values] = run(graph);
      const auto [rows_of_loop, values_of_loop] = run(loop);
      EXPECT_EQ(rows, rows_of_loop) << "call " << call;
      EXPECT_TRUE(same_bits(values, values_of_loop)) << "call " << call;
      EXPECT_EQ(graph.host_waits(), loop.host_waits());
    }
  });
}

TEST_P(OnRanks, TheDummyRowStaysZero) {
  const int ranks = GetParam();
  const SparseShape shape{64, 33, 12};
  run_ranks(ranks, [&](Rank& rank) {
    Graph32 graph(rank, shape);
    const std::vector<float> zeros(33);
    EXPECT_TRUE(same_bits(on_host(graph.find().dummy_row(), 33), zeros)) << "before the first call";
    for (const std::int64_t count : {12, 1, 0, 12}) {
      const SparseData data = lists_of(shape, ranks, 2, [=](int) { return count; });
      expect_sum<std::int32_t, float>(rank, graph, data, "dummy row");
      EXPECT_TRUE(same_bits(on_host(graph.find().dummy_row(), 33), zeros)) << count << " rows";
      rank.barrier();
    }
  });
}

TEST(GraphCapacity, IsThatOfTheShape) {
  EXPECT_EQ(SparseCapacity::of({1000, 32, 60}, 4), (SparseCapacity{60, 240}));
  EXPECT_EQ(SparseCapacity::of({100, 32, 60}, 4), (SparseCapacity{60, 100}));
  EXPECT_EQ(SparseCapacity::of({100, 32, 0}, 4), (SparseCapacity{1, 4}));
  EXPECT_EQ(SparseCapacity::of({5'000'000, 2048, 50'000}, 8), (SparseCapacity{50'000, 400'000}));
}

// Counted on rank 1, because rank 0 waits once more and receives the messages of the others.
TEST(GraphCost, IsThePagesCostCard) {
  const Cost cost = GraphAllReduce<std::int32_t, float>::cost(
      {.ranks = 8, .rank = 1, .features = 2048, .local = 50'000, .most = 50'000, .global = 386'277},
      SparseCapacity{50'000, 400'000});
  EXPECT_EQ(cost.comparisons, 20'000'000'000);
  EXPECT_EQ(cost.launches, 1);
  EXPECT_EQ(cost.host_waits, 3);
  EXPECT_EQ(cost.memory, 413'608'192);
}

TEST(GraphCost, OfTheSearchIsThatOfItsCapacities) {
  using Graph = GraphAllReduce<std::int64_t, __half>;
  const SparseCapacity capacity{7, 11};
  const sparse_nonzero::SparseCall full{
      .ranks = 2, .rank = 0, .features = 3, .local = 7, .most = 7, .global = 11};
  const sparse_nonzero::SparseCall nearly_empty{
      .ranks = 2, .rank = 0, .features = 3, .local = 0, .most = 1, .global = 1};
  const sparse_nonzero::SparseCall empty{.ranks = 2, .rank = 0, .features = 3};
  EXPECT_EQ(Graph::cost(full, capacity).comparisons, 77);
  EXPECT_EQ(Graph::cost(nearly_empty, capacity).comparisons, 77);
  EXPECT_EQ(Graph::cost(empty, capacity).comparisons, 0);
  EXPECT_EQ(Graph::cost(empty, capacity).launches, 0);
  EXPECT_EQ(Graph::cost(full, capacity).memory, 7 * (8 + 4) + 11 * (8 + 4 + 1) + 8 * 3 * 2);
}

TEST(GraphNodes, AreTwoForEachRowOfTheCapacityAndOne) {
  run_ranks(1, [&](Rank& rank) {
    for (const std::int64_t capacity : {1, 2, 60}) {
      const Graph32 graph(rank, {100, 2, 1}, SparseCapacity{capacity, 80});
      EXPECT_EQ(graph.find().graph_nodes(), static_cast<std::size_t>(2 * capacity + 1));
    }
  });
}

}  // namespace
}  // namespace overlap::sparse_graph
