// Chapter 09 on virtual GPUs: right in any order of events, moving just the bytes of its cost card, and with
// nearly all of its time in the search.
#include <gtest/gtest.h>

#include "09_sparse_v1_nonzero/nonzero.cuh"

#include "far_rows.hpp"
#include "sparse_virtual_suite.hpp"

namespace overlap::sparse_nonzero {
namespace {

INSTANTIATE_TYPED_TEST_SUITE_P(Nonzero, SparseVersionOnVirtualGpus, VersionOf<NonzeroAllReduce>);

/// Modelled milliseconds of one call's phases on a rank, the search and all of them.
struct Times {
  double map = 0, all = 0;
};

/// The time of the second of two calls, because the first one allocates.
Times times_of(Rank& rank, std::int64_t entries) {
  const SparseData data({17 * entries, 32, entries}, rank.size(), RowPattern::kUniform, 0, 1);
  NonzeroAllReduce<std::int32_t, float> algorithm(rank, data.shape());
  expect_sum<std::int32_t, float>(rank, algorithm, data, "the first call");
  expect_sum<std::int32_t, float>(rank, algorithm, data, "the second call");
  Times times;
  for (const Phase& phase : algorithm.phases()) {
    times.all += phase.ms;
    if (phase.name == "map") times.map += phase.ms;
  }
  rank.barrier();
  return times;
}

TEST_F(OnVirtualGpus, NearlyAllOfTheModelledTimeGoesIntoTheSearch) {
  run_ranks(4, [](Rank& rank) {
    const Times few = times_of(rank, 60), more = times_of(rank, 240);
    EXPECT_GT(more.map, 0.9 * more.all);
    EXPECT_GT(more.map, 3.8 * few.map) << "a wait for each row: four times the rows, four times the time";
  });
}

// Both ways: the rows of this rank from everywhere, and their places everywhere.
TEST_F(FarRows, AreScatteredIn64Bits) {
  const DeviceBuffer<FarElement> values(0, kFarElements), global_values(0, kFarElements);
  const DeviceBuffer<std::int32_t> rows(0, kFarRows), global(0, kFarRows), positions(0, kFarRows);
  const DeviceBuffer<int> lost(0, 1);
  put(lost, 0, {0});
  for (const std::int64_t row : rows_of_the_block()) {
    const auto number = static_cast<std::int32_t>(7 + row);  // of the table
    put(rows, row, {number});
    put(positions, row, {static_cast<std::int32_t>(opposite(row))});
    put(global, opposite(row), {number});
    put_row(values, row, far_values(row));
  }
  run_block(kFarBlock, [&] {
    scatter_rows<<<kFarGrid, kBlockThreads>>>(
        SparseRows<std::int32_t, FarElement>{rows.data(), values.data(), kFarRows}, global.data(), kFarRows,
        positions.data(), kFarFeatures, global_values.data(), lost.data());
  });
  for (const std::int64_t row : rows_of_the_block())
    expect_row(global_values, opposite(row), far_values(row));
  EXPECT_EQ(at(lost, 0), 0);
}

}  // namespace
}  // namespace overlap::sparse_nonzero
