// What every version of the sparse all-reduce has to show on virtual GPUs.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "sparse_version_tests.hpp"
#include "vgpu/control.hpp"

namespace overlap {

class OnVirtualGpus : public testing::Test {
 protected:
  void SetUp() override { vgpu::reset(); }
  void TearDown() override { vgpu::reset(); }
};

/// Two calls of one object on lists of different lengths, in an order of events that the seed decides.
template <template <SparseIndex, Floating> class Algorithm>
void run_in_schedule(int ranks, std::uint64_t schedule) {
  vgpu::reset();
  vgpu::use_schedule(schedule);
  SCOPED_TRACE("schedule " + std::to_string(schedule));
  const SparseData data({90, 5, 14}, ranks, RowPattern::kUneven, 3, schedule);
  expect_sums<Algorithm, std::int32_t, float>({data, data}, std::to_string(ranks) + " ranks");
}

template <template <SparseIndex, Floating> class Algorithm>
void expect_right_in_schedules(int count) {
  for (int schedule = 1; schedule <= count; ++schedule) {
    for (const int ranks : {2, 3, 8}) run_in_schedule<Algorithm>(ranks, static_cast<std::uint64_t>(schedule));
  }
}

template <template <SparseIndex, Floating> class Algorithm>
void expect_same_schedule_for_the_same_seed() {
  const auto hash = [](std::uint64_t seed) {
    run_in_schedule<Algorithm>(4, seed);
    return vgpu::schedule_hash();
  };
  EXPECT_EQ(hash(17), hash(17));
  EXPECT_NE(hash(17), hash(18));
}

/// One call moves, into each GPU and out of it, the bytes of its cost card.
template <template <SparseIndex, Floating> class Algorithm, SparseIndex Index, Floating T>
void expect_traffic_of_the_cost_card(RowPattern pattern, std::int64_t entries) {
  for (const int ranks : {1, 2, 3, 8}) {
    vgpu::reset();
    const SparseData data({211, 7, entries}, ranks, pattern, 2, 3);
    const auto moved = [&](int rank) {
      std::int64_t in = 0, out = 0;
      for (int other = 0; other < ranks; ++other) {
        if (other == rank) continue;
        in += static_cast<std::int64_t>(vgpu::traffic(other, rank).bytes);
        out += static_cast<std::int64_t>(vgpu::traffic(rank, other).bytes);
      }
      return std::pair(in, out);
    };
    run_ranks(ranks, [&](Rank& rank) {
      Algorithm<Index, T> algorithm(rank, data.shape());
      const DeviceGradient<Index, T> gradient(rank, data, SparseValues::kExact);
      rank.barrier();
      const auto before = moved(rank.id());
      rank.barrier();
      algorithm.run(gradient.indices(), gradient.values(), gradient.count(), rank.stream());
      rank.synchronize(rank.stream());
      rank.barrier();
      const auto after = moved(rank.id());
      rank.barrier();
      const SparseCost cost = Algorithm<Index, T>::cost(call_of(data, rank.id()));
      EXPECT_EQ(after.first - before.first, cost.bytes_in) << "rank " << rank.id() << " of " << ranks;
      EXPECT_EQ(after.second - before.second, cost.bytes_out) << "rank " << rank.id() << " of " << ranks;
    });
  }
}

/// Modelled milliseconds of a call, and of its phase "map", on rank 0.
struct ModelledTimes {
  double call = 0, map = 0;
};

/// The second call of an object: memory has its size by then.
template <template <SparseIndex, Floating> class Algorithm>
ModelledTimes modelled_times(int ranks, std::int64_t entries) {
  vgpu::reset();
  ModelledTimes times;
  const SparseData data({17 * entries, 32, entries}, ranks, RowPattern::kUniform, 0, 1);
  run_ranks(ranks, [&](Rank& rank) {
    Algorithm<std::int32_t, float> algorithm(rank, data.shape());
    const DeviceGradient<std::int32_t, float> gradient(rank, data, SparseValues::kReal);
    for (int call = 0; call < 2; ++call) {
      rank.barrier();
      algorithm.run(gradient.indices(), gradient.values(), gradient.count(), rank.stream());
      rank.synchronize(rank.stream());
    }
    ModelledTimes own;
    for (const Phase& phase : algorithm.phases()) {
      own.call += phase.ms;
      if (phase.name == "map") own.map += phase.ms;
    }
    if (rank.id() == 0) times = own;
  });
  return times;
}

}  // namespace overlap
