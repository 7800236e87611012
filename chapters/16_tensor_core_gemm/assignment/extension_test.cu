// The extension ping_pong of chapter 16: right in any order of events, and faster, in the model, than blocks
// whose only consumer warpgroup does not multiply while it stores.
#include <gtest/gtest.h>

#include "16_tensor_core_gemm/tensor_core_gemm.cuh"
#include "dense_run.hpp"
#include "on_virtual_gpus.hpp"
#include "overlap/bench/timing.hpp"

namespace overlap::tensor_core_gemm {
namespace {

template <typename Rung>
using Algorithm = TensorCoreGemm<__half, Rung>;
using Problem = GatherProblem<__half>;

using Small = PingPong<Tile<64, 64, 3>>;

// The race detector, too, runs the tests whose names begin with Small.
TEST_F(OnVirtualGpus, SmallProductsAreRight) {
  expect_right<Algorithm<Small>, Problem>(1, {300, 328, 200}, 1, 2);
  expect_right<Algorithm<Small>, Problem>(1, {300, 200, 64}, 1, 2);
}

TEST_F(OnVirtualGpus, IsRightAroundTilesAndStages) {
  // On 8 multiprocessors: less than one tile; one tile, so that one warpgroup has none; odd and even numbers
  // of tiles per block; fewer k-blocks than stages, as many, and many times as many.
  const std::vector<MatmulShape> shapes = {{1, 8, 8},      {64, 64, 64},    {65, 72, 72},    {130, 520, 192},
                                           {513, 8, 40},   {300, 328, 200}, {300, 328, 192}, {300, 328, 64},
                                           {200, 520, 72}, {300, 64, 640}};
  expect_all_right<Algorithm<Small>, Problem>(1, shapes);
  expect_all_right<TensorCoreGemm<__nv_bfloat16, Small>, GatherProblem<__nv_bfloat16>>(1, shapes);
  expect_right<Algorithm<PingPong<>>, Problem>(1, {1030, 520, 72});
  expect_right<Algorithm<PingPong<Tile<64, 128, 2>>>, Problem>(1, {520, 264, 136});
}

TEST_F(OnVirtualGpus, IsRightInTenSchedules) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE("schedule " + std::to_string(seed));
    vgpu::reset();
    vgpu::use_schedule(seed);
    expect_right<Algorithm<Small>, Problem>(1, {300, 328, 64 * static_cast<int>(seed)}, seed, 2);
  }
}

/// Modelled time of one call, ms.
template <typename Rung>
double time_of(MatmulShape shape) {
  vgpu::reset();
  double ms = 0;
  run_ranks(1, [&](Rank& rank) {
    Problem problem(rank, shape, 1);
    problem.fill_exact();
    Algorithm<Rung> algorithm(rank, shape);
    const auto call = [&](cudaStream_t stream) {
      algorithm.run(problem.a(), problem.b(), problem.c(), stream);
    };
    ms = time_variants(rank, {{"rung", call}}, 1, 1).front().device_ms.median;
  });
  return ms;
}

TEST_F(OnVirtualGpus, OneMultipliesWhileTheOtherStores) {
  const MatmulShape many_tiles{1024, 1024, 64};
  const double turns = time_of<PingPong<>>(many_tiles),
               alone = time_of<StoredByTma<Tile<64, 256, 4>>>(many_tiles);
  EXPECT_LT(turns, alone);
}

}  // namespace
}  // namespace overlap::tensor_core_gemm
