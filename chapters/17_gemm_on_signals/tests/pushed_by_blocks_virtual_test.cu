// Chapter 17 with few rows on virtual GPUs: right in any order of events, bytes equal to the cost card,
// faster than copy engines; sizes without room are left out.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "16_tensor_core_gemm/fitting.cuh"
#include "17_gemm_on_signals/experiments/pushed_by_blocks.cuh"
#include "17_gemm_on_signals/gemm_on_signals.cuh"
#include "abort_flag.hpp"
#include "dense_virtual.hpp"
#include "ownership.hpp"

namespace overlap::gemm_on_signals::few_rows::virtual_gpus {
namespace {

using Gemm = PushedByBlocks<__half>;
using Problem = GatherProblem<__half>;

TEST_F(OnVirtualGpus, CallsPushedByBlocksAreRightInTwentySchedules) {
  in_random_schedules(20, [](std::uint64_t seed) {
    const int ranks = std::array{2, 3, 4, 8}[seed % 4];
    expect_right<Gemm, Problem>(ranks, {seed % 2 == 0 ? 150 : 20 * ranks + 1, 8 * ranks, 520}, seed, 4);
  });
}

TEST_F(OnVirtualGpus, TheCallerOwnsMatricesPushedByBlocksInManySchedules) {
  in_random_schedules(10, [](std::uint64_t) {
    run_ranks(3, [](Rank& rank) { expect_caller_owns_matrices_on<Gemm, Problem>(rank, {100, 24, 520}); });
  });
}

TEST_F(OnVirtualGpus, TheAbortFlagAloneEndsWaitsForBlocksThatPush) {
  expect_the_abort_flag_ends_waits<Gemm, Problem>(3, {130, 48, 72});
}

TEST_F(OnVirtualGpus, BlocksPushTheBytesOfTheCostCard) {
  for (const std::int64_t rows : {1, 3, 128, 150}) {
    for (const int ranks : {1, 2, 3, 8}) {
      SCOPED_TRACE(std::to_string(rows) + " rows on " + std::to_string(ranks) + " ranks");
      const MatmulShape shape{rows, 8 * ranks, 328};
      const LinkTraffic moved = traffic_of_a_call<Gemm, Problem>(ranks, shape);
      for (int rank = 0; rank < ranks; ++rank) expect_bytes_of(Gemm::cost(shape, ranks, rank), moved, rank);
    }
  }
}

// Two rows and two columns of tiles, and four multiprocessors that push.
TEST_F(OnVirtualGpus, FewRowsTakeLessTimePushedByBlocks) {
  constexpr MatmulShape kFewRows{2 * 64, 2 * 256, 1024};
  const double by_blocks = modelled_ms<Gemm, Problem>(2, kFewRows);
  vgpu::reset();
  using ByCopyEngines = GemmOnSignals<__half, Major::kMN, tensor_core_gemm::SmallTile>;
  EXPECT_LT(by_blocks, 0.9 * (modelled_ms<ByCopyEngines, Problem>(2, kFewRows)));
}

// Of 8 multiprocessors, one pushes.
TEST_F(OnVirtualGpus, EightTilesLeaveNoMultiprocessorThatPushes) {
  expect_right<Gemm, Problem>(2, {70, 6 * 128, 72});
  expect_right<Gemm, Problem>(1, {64, 7 * 128, 72});
  const std::string why = "each of 8 tiles, and a block that pushes, needs a multiprocessor of 8";
  expect_skipped<Gemm, Problem>(2, {70, 8 * 128, 72}, why);
  expect_skipped<Gemm, Problem>(1, {64, 8 * 128, 72}, why);
}

TEST_F(OnVirtualGpus, RanksThatShareAGpuMayPushByBlocks) {
  vgpu::use_gpus(1);
  expect_right<Gemm, Problem>(3, {60, 24 * 8, 520}, 1, 3);
}

}  // namespace
}  // namespace overlap::gemm_on_signals::few_rows::virtual_gpus
