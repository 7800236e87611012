// Chapter 03 on virtual GPUs: right in any order of events, moving just the bytes of its cost card. GEMMs are
// slower only if they need the multiprocessors that NCCL occupies.
#include <gtest/gtest.h>

#include "03_ring_all_gather/ring_all_gather.cuh"
#include "dense_virtual.hpp"
#include "overlap/gpu/gemm.hpp"

namespace overlap::ring_all_gather {
namespace {

using Ring = RingAllGatherMatmul<__half>;
using Problem = GatherProblem<__half>;

TEST_F(OnVirtualGpus, IsRightInTwentySchedules) {
  for (const int ranks : {2, 3, 8}) {
    in_random_schedules(20, [ranks](std::uint64_t seed) {
      expect_right<Ring, Problem>(ranks, {19, 37, 11}, seed, 4);
    });
  }
}

TEST_F(OnVirtualGpus, SameSeedSameSchedule) {
  expect_same_seed_same_schedule([] { expect_right<Ring, Problem>(4, {33, 40, 8}, 1, 2); });
}

TEST_F(OnVirtualGpus, MovesTheBytesOfItsCostCardToTheLeftNeighbourOnly) {
  for (const MatmulShape shape : {MatmulShape{16, 32, 8}, MatmulShape{19, 37, 11}, MatmulShape{5, 3, 7}}) {
    for (const int ranks : {1, 2, 3, 8}) {
      expect_one_neighbour(traffic_of_a_call<Ring, Problem>(ranks, shape), ranks, -1,
                           [&](int rank) { return Ring::cost(shape, ranks, rank); });
    }
  }
}

/// The ring and its baselines.
struct Times {
  double ring = 0, split_only = 0, one_after_the_other = 0;
};

/// Modelled times, in ms, with shards of 128 rows and `columns` columns on each rank.
Times times_on(int ranks, std::int64_t columns) {
  vgpu::reset();
  Times times;
  run_ranks(ranks, [&](Rank& rank) {
    const MatmulShape shape{128 * ranks, columns * ranks, 256};
    const Problem problem(rank, shape, 1);
    Ring ring(rank, shape);
    const auto split_only = [&](cudaStream_t stream) {
      for (int shard = 0; shard < ranks; ++shard)
        multiply_shard(rank, shape, shard, problem.a(), problem.b(), problem.c(), stream);
    };
    const auto one_after_the_other = [&](cudaStream_t stream) {
      ring.communicate(problem.a(), stream);
      matmul_row_major(rank.cublas(), stream, problem.product(), problem.whole_a(), problem.b(), problem.c());
    };
    const auto ms = modelled_ms(rank, {call_of(ring, problem), split_only, one_after_the_other});
    if (rank.id() == 0) times = {ms[0], ms[1], ms[2]};
  });
  return times;
}

// A shard of 128 rows times 512 columns is 8 tiles of 128 x 64, and the modelled GPU has 8 multiprocessors:
// if NCCL occupies one of them, a GEMM takes a second wave. With 448 columns there are 7 tiles, and one wave
// is enough.
TEST_F(OnVirtualGpus, ProductsThatLeaveRoomHideTheTransfersInTheModel) {
  for (const int ranks : {2, 4, 8}) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks");
    const Times times = times_on(ranks, 448);
    EXPECT_LT(times.ring, 0.9 * times.one_after_the_other);
    EXPECT_LT(times.ring, 1.03 * times.split_only);
  }
}

TEST_F(OnVirtualGpus, ProductsThatFillTheGpuTakeAnotherWaveInTheModel) {
  for (const int ranks : {4, 8}) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks");
    const Times full = times_on(ranks, 512), with_room = times_on(ranks, 448);
    EXPECT_LT(full.ring, full.one_after_the_other);
    EXPECT_GT(full.ring, 1.2 * full.split_only);
    EXPECT_GT(full.ring, 1.2 * with_room.ring);
  }
}

}  // namespace
}  // namespace overlap::ring_all_gather
