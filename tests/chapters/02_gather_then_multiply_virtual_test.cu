// Chapter 02 on virtual GPUs: right in any order of events, moving just the bytes of its cost card, and the
// product after the communication.
#include <gtest/gtest.h>

#include "02_gather_then_multiply/gather_then_multiply.cuh"
#include "dense_run.hpp"
#include "on_virtual_gpus.hpp"
#include "overlap/bench/timing.hpp"

namespace overlap::gather_then_multiply {
namespace {

using Algorithm = GatherThenMultiply<__half>;
using Problem = GatherProblem<__half>;

TEST_F(OnVirtualGpus, IsRightInTwentySchedules) {
  for (std::uint64_t seed = 1; seed <= schedules(); ++seed) {
    vgpu::reset();
    vgpu::use_schedule(seed);
    SCOPED_TRACE("schedule " + std::to_string(seed));
    for (const int ranks : {2, 3, 8}) expect_right<Algorithm, Problem>(ranks, {19, 37, 11}, seed, 4);
  }
}

TEST_F(OnVirtualGpus, SameSeedSameSchedule) {
  expect_same_seed_same_schedule([] { expect_right<Algorithm, Problem>(4, {33, 40, 8}, 1, 2); });
}

TEST_F(OnVirtualGpus, MovesTheBytesOfItsCostCard) {
  for (const MatmulShape shape : {MatmulShape{16, 32, 8}, MatmulShape{19, 37, 11}, MatmulShape{5, 3, 7}}) {
    for (const int ranks : {1, 2, 3, 8}) {
      vgpu::reset();
      // A construction makes one call to warm up, run_dense() two.
      expect_right<Algorithm, Problem>(ranks, shape, 1, 2);
      for (int from = 0; from < 8; ++from) {
        for (int to = 0; to < 8; ++to) {
          if (from == to) continue;
          const bool link = from < ranks && to == (from + 1) % ranks;
          const Cost cost = link ? Algorithm::cost(shape, ranks, from) : Cost{};
          const vgpu::Traffic counted = vgpu::traffic(from, to);
          EXPECT_EQ(counted.bytes, 3 * cost.bytes_out) << from << " to " << to << " of " << ranks;
          EXPECT_EQ(counted.copies, 3 * cost.messages) << from << " to " << to << " of " << ranks;
        }
      }
    }
  }
}

/// Modelled times of one call, the slowest rank's.
struct Times {
  double whole, gather, gemm_only;
};
Times times_of(int ranks, MatmulShape shape) {
  vgpu::reset();
  std::vector<VariantTimes> times;
  run_ranks(ranks, [&](Rank& rank) {
    Problem problem(rank, shape, 1);
    problem.fill_exact();
    Algorithm algorithm(rank, shape);
    const auto all = time_variants(
        rank,
        {{"whole",
          [&](cudaStream_t stream) { algorithm.run(problem.a(), problem.b(), problem.c(), stream); }},
         {"gather", [&](cudaStream_t stream) { algorithm.gather(problem.a(), stream); }},
         {"gemm_only", [&](cudaStream_t stream) { problem.gemm_only(stream); }}},
        1, 1);
    if (rank.id() == 0) times = all;
  });
  return {times[0].device_ms.median, times[1].device_ms.median, times[2].device_ms.median};
}

TEST_F(OnVirtualGpus, TheProductWaitsForTheWholeCommunication) {
  for (const int ranks : {2, 4}) {
    const Times times = times_of(ranks, {128 * ranks, 256 * ranks, 256});
    EXPECT_GT(times.whole, 0.95 * (times.gather + times.gemm_only)) << ranks << " ranks";
    EXPECT_GT(times.whole, times.gemm_only) << ranks << " ranks";
  }
}

TEST_F(OnVirtualGpus, UnevenSharesTakeMoreProducts) {
  // 4 slots of 65 rows, 261 rows in all: two blocks more than with 260.
  const Times even = times_of(4, {260, 512, 256}), uneven = times_of(4, {257, 512, 256});
  EXPECT_EQ(Algorithm::cost({260, 512, 256}, 4, 0).products, 1);
  EXPECT_EQ(Algorithm::cost({257, 512, 256}, 4, 0).products, 3);
  EXPECT_GT(uneven.whole, even.whole);
}

TEST_F(OnVirtualGpus, NewerModesAreRefusedByName) {
  for (const NcclMode mode : {NcclMode::kRegistered, NcclMode::kCopyEngine}) {
    const DenseRun run = run_dense<Algorithm, Problem>(2, {8, 8, 8}, 1, 1, mode);
    EXPECT_NE(run.skipped.find(name_of(mode)), std::string::npos) << run.skipped;
  }
}

TEST_F(OnVirtualGpus, SizesThatDoNotFitSayHowMuchThereIs) {
  // 2 GiB of slots on a GPU of 1 GiB.
  try {
    run_ranks(2, [](Rank& rank) { Algorithm algorithm(rank, {32768, 1, 32768}); });
    FAIL() << "2 GiB fit into 1 GiB";
  } catch (const CudaError& error) {
    EXPECT_EQ(error.code(), cudaErrorMemoryAllocation);
    EXPECT_NE(error.detail().find("2048 MiB are asked for"), std::string::npos) << error.detail();
    EXPECT_NE(error.detail().find("of 1024 MiB are free"), std::string::npos) << error.detail();
  }
}

}  // namespace
}  // namespace overlap::gather_then_multiply
