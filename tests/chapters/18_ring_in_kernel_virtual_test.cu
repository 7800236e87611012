// Chapter 18 on virtual GPUs: right in any order of events, moving just the bytes of its cost cards, and as
// fast, in the model, as the page says.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "16_tensor_core_gemm/fitting.cuh"
#include "18_ring_in_kernel/ring_ahead.cuh"
#include "18_ring_in_kernel/ring_in_kernel.cuh"
#include "dense_run.hpp"
#include "on_virtual_gpus.hpp"
#include "overlap/bench/timing.hpp"
#include "overlap/gpu/error.hpp"
#include "ownership.hpp"

namespace overlap::ring_in_kernel::virtual_gpus {
namespace {

using Form = RingInKernel<__half>;
using Ahead = RingAhead<__half>;
using AheadForFewRows = RingAhead<__half, SmallTile>;
using Problem = GatherProblem<__half>;

template <typename Algorithm>
class Kernels : public OnVirtualGpus {};
using All = testing::Types<Form, Ahead, AheadForFewRows>;
TYPED_TEST_SUITE(Kernels, All);

TYPED_TEST(Kernels, BackToBackCallsAreRightInTwentySchedules) {
  for (std::uint64_t seed = 1; seed <= schedules(); ++seed) {
    const int ranks = std::array{2, 3, 4, 8}[seed % 4];
    SCOPED_TRACE("schedule " + std::to_string(seed) + ", " + std::to_string(ranks) + " ranks");
    vgpu::reset();
    vgpu::use_schedule(seed);
    expect_right<TypeParam, Problem>(ranks, {19, ranks * 16, 72}, seed, 3);
    vgpu::reset();
    vgpu::use_schedule(seed);
    expect_right<TypeParam, Problem>(2, {258, 2 * 264, 72}, seed, 2);  // four tiles in each step
  }
}

// Nobody waits for a shard without rows to be computed, but everybody waits for its turn all the same:
// without that a rank might get two calls ahead, and overwrite a slot that another one still reads.
TYPED_TEST(Kernels, ShardsWithoutRowsCloseTheRing) {
  for (std::uint64_t seed = 1; seed <= schedules(); ++seed) {
    SCOPED_TRACE("schedule " + std::to_string(seed));
    vgpu::reset();
    vgpu::use_schedule(seed);
    const std::int64_t rows = seed % 2 == 0 ? 1 : 2;
    expect_right<TypeParam, Problem>(3, {rows, 24, 136}, seed, 6);
  }
}

TYPED_TEST(Kernels, TheCallerOwnsAAndBAndCBehindTheCallInAnySchedule) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    SCOPED_TRACE("schedule " + std::to_string(seed));
    vgpu::reset();
    vgpu::use_schedule(seed);
    run_ranks(3, [](Rank& rank) { expect_caller_owns_matrices_on<TypeParam, Problem>(rank, {19, 48, 40}); });
  }
}

TYPED_TEST(Kernels, SameSeedSameSchedule) {
  expect_same_seed_same_schedule([] { expect_right<TypeParam, Problem>(3, {33, 48, 72}, 1, 2); });
}

