// Chapter 11 on any GPUs: right for every distribution, type and number of ranks, whatever the call before
// has left in the graph's lists, up to the last free place of its capacities and not beyond.
#include "11_sparse_v3_graph/graph.cuh"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "10_sparse_v2_where/where.cuh"
#include "overlap/backend.hpp"
#include "sparse_run.hpp"

namespace overlap {
namespace {

using Graph32 = GraphAllReduce<std::int32_t, float>;

class OnRanks : public testing::TestWithParam<int> {
 protected:
  static void SetUpTestSuite() { backend::prepare(); }
  void SetUp() override {
    if (!enough_gpus(GetParam())) GTEST_SKIP() << "there are fewer GPUs";
  }
};
INSTANTIATE_TEST_SUITE_P(Graph, OnRanks, testing::Values(1, 2, 3, 4, 8));

TEST_P(OnRanks, IsRightOnEveryDistribution) {
  for_distributions(GetParam(), [](const Distribution& distribution, const SparseData& data) {
    expect_sums<GraphAllReduce, std::int32_t, float>({data}, distribution.name);
  });
}

template <SparseIndex Index, Floating T>
void expect_right_on_some(int ranks, const std::string& what) {
  for (const Distribution& distribution : distributions(ranks)) {
    if (distribution.shape.rows > 100) continue;
    const SparseData data(distribution.shape, distribution.entries, 11);
    expect_sums<GraphAllReduce, Index, T>({data}, what + ", " + distribution.name);
  }
}

TEST_P(OnRanks, IsRightInEveryTypeAndIndex) {
  expect_right_on_some<std::int32_t, __half>(GetParam(), "f16");
  expect_right_on_some<std::int64_t, __nv_bfloat16>(GetParam(), "bf16, int64");
  expect_right_on_some<std::int64_t, float>(GetParam(), "f32, int64");
}

/// The first rows of each rank's list, by rank: so many of `step`, from the rank's number on.
SparseData lists_of(SparseShape shape, int ranks, const std::function<std::int64_t(int)>& count,
                    std::int64_t step, std::uint64_t seed = 5) {
  Entries entries;
  for (int rank = 0; rank < ranks; ++rank) entries.push_back(stride(rank, step, count(rank)));
  return SparseData(shape, std::move(entries), seed);
}

// A call leaves its row numbers and values in the graph's lists. The short call's rows are among the long
// one's, but on other ranks: what is left would be found, and added.
TEST_P(OnRanks, ALongCallLeavesNothingToAShortOne) {
  const int ranks = GetParam();
  const SparseShape shape{200, 3, 40};
  const auto all = [&](std::int64_t count) {
    return lists_of(
        shape, ranks, [=](int) { return count; }, 1);
  };
  const auto apart = [&](std::int64_t count) {
    return lists_of(
        shape, ranks, [=](int) { return count; }, ranks + 1);
  };
  const auto only_last = lists_of(
      shape, ranks, [=](int rank) { return rank == ranks - 1 ? 7 : 0; }, 1);
  expect_sums<GraphAllReduce, std::int32_t, float>(
      {all(40), apart(4), all(0), all(39), only_last, apart(2), all(1), all(0), all(40), all(1)},
      "long, short, none");
}

// 250 calls in all, over the five numbers of ranks: of one shape, 50 on one object.
TEST_P(OnRanks, IsRightOnRandomCallsOfOneGraph) {
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

TEST_P(OnRanks, IsRightOnRandomShapes) {  // 200 in all
  const std::uint64_t seed = 1000 * static_cast<std::uint64_t>(GetParam());
  for (std::uint64_t i = 0; i < 40; ++i) {
    expect_sums<GraphAllReduce, std::int64_t, float>({random_gradient(GetParam(), seed + i, 20)},
                                                     "random gradient of seed " + std::to_string(seed + i));
  }
}

TEST_P(OnRanks, IsRightForAllNumbersOfFeatures) {
  for (const std::int64_t features : {1, 2, 3, 5, 8, 33, 257}) {
    const SparseShape shape{50, features, 9};
    expect_sums<GraphAllReduce, std::int32_t, float>(
        {lists_of(
            shape, GetParam(), [](int rank) { return 9 - rank % 4; }, 2)},
        std::to_string(features) + " features");
  }
}

// The blocks of the search have 256 threads: capacities and lists around that.
TEST_P(OnRanks, IsRightAroundTheSizeOfABlock) {
  if (GetParam() > 3) GTEST_SKIP() << "the sizes do not depend on the number of ranks";
  for (const std::int64_t count : {255, 256, 257}) {
    const SparseShape shape{2000, 1, 3};
    const SparseData data = lists_of(
        shape, GetParam(), [=](int rank) { return rank == 0 ? count : 3; }, GetParam());
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
    return lists_of(
        shape, ranks, [=](int) { return count; }, ranks);
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
    Graph32 graph(rank, shape, {10, room});
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

TEST_P(OnRanks, RefusesBadRowsAndGoesOn) {
  const int ranks = GetParam();
  const SparseShape shape{50, 2, 8};
  const SparseData right = lists_of(
      shape, ranks, [](int) { return 8; }, 3);
  run_ranks(ranks, [&](Rank& rank) {
    Graph32 graph(rank, shape);
    for (const std::int64_t bad : {-1, -2, 50, 0x7fffffff}) {
      // -1 and -2 stand in lists as pads: they must not be taken for rows, nor rows for them.
      expect_refused<std::int32_t, float>(rank, graph, shape,
                                          rank.id() == 0 ? stride(bad, 0, 1) : stride(1, 1, 2),
                                          "has an index that is not between 0 and 49", right);
    }
  });
}

TEST_P(OnRanks, RefusesCapacitiesThatCannotBe) {
  run_ranks(GetParam(), [&](Rank& rank) {
    const SparseShape shape{50, 2, 8};
    for (const SparseCapacity capacity : {SparseCapacity{0, 8}, {8, 0}, {-1, 8}, {std::int64_t{1} << 31, 8}})
      EXPECT_THROW((Graph32(rank, shape, capacity)), std::invalid_argument);
    if (rank.size() > 1) {
      EXPECT_THROW((Graph32(rank, shape, {8 + rank.id(), 20})), std::invalid_argument);
      EXPECT_THROW((Graph32(rank, shape, {8, 20 + rank.id()})), std::invalid_argument);
    }
  });
}

/// The bits of a vector of floats.
std::vector<std::uint32_t> bits(const std::vector<float>& values) {
  std::vector<std::uint32_t> all(values.size());
  if (!values.empty()) std::memcpy(all.data(), values.data(), values.size() * sizeof(float));
  return all;
}

TEST_P(OnRanks, HasTheBitsOfVersion2) {
  const int ranks = GetParam();
  const SparseShape shape{60, 7, 24};
  run_ranks(ranks, [&](Rank& rank) {
    Graph32 graph(rank, shape, {30, 60});
    WhereAllReduce<std::int32_t, float> loop(rank, shape);
    for (std::uint64_t call = 1; call <= 5; ++call) {
      const SparseData data(shape, ranks, RowPattern::kUniform, 5, call);
      const DeviceGradient<std::int32_t, float> gradient(rank, data, SparseValues::kReal);
      const auto run = [&](auto& algorithm) {
        const auto result =
            algorithm.run(gradient.indices(), gradient.values(), gradient.count(), rank.stream());
        rank.synchronize(rank.stream());
        return std::pair(on_host(result.indices, result.count),
                         bits(on_host(result.values, result.count * shape.features)));
      };
      EXPECT_EQ(run(graph), run(loop)) << "call " << call;
      EXPECT_EQ(graph.host_waits(), loop.host_waits());
    }
  });
}

TEST_P(OnRanks, TheDummyRowStaysZero) {
  const int ranks = GetParam();
  const SparseShape shape{64, 33, 12};
  run_ranks(ranks, [&](Rank& rank) {
    Graph32 graph(rank, shape);
    const std::vector<std::uint32_t> zeros(33);
    EXPECT_EQ(bits(on_host(graph.dummy_row(), 33)), zeros);
    for (const std::int64_t count : {12, 1, 0, 12}) {
      const SparseData data = lists_of(
          shape, ranks, [=](int) { return count; }, 2);
      expect_sum<std::int32_t, float>(rank, graph, data, "dummy row");
      EXPECT_EQ(bits(on_host(graph.dummy_row(), 33)), zeros) << count << " rows";
      rank.barrier();
    }
  });
}

/// One rank's gradient with given values; all others' rows are the same, with zeros.
struct OwnValues {
  std::vector<std::int32_t> rows;
  std::vector<float> values;
};

/// The result of a call on a table of 20 rows of 2 features, on this rank.
std::vector<float> sum_of(Rank& rank, Graph32& graph, const OwnValues& own) {
  const DeviceBuffer<std::int32_t> rows(rank.device(), own.rows.size());
  const DeviceBuffer<float> values(rank.device(), own.values.size());
  if (!own.rows.empty()) {
    CUDA_CHECK(cudaMemcpy(rows.data(), own.rows.data(), rows.bytes(), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(values.data(), own.values.data(), values.bytes(), cudaMemcpyHostToDevice));
  }
  const auto result =
      graph.run(rows.data(), values.data(), static_cast<std::int64_t>(own.rows.size()), rank.stream());
  rank.synchronize(rank.stream());
  return on_host(result.values, result.count * 2);
}

TEST_P(OnRanks, KeepsSpecialValuesWhereTheyAre) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const float tiny = std::numeric_limits<float>::denorm_min();
  run_ranks(GetParam(), [&](Rank& rank) {
    Graph32 graph(rank, {20, 2, 5});
    const bool first = rank.id() == 0, last = rank.id() == rank.size() - 1;
    // Rank 0 alone has row 3; both ends have the others, which cancel there, but are kept.
    OwnValues own;
    if (first) own = {{3, 7, 9, 11}, {nan, 1, inf, 2, 4, tiny, 0, 0}};
    if (last && !first) own = {{7, 9, 11, 19}, {1, -2, -4, tiny, 0, 0, -inf, 5}};
    for (int call = 0; call < 2; ++call) {
      const std::vector<float> sum = sum_of(rank, graph, own);
      const bool both = rank.size() > 1;
      ASSERT_EQ(sum.size(), both ? 10U : 8U);
      EXPECT_TRUE(std::isnan(sum[0]));
      EXPECT_EQ(sum[1], 1);
      EXPECT_EQ(sum[2], inf);
      EXPECT_EQ(sum[3], both ? 0 : 2);
      EXPECT_EQ(sum[4], both ? 0 : 4);
      EXPECT_EQ(sum[5], both ? 2 * tiny : tiny);
      EXPECT_EQ(sum[6], 0);  // explicit zeros are a row like any other
      EXPECT_EQ(sum[7], 0);
      if (both) EXPECT_EQ(sum[8], -inf);
      if (both) EXPECT_EQ(sum[9], 5);
      // What is not a number must not stay in a list for the next call to meet.
      EXPECT_EQ(sum_of(rank, graph, {{1}, {1, 2}}),
                (std::vector<float>{1.0F * rank.size(), 2.0F * rank.size()}));
    }
  });
}

TEST(GraphCapacity, IsThatOfTheShape) {
  EXPECT_EQ(SparseCapacity::of({1000, 32, 60}, 4), (SparseCapacity{60, 240}));
  EXPECT_EQ(SparseCapacity::of({100, 32, 60}, 4), (SparseCapacity{60, 100}));
  EXPECT_EQ(SparseCapacity::of({100, 32, 0}, 4), (SparseCapacity{1, 4}));
  EXPECT_EQ(SparseCapacity::of({5'000'000, 2048, 50'000}, 8), (SparseCapacity{50'000, 400'000}));
}

TEST(GraphNodes, AreTwoForEachRowOfTheCapacityAndOne) {
  backend::prepare();
  run_ranks(1, [&](Rank& rank) {
    for (const std::int64_t capacity : {1, 2, 60}) {
      const Graph32 graph(rank, {100, 2, 1}, {capacity, 80});
      EXPECT_EQ(graph.graph_nodes(), static_cast<std::size_t>(2 * capacity + 1));
    }
  });
}

}  // namespace
}  // namespace overlap
