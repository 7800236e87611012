// Chapter 03 on virtual GPUs: right in any order of events, moving just the bytes of its cost card, and with
// its products as fast as what NCCL leaves of the GPU allows.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "03_ring_all_gather/ring_all_gather.cuh"
#include "dense_run.hpp"
#include "on_virtual_gpus.hpp"
#include "overlap/gpu/gemm.hpp"

namespace overlap::ring_all_gather {
namespace {

using Ring = RingAllGatherMatmul<__half>;
using Problem = GatherProblem<__half>;

TEST_F(OnVirtualGpus, IsRightInTwentySchedules) {
  for (std::uint64_t seed = 1; seed <= schedules(); ++seed) {
    for (const int ranks : {2, 3, 8}) {
      vgpu::reset();
      vgpu::use_schedule(seed);
      SCOPED_TRACE("schedule " + std::to_string(seed));
      expect_right<Ring, Problem>(ranks, {19, 37, 11}, seed, 4);
    }
  }
}

TEST_F(OnVirtualGpus, SameSeedSameSchedule) {
  expect_same_seed_same_schedule([] { expect_right<Ring, Problem>(4, {33, 40, 8}, 1, 2); });
}

/// Bytes and messages between all pairs of GPUs so far.
std::vector<vgpu::Traffic> traffic_now(int ranks) {
  std::vector<vgpu::Traffic> all;
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) all.push_back(vgpu::traffic(from, to));
  }
  return all;
}

/// What one call of run() moves, without the constructor's.
std::vector<vgpu::Traffic> traffic_of_a_call(int ranks, MatmulShape shape) {
  std::vector<vgpu::Traffic> moved;
  run_ranks(ranks, [&](Rank& rank) {
    Problem problem(rank, shape, 1);
    problem.fill_exact();
    Ring ring(rank, shape);
    rank.barrier();
    const std::vector<vgpu::Traffic> before = traffic_now(ranks);
    rank.barrier();
    ring.run(problem.a(), problem.b(), problem.c(), rank.stream());
    rank.synchronize(rank.stream());
    rank.barrier();
    EXPECT_TRUE(problem.compare_exact(false).ok());
    if (rank.id() != 0) return;
    moved = traffic_now(ranks);
    for (std::size_t i = 0; i < moved.size(); ++i) {
      moved[i].bytes -= before[i].bytes;
      moved[i].copies -= before[i].copies;
    }
  });
  return moved;
}

TEST_F(OnVirtualGpus, MovesTheBytesOfItsCostCardToTheLeftNeighbourOnly) {
  for (const MatmulShape shape : {MatmulShape{16, 32, 8}, MatmulShape{19, 37, 11}, MatmulShape{5, 3, 7}}) {
    for (const int ranks : {1, 2, 3, 8}) {
      vgpu::reset();
      const std::vector<vgpu::Traffic> moved = traffic_of_a_call(ranks, shape);
      for (int from = 0; from < ranks; ++from) {
        for (int to = 0; to < ranks; ++to) {
          const bool is_link = ranks > 1 && to == (from + ranks - 1) % ranks;
          const Cost sender = Ring::cost(shape, ranks, from), receiver = Ring::cost(shape, ranks, to);
          const vgpu::Traffic& link = moved[static_cast<std::size_t>(from * ranks + to)];
          EXPECT_EQ(link.bytes, is_link ? sender.bytes_out : 0) << from << " to " << to << " of " << ranks;
          EXPECT_EQ(link.bytes, is_link ? receiver.bytes_in : 0) << from << " to " << to << " of " << ranks;
          EXPECT_EQ(link.copies, is_link ? sender.messages : 0) << from << " to " << to << " of " << ranks;
        }
      }
    }
  }
}

/// Modelled milliseconds of one call, on the slowest rank.
double milliseconds(Rank& rank, const std::function<void(cudaStream_t)>& enqueue) {
  const Event start(rank.device()), stop(rank.device());
  rank.barrier();
  CUDA_CHECK(cudaEventRecord(start, rank.stream()));
  enqueue(rank.stream());
  CUDA_CHECK(cudaEventRecord(stop, rank.stream()));
  rank.synchronize(rank.stream());
  float own = 0;
  CUDA_CHECK(cudaEventElapsedTime(&own, start, stop));
  const std::vector<float> all = rank.exchange(own);
  return *std::max_element(all.begin(), all.end());
}

/// The ring and what it is compared with.
struct Times {
  double ring = 0, split_only = 0, one_after_the_other = 0;
};

/// With a shard of 128 rows and so many columns on each rank. The values do not matter.
Times times_on(int ranks, std::int64_t columns) {
  vgpu::reset();
  Times times;
  run_ranks(ranks, [&](Rank& rank) {
    const MatmulShape shape{128 * ranks, columns * ranks, 256};
    const Problem problem(rank, shape, 1);
    Ring ring(rank, shape);
    const Times found = {
        .ring = milliseconds(
            rank, [&](cudaStream_t stream) { ring.run(problem.a(), problem.b(), problem.c(), stream); }),
        .split_only = milliseconds(rank,
                                   [&](cudaStream_t stream) {
                                     for (int shard = 0; shard < ranks; ++shard)
                                       multiply_shard(rank, shape, shard, problem.a(), problem.b(),
                                                      problem.c(), stream);
                                   }),
        .one_after_the_other = milliseconds(rank, [&](cudaStream_t stream) {
          ring.communicate(problem.a(), stream);
          matmul_row_major(rank.cublas(), stream, problem.product(), problem.whole_a(), problem.b(),
                           problem.c());
        })};
    if (rank.id() == 0) times = found;
  });
  return times;
}

// A shard of 128 rows times 512 columns is 8 tiles of 128 x 64, and the modelled GPU has 8 multiprocessors:
// with one of them NCCL's, a product takes a second wave. With 448 columns there are 7 tiles, and nothing is
// lost.
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
