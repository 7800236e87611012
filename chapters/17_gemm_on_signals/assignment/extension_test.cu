// The extension one_gathered of chapter 17: right in any order of events, with one gathered A on each rank.
#include <gtest/gtest.h>

#include "17_gemm_on_signals/gemm_on_signals.cuh"
#include "dense_run.hpp"
#include "memory_of.hpp"
#include "on_virtual_gpus.hpp"

namespace overlap::gemm_on_signals {
namespace {

using Gemm = GemmOnSignals<__half, Major::kMN, tensor_core_gemm::Tile<64, 64, 2>>;
using Problem = GatherProblem<__half>;

// The race detector, too, runs tests that begin with Small.
TEST_F(OnVirtualGpus, SmallCallsAtOnceAreRight) {
  expect_right<Gemm, Problem>(3, {150, 24, 72}, 1, 3);
  expect_right<Gemm, Problem>(4, {3, 32, 8}, 1, 3);  // fewer rows than ranks
}

TEST_F(OnVirtualGpus, CallsAtOnceAreRight) {
  for (const int ranks : {1, 2, 3, 4, 8}) {
    expect_right<Gemm, Problem>(ranks, {150, 8 * ranks, 72}, 1, 4, 2);
    expect_right<Gemm, Problem>(ranks, {3, 8 * ranks, 8}, 1, 4);  // fewer rows than ranks
  }
}

TEST_F(OnVirtualGpus, CallsAtOnceAreRightInTenSchedules) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    for (const int ranks : {1, 2, 3, 4, 8}) {
      SCOPED_TRACE("schedule " + std::to_string(seed) + ", " + std::to_string(ranks) + " ranks");
      vgpu::reset();
      vgpu::use_schedule(seed);
      const std::int64_t rows = seed % 3 == 0 ? 3 : 150;  // fewer than ranks, too
      expect_right<Gemm, Problem>(ranks, {rows, 8 * ranks, 72}, seed, 4, static_cast<int>(seed % 3) + 1);
    }
  }
}

TEST_F(OnVirtualGpus, HoldsOneGatheredA) {
  for (const int ranks : {1, 2, 3, 8}) {
    const MatmulShape shape{2048, 8 * ranks, 512};
    const std::int64_t gathered = ranks == 1 ? 0 : 2048 * 512 * 2;
    for (const std::int64_t held : memory_of<Gemm>(ranks, shape)) {
      EXPECT_GE(held, gathered);
      EXPECT_LT(held, gathered + (1 << 16)) << "bytes on a GPU; signals take the least of it";
    }
    EXPECT_EQ(Gemm::cost(shape, ranks, 0).memory, gathered);
  }
}

}  // namespace
}  // namespace overlap::gemm_on_signals
