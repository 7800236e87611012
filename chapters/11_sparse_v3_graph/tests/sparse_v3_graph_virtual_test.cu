// Chapter 11 on virtual GPUs: right in any order of events, an all-reduce of the existing rows and not of the
// capacity, and a search that no longer depends on launches.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "09_sparse_v1_nonzero/nonzero.cuh"
#include "11_sparse_v3_graph/graph.cuh"
#include "far_rows.hpp"
#include "sparse_virtual_tests.hpp"

namespace overlap::sparse_graph {
namespace {

using Loop = sparse_where::WhereAllReduce<std::int32_t, float>;
using Recorded = GraphAllReduce<std::int32_t, float>;

TEST_F(OnVirtualGpus, IsRightInTwentySchedules) {
  for (const int ranks : {2, 3, 8}) {
    in_random_schedules(20, [ranks](std::uint64_t seed) {
      std::vector<SparseData> gradients;
      for (const std::int64_t entries : {9, 2, 0, 7})
        gradients.emplace_back(SparseShape{80, 3, entries}, ranks, RowPattern::kUniform, entries / 2, seed);
      expect_sums<GraphAllReduce, std::int32_t, float>(gradients, "graph", SparseCapacity{9, 80});
    });
  }
}

TEST_F(OnVirtualGpus, SameSeedSameSchedule) {
  const SparseData data({80, 3, 9}, 4, RowPattern::kUniform, 2, 1);
  expect_same_seed_same_schedule([&] {
    expect_sums<GraphAllReduce, std::int32_t, float>({data, data}, "twice");
  });
}

/// One call.
struct Call {
  LinkTraffic moved;
  std::vector<int> host_waits;  // by rank
  double map_ms = 0;            // on the slowest rank
  double skew_ms = 0;           // from the first rank's arrival at the all-reduce to the last one's
};

/// The second call on a constructed algorithm.
template <typename Algorithm, typename... More>
Call second_call(const SparseData& data, const More&... more) {
  vgpu::reset();
  Call call;
  run_ranks(data.ranks(), [&](Rank& rank) {
    Algorithm algorithm(rank, data.shape(), more...);
    expect_sum<std::int32_t, float>(rank, algorithm, data, "first call");
    const LinkTraffic moved = traffic_of_a_call(rank, algorithm, data);
    double map_ms = 0, arrival_ms = 0;
    for (const Phase& phase : algorithm.phases()) {
      if (phase.name == "map") map_ms = phase.ms;
      if (phase.name != "all_reduce") arrival_ms += phase.ms;
    }
    const std::vector<double> maps = rank.exchange(map_ms), arrivals = rank.exchange(arrival_ms);
    const std::vector<int> waits = rank.exchange(algorithm.host_waits());
    if (rank.id() != 0) return;
    const auto [first, last] = std::minmax_element(arrivals.begin(), arrivals.end());
    call.skew_ms = *last - *first;
    call.map_ms = *std::max_element(maps.begin(), maps.end());
    call.host_waits = waits;
    call.moved = moved;
  });
  return call;
}

// For any capacity, places without a row are not sent.
TEST_F(OnVirtualGpus, MovesTheBytesOfItsCostCardWhateverItsCapacity) {
  for (const int ranks : {1, 2, 3, 8}) {
    const SparseData data({200, 5, 12}, ranks, RowPattern::kUniform, 3, 4);
    for (const SparseCapacity capacity : {SparseCapacity{12, 12 * ranks}, {40, 200}}) {
      const Call call = second_call<Recorded>(data, capacity);
      for (int rank = 0; rank < ranks; ++rank) {
        const Cost cost = Recorded::cost(call_of(data, rank), capacity);
        expect_bytes_of(cost, call.moved, rank);
        EXPECT_EQ(call.host_waits[static_cast<std::size_t>(rank)], cost.host_waits)
            << rank << " of " << ranks;
      }
    }
  }
}

TEST_F(OnVirtualGpus, EachVersionSearchesFasterThanTheOneBeforeInTheModel) {
  for (const int ranks : {1, 2, 4}) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks");
    const SparseData data({1000, 8, 60}, ranks, RowPattern::kUniform, 6, 1);
    const double with_waits = second_call<sparse_nonzero::NonzeroAllReduce<std::int32_t, float>>(data).map_ms;
    const double by_launches = second_call<Loop>(data).map_ms;
    const double by_graph = second_call<Recorded>(data).map_ms;
    EXPECT_LT(by_launches, with_waits);
    EXPECT_LT(by_graph, by_launches);
  }
}

// The graph has the same number of rounds on all ranks, for any number of own rows.
TEST_F(OnVirtualGpus, RanksOfDifferentSizesArriveTogetherInTheModel) {
  const SparseData data({1000, 8, 60}, 4, RowPattern::kUneven, 0, 1);
  const Call loop = second_call<Loop>(data), recorded = second_call<Recorded>(data);
  EXPECT_GT(loop.skew_ms, 0.5 * loop.map_ms);  // the first rank has a quarter of the last one's rows
  EXPECT_LT(recorded.skew_ms, 0.05 * recorded.map_ms);
}

// A graph's time is that of its capacities: 5 rows take as long as 60 in the same graph, and less in their
// own.
TEST_F(OnVirtualGpus, RoomThatIsNotUsedCostsTimeInTheModel) {
  const SparseData few({1000, 8, 5}, 4, RowPattern::kUniform, 0, 1);
  const double large = second_call<Recorded>(few, SparseCapacity{60, 240}).map_ms;
  const double fitting = second_call<Recorded>(few, SparseCapacity{5, 20}).map_ms;
  EXPECT_GT(large, 5 * fitting);
}

TEST_F(FarRows, AreGatheredIn64Bits) {
  const DeviceBuffer<FarElement> values(0, kFarElements), global_values(0, kFarElements);
  const DeviceBuffer<std::int32_t> sources(0, kFarRows);
  for (const std::int64_t row : rows_of_the_block()) {
    put(sources, row, {static_cast<std::int32_t>(opposite(row))});
    put_row(values, opposite(row), far_values(opposite(row)));
  }
  run_block(kFarBlock, [&] {
    gather_rows<<<kFarGrid, kBlockThreads>>>(values.data(), sources.data(), kFarRows, kFarFeatures,
                                             global_values.data());
  });
  for (const std::int64_t row : rows_of_the_block())
    expect_row(global_values, row, far_values(opposite(row)));
}

// Few rows, but wide ones: the dummy row is the last of the graph's.
TEST_F(FarRows, TheDummyRowMayBeOne) {
  run_ranks(1, [](Rank& rank) {
    constexpr std::int64_t features = std::int64_t{1} << 22, capacity = (std::int64_t{1} << 10) + 1;
    std::size_t before = 0, after = 0, total = 0;
    CUDA_CHECK(cudaMemGetInfo(&before, &total));
    const GraphAllReduce<std::int32_t, FarElement> graph(rank, {5000, features, 1},
                                                         SparseCapacity{capacity, 1});
    CUDA_CHECK(cudaMemGetInfo(&after, &total));
    EXPECT_GE(before - after, static_cast<std::size_t>((capacity + 1) * features) * sizeof(FarElement));
    const std::vector<FarElement> zeros(features, from_float<FarElement>(0));
    EXPECT_TRUE(same_bits(on_host(graph.find().dummy_row(), features), zeros));
  });
}

}  // namespace
}  // namespace overlap::sparse_graph
