// Tests of the sparse all-reduces on virtual GPUs only: schedules, counted bytes, order of modelled times.
#pragma once

#include <cstdint>

#include "link_traffic.hpp"
#include "on_virtual_gpus.hpp"
#include "overlap/gpu/phase_clock.hpp"
#include "sparse_version_tests.hpp"

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
  for (const int ranks : {2, 3, 8}) {
    const SparseData data = uneven_gradient(ranks);
    in_random_schedules(count, [&](std::uint64_t) {
      expect_sums<Algorithm, std::int32_t, float>({data, data}, "schedule");
    });
  }
}

/// What one call moves, of a constructed algorithm. Collective.
template <typename Algorithm>
LinkTraffic traffic_of_a_call(Rank& rank, Algorithm& algorithm, const SparseData& data) {
  const DeviceGradient<std::int32_t, float> gradient(rank, data, SparseValues::kExact);
  return traffic_of(rank, [&](cudaStream_t stream) {
    algorithm.run(gradient.indices(), gradient.values(), gradient.count(), stream);
  });
}

/// The bytes of one call, into each rank and out of it, are those of its cost card.
template <template <SparseIndex, Floating> class Algorithm>
void expect_bytes_of_the_card(int ranks) {
  vgpu::reset();
  const SparseData data = uneven_gradient(ranks);
  run_ranks(ranks, [&](Rank& rank) {
    Algorithm<std::int32_t, float> algorithm(rank, data.shape());
    const LinkTraffic moved = traffic_of_a_call(rank, algorithm, data);
    expect_bytes_of(Algorithm<std::int32_t, float>::cost(call_of(data, rank.id())), moved, rank.id());
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
