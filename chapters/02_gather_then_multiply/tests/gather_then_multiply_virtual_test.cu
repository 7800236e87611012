// Chapter 02 on virtual GPUs: right in any order of events, moving just the bytes of its cost card, and the
// product after the communication.
#include <gtest/gtest.h>

#include "02_gather_then_multiply/gather_then_multiply.cuh"
#include "dense_virtual.hpp"

namespace overlap::gather_then_multiply {
namespace {

using Algorithm = GatherThenMultiply<__half>;
using Problem = GatherProblem<__half>;

TEST_F(OnVirtualGpus, IsRightInTwentySchedules) {
  in_random_schedules(20, [](std::uint64_t seed) {
    for (const int ranks : {2, 3, 8}) expect_right<Algorithm, Problem>(ranks, {19, 37, 11}, seed, 4);
  });
}

TEST_F(OnVirtualGpus, SameSeedSameSchedule) {
  expect_same_seed_same_schedule([] { expect_right<Algorithm, Problem>(4, {33, 40, 8}, 1, 2); });
}

TEST_F(OnVirtualGpus, MovesTheBytesOfItsCostCard) {
  for (const MatmulShape shape : {MatmulShape{16, 32, 8}, MatmulShape{19, 37, 11}, MatmulShape{5, 3, 7}}) {
    for (const int ranks : {1, 2, 3, 8}) {
      expect_one_neighbour(traffic_of_a_call<Algorithm, Problem>(ranks, shape), ranks, 1,
                           [&](int rank) { return Algorithm::cost(shape, ranks, rank); });
    }
  }
}

/// Modelled times of one call, the slowest rank's.
struct Times {
  double whole, gather, gemm_only;
};
Times times_of(int ranks, MatmulShape shape) {
  vgpu::reset();
  Times times{};
  run_ranks(ranks, [&](Rank& rank) {
    Problem problem(rank, shape, 1);
    problem.fill_exact();
    Algorithm algorithm(rank, shape);
    const auto ms = modelled_ms(rank, {call_of(algorithm, problem),
                                       [&](cudaStream_t stream) { algorithm.gather(problem.a(), stream); },
                                       [&](cudaStream_t stream) { problem.gemm_only(stream); }});
    if (rank.id() == 0) times = {ms[0], ms[1], ms[2]};
  });
  return times;
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
    EXPECT_NE(error.detail().find("2048 MiB are requested"), std::string::npos) << error.detail();
    EXPECT_NE(error.detail().find("of 1024 MiB are free"), std::string::npos) << error.detail();
  }
}

}  // namespace
}  // namespace overlap::gather_then_multiply
