// Chapter 09 on virtual GPUs: right in any order of events, moving just the bytes of its cost card, and with
// nearly all of its time in the search.
#include <gtest/gtest.h>

#include "09_sparse_v1_nonzero/nonzero.cuh"

namespace overlap {

template <SparseIndex Index, Floating T>
using Version = NonzeroAllReduce<Index, T>;

}  // namespace overlap

#include "sparse_virtual_suite.hpp"  // for Version

namespace overlap {
namespace {

/// Modelled milliseconds of one call's phases on a rank, the search and all of them.
struct Times {
  double map = 0, all = 0;
};

/// Of the second of two calls: the first one allocates.
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

}  // namespace
}  // namespace overlap
