// Chapter 19 on virtual GPUs: right in any order of events, moving just the bytes of its cost card, and where
// there is no room for its blocks, refused.
#include <gtest/gtest.h>

#include "19_fused_reduce_scatter/fused_reduce_scatter.cuh"
#include "dense_run.hpp"
#include "on_virtual_gpus.hpp"

namespace overlap::fused_reduce_scatter {
namespace {

using Problem = ScatterProblem<__half>;
using Small = tensor_core_gemm::Tile<64, 64, 2>;
template <typename Wire = SixteenBitWire>
using WithSmallTiles = FusedReduceScatter<__half, Wire, Small>;

TEST_F(OnVirtualGpus, AreRightInTwentySchedules) {
  for (const int ranks : {1, 2, 3, 4, 8}) {
    for (std::uint64_t seed = 1; seed <= schedules(); ++seed) {
      SCOPED_TRACE("schedule " + std::to_string(seed) + " of " + std::to_string(ranks) + " ranks");
      const MatmulShape shape = {seed % 3 == 0 ? 3 : 90, 72, 16 * ranks};
      vgpu::reset();
      vgpu::use_schedule(seed);
      expect_right<WithSmallTiles<>, Problem>(ranks, shape, seed, 3);
      vgpu::reset();
      vgpu::use_schedule(seed);
      expect_right<WithSmallTiles<F32Wire>, Problem>(ranks, shape, seed, 3);
    }
  }
}

TEST_F(OnVirtualGpus, SameSeedSameSchedule) {
  expect_same_seed_same_schedule([] { expect_right<WithSmallTiles<>, Problem>(3, {90, 72, 48}); });
}

TEST_F(OnVirtualGpus, RanksMayShareAGpuUntilThereIsNoRoomForABlockOfEach) {
  vgpu::use_gpus(1);
  expect_right<WithSmallTiles<>, Problem>(5, {150, 136, 40}, 1, 3);
  vgpu::reset();
  vgpu::use_gpus(1);
  const DenseRun refused = run_dense<WithSmallTiles<>, Problem>(16, {150, 136, 128}, 1);
  EXPECT_NE(refused.skipped.find("waits in 1 blocks at the same time, and GPU 0 has room for 0"),
            std::string::npos)
      << refused.skipped;
}

}  // namespace
}  // namespace overlap::fused_reduce_scatter
