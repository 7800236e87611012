// The extension no_own_slot of chapter 19: right in any order of events, with P - 1 slots on each rank.
#include <gtest/gtest.h>

#include "19_fused_reduce_scatter/fused_reduce_scatter.cuh"
#include "dense_run.hpp"
#include "memory_of.hpp"
#include "on_virtual_gpus.hpp"

namespace overlap::fused_reduce_scatter {
namespace {

using Fused = FusedReduceScatter<__half, SixteenBitWire, tensor_core_gemm::Tile<64, 64, 2>>;
using FusedInF32 = FusedReduceScatter<__half, F32Wire, tensor_core_gemm::Tile<64, 64, 2>>;
using Problem = ScatterProblem<__half>;

// The race detector, too, runs the tests whose names begin with Small.
TEST_F(OnVirtualGpus, SmallCallsAtOnceAreRight) {
  expect_right<Fused, Problem>(3, {150, 72, 3 * 16}, 1, 3);
  expect_right<Fused, Problem>(4, {3, 8, 4 * 8}, 1, 3);  // fewer rows than ranks
}

TEST_F(OnVirtualGpus, CallsAtOnceAreRight) {
  for (const int ranks : {1, 2, 3, 4, 8}) {
    expect_right<Fused, Problem>(ranks, {150, 72, 16 * ranks}, 1, 4);
    expect_right<FusedInF32, Problem>(ranks, {3, 8, 16 * ranks}, 1, 4);  // fewer rows than ranks
  }
}

TEST_F(OnVirtualGpus, CallsAtOnceAreRightInTenSchedules) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    for (const int ranks : {1, 2, 3, 4, 8}) {
      SCOPED_TRACE("schedule " + std::to_string(seed) + ", " + std::to_string(ranks) + " ranks");
      const MatmulShape shape{seed % 3 == 0 ? 3 : 150, seed % 4 == 0 ? 72 : 8, 16 * ranks};
      vgpu::reset();
      vgpu::use_schedule(seed);
      if (seed % 2 == 0) {
        expect_right<Fused, Problem>(ranks, shape, seed, 4);
      } else {
        expect_right<FusedInF32, Problem>(ranks, shape, seed, 4);
      }
    }
  }
}

TEST_F(OnVirtualGpus, HoldsASlotForEachOtherRank) {
  for (const int ranks : {1, 2, 3, 8}) {
    const MatmulShape shape{384 * ranks, 512, 16 * ranks};
    const std::int64_t slots = 2 * (ranks - 1) * 384 * 512 * 2, flags = 4 * ranks * (384 / 64) * (512 / 64);
    for (const std::int64_t held : memory_of<Fused>(ranks, shape)) {
      EXPECT_GE(held, slots);
      EXPECT_LT(held, slots + (1 << 16)) << "bytes on a GPU; flags take the least of it";
    }
    const std::int64_t said = Fused::cost(shape, ranks, 0).memory;
    EXPECT_TRUE(slots <= said && said <= slots + flags) << said;
  }
}

}  // namespace
}  // namespace overlap::fused_reduce_scatter
