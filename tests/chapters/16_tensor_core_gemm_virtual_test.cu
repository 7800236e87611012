// Chapter 16 on virtual GPUs: right in any order of events, the rungs in the order of their speed, and what
// the page's cost card says of shared memory and bytes.
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

template <typename Rung>
class RungsOnVirtualGpus : public OnVirtualGpus {};

using AllRungs = testing::Types<OneStage, RingOfStages, Specialised<>, Persistent<>, StoredByTma<>>;
TYPED_TEST_SUITE(RungsOnVirtualGpus, AllRungs);

TYPED_TEST(RungsOnVirtualGpus, AreRightInTwentySchedules) {
  for (std::uint64_t seed = 1; seed <= schedules(); ++seed) {
    vgpu::reset();
    vgpu::use_schedule(seed);
    SCOPED_TRACE("schedule " + std::to_string(seed));
    expect_right<Algorithm<TypeParam>, Problem>(1, {130, 264, 328}, seed, 2);
  }
}

TYPED_TEST(RungsOnVirtualGpus, SameSeedSameSchedule) {
  expect_same_seed_same_schedule([] {
    expect_right<Algorithm<TypeParam>, Problem>(1, {130, 264, 200}, 1, 2);
  });
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

TEST_F(OnVirtualGpus, StagesHideTheLoads) {
  const MatmulShape shape{512, 512, 1024};
  EXPECT_LT(1.2 * time_of<RingOfStages>(shape), time_of<OneStage>(shape));
  const double one = time_of<StoredByTma<Tile<128, 256, 1>>>(shape);
  const double two = time_of<StoredByTma<Tile<128, 256, 2>>>(shape);
  const double four = time_of<StoredByTma<Tile<128, 256, 4>>>(shape);
  EXPECT_LT(1.2 * two, one);
  EXPECT_LE(four, two);
}

TEST_F(OnVirtualGpus, APersistentBlockLoadsTheNextTileWhileItStoresOne) {
  const MatmulShape many_tiles{1024, 2048, 128};
  EXPECT_LT(time_of<Persistent<>>(many_tiles), time_of<Specialised<>>(many_tiles));
}

TEST_F(OnVirtualGpus, ATileMoreThanThereAreMultiprocessorsIsAWaveMore) {
  // 8 multiprocessors: 8 tiles of 128 x 256 in one wave, 9 in two.
  const double eight = time_of<StoredByTma<>>({1024, 256, 512}),
               nine = time_of<StoredByTma<>>({1152, 256, 512});
  EXPECT_GT(nine, 1.6 * eight);
  EXPECT_LT(nine, 2.2 * eight);
}

TEST(SharedMemoryOfABlock, IsThatOfTheCostCard) {
  EXPECT_EQ(OneStage::shared_bytes<__half>(), 32'776);
  EXPECT_EQ(RingOfStages::shared_bytes<__half>(), 131'136);
  EXPECT_EQ(Specialised<>::shared_bytes<__half>(), 198'656);
  EXPECT_EQ(StoredByTma<>::shared_bytes<__half>(), 230'400);
}

}  // namespace
}  // namespace overlap::tensor_core_gemm
