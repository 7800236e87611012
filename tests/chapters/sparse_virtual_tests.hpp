// What versions of the sparse all-reduce are tested with on virtual GPUs only: schedules, counted bytes, and
// the order of modelled times.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "09_sparse_v1_nonzero/sparse_cost.cuh"
#include "overlap/gpu/phase_clock.hpp"
#include "sparse_version_tests.hpp"
#include "vgpu/control.hpp"

namespace overlap {

/// Ranks with different numbers of rows, one of them with none.
inline SparseData uneven_gradient(int ranks) {
  Entries entries;
  for (int rank = 0; rank < ranks; ++rank) entries.push_back(stride(rank, 2, rank == 1 ? 0 : 30 + 7 * rank));
  return SparseData({200, 5, 100}, std::move(entries), 1);
}

/// Right in so many random orders of events, call after call.
template <template <SparseIndex, Floating> class Algorithm>
void expect_right_in_schedules(std::uint64_t count) {
  for (std::uint64_t seed = 1; seed <= count; ++seed) {
    for (const int ranks : {2, 3, 8}) {
      vgpu::reset();
      vgpu::use_schedule(seed);
      const SparseData data = uneven_gradient(ranks);
      expect_sums<Algorithm, std::int32_t, float>({data, data}, "schedule " + std::to_string(seed));
    }
  }
}

/// The bytes of one call, into each rank and out of it, are those of its cost card.
template <template <SparseIndex, Floating> class Algorithm>
void expect_bytes_of_the_card(int ranks) {
  vgpu::reset();
  const SparseData data = uneven_gradient(ranks);
  run_ranks(ranks, [&](Rank& rank) {
    Algorithm<std::int32_t, float> algorithm(rank, data.shape());
    const DeviceGradient<std::int32_t, float> gradient(rank, data, SparseValues::kExact);
    const auto moved = [&](bool in) {
      std::uint64_t bytes = 0;
      for (int other = 0; other < ranks; ++other) {
        if (other != rank.id())
          bytes += in ? vgpu::traffic(other, rank.id()).bytes : vgpu::traffic(rank.id(), other).bytes;
      }
      return static_cast<std::int64_t>(bytes);
    };
    rank.barrier();
    const std::int64_t in = moved(true), out = moved(false);
    rank.barrier();
    algorithm.run(gradient.indices(), gradient.values(), gradient.count(), rank.stream());
    rank.synchronize(rank.stream());
    rank.barrier();
    const Cost cost = Algorithm<std::int32_t, float>::cost(call_of(data, rank.id()));
    EXPECT_EQ(moved(true) - in, cost.bytes_in) << "rank " << rank.id() << " of " << ranks;
    EXPECT_EQ(moved(false) - out, cost.bytes_out) << "rank " << rank.id() << " of " << ranks;
    rank.barrier();
  });
}

/// Modelled milliseconds of the search on rank 0, in the second of two calls: the first one allocates.
template <template <SparseIndex, Floating> class Algorithm>
double map_ms(const SparseData& data) {
  vgpu::reset();
  double ms = 0;
  run_ranks(data.ranks(), [&](Rank& rank) {
    Algorithm<std::int32_t, float> algorithm(rank, data.shape());
    expect_sum<std::int32_t, float>(rank, algorithm, data, "the first call");
    expect_sum<std::int32_t, float>(rank, algorithm, data, "the second call");
    for (const Phase& phase : algorithm.phases()) {
      if (rank.id() == 0 && phase.name == "map") ms = phase.ms;
    }
  });
  return ms;
}

}  // namespace overlap