TYPED_TEST(Kernels, MoveTheBytesOfTheirCostCards) {
  for (const int ranks : {1, 2, 3, 8}) {
    for (const std::int64_t m : {3, 64, 391}) {
      SCOPED_TRACE(std::to_string(m) + " rows on " + std::to_string(ranks) + " ranks");
      vgpu::reset();
      run_ranks(ranks, [&](Rank& rank) {
        const MatmulShape shape{m, ranks * 16, 136};
        Problem problem(rank, shape, 1);
        TypeParam algorithm(rank, shape);
        problem.fill_exact();
        rank.barrier();
        std::vector<vgpu::Traffic> out, in;  // so far
        for (int other = 0; other < ranks; ++other) {
          out.push_back(vgpu::traffic(rank.id(), other));
          in.push_back(vgpu::traffic(other, rank.id()));
        }
        rank.barrier();
        algorithm.run(problem.a(), problem.b(), problem.c(), rank.stream());
        rank.synchronize(rank.stream());
        rank.barrier();
        const Cost cost = TypeParam::cost(shape, ranks, rank.id());
        for (int other = 0; other < ranks; ++other) {
          if (other == rank.id()) continue;
          const auto i = static_cast<std::size_t>(other);
          const vgpu::Traffic out_now = vgpu::traffic(rank.id(), other),
                              in_now = vgpu::traffic(other, rank.id());
          const bool sends = other == rank.previous(), gets = other == rank.next();
          EXPECT_EQ(out_now.bytes - out[i].bytes, sends ? cost.bytes_out : 0) << rank.id() << " to " << other;
          EXPECT_EQ(out_now.copies - out[i].copies, sends ? cost.messages : 0)
              << rank.id() << " to " << other;
          EXPECT_EQ(in_now.bytes - in[i].bytes, gets ? cost.bytes_in : 0) << other << " to " << rank.id();
        }
      });
    }
  }
}

/// Modelled time of one call on four ranks, on the slowest.
template <typename Algorithm>
double modelled_ms(MatmulShape shape) {
  vgpu::reset();
  double ms = 0;
  run_ranks(4, [&](Rank& rank) {
    Problem problem(rank, shape, 1);
    problem.fill_normal();
    Algorithm algorithm(rank, shape);
    const auto call = [&](cudaStream_t stream) {
      algorithm.run(problem.a(), problem.b(), problem.c(), stream);
    };
    const double median = time_variants(rank, {{"call", call}}, 1, 1).front().device_ms.median;
    if (rank.id() == 0) ms = median;
  });
  return ms;
}

TEST_F(OnVirtualGpus, TransfersAheadOfTheProductAreFasterThanThoseWithin) {
  const MatmulShape shape{512, 2048, 64};
  EXPECT_LT(modelled_ms<Ahead>(shape), modelled_ms<Form>(shape));
}

TEST_F(OnVirtualGpus, FewRowsTakeLessTimeWithTheTileThatFits) {
  // A shard of 32 rows and 1,024 columns: 8 small tiles, one for each multiprocessor, or 4 large ones.
  const MatmulShape shape{4 * 32, 4 * 1024, 64};
  EXPECT_LT(modelled_ms<Fitting<Ahead>>(shape), 0.8 * modelled_ms<Ahead>(shape));
}

// ---- What cannot be --------------------------------------------------------------------------------------
TYPED_TEST(Kernels, MoreRanksThanTheKernelsParametersHaveRoomForAreRefused) {
  vgpu::use_gpus(kMostRanks + 1);
  try {
    run_ranks(kMostRanks + 1, [](Rank& rank) { TypeParam algorithm(rank, {17, 8 * 17, 8}); });
    FAIL() << "not refused";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("have room for 16 ranks, and there are 17"), std::string::npos)
        << error.what();
  }
}

// ---- Blocks that find no room ----------------------------------------------------------------------------
TEST_F(OnVirtualGpus, RanksThatShareAGpuShareItsMultiprocessors) {
  // 9 ranks share GPU 0, whose 8 multiprocessors have no block for each.
  try {
    run_ranks(9, [](Rank& rank) { Form algorithm(rank, {9, 72, 8}); });
    FAIL() << "not refused";
  } catch (const Skip& skip) {
    EXPECT_NE(std::string(skip.what()).find("waits in 1 blocks at the same time, and GPU 0 has room for 0"),
              std::string::npos)
        << skip.what();
  }
}

TEST(SharedMemoryOfABlock, IsThatOfTheCostCard) {
  EXPECT_EQ((sizeof(SharedMemory<__half, tensor_core_gemm::Tile<128, 256, 4>, TmaStore>)), 230'400u);
}

}  // namespace
}  // namespace overlap::ring_in_kernel::virtual_gpus
