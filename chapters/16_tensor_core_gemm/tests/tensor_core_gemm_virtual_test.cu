// Chapter 16 on virtual GPUs: right results in any order of events, the order of the rungs' modelled times,
// and the cost card's shared memory and bytes.
#include <gtest/gtest.h>

#include "16_tensor_core_gemm/experiments/clusters.cuh"
#include "16_tensor_core_gemm/fitting.cuh"
#include "16_tensor_core_gemm/tensor_core_gemm.cuh"
#include "dense_virtual.hpp"

namespace overlap::tensor_core_gemm {
namespace {

template <typename Rung>
using Algorithm = TensorCoreGemm<__half, Rung>;
using Problem = GatherProblem<__half>;

template <typename Rung>
class RungsOnVirtualGpus : public OnVirtualGpus {};

using AllRungs = testing::Types<WithoutTma, OneStage, RingOfStages, Specialised<>, LargerTile, Persistent<>,
                                StoredByTma<>, ClusterMulticast<>>;
TYPED_TEST_SUITE(RungsOnVirtualGpus, AllRungs);

TYPED_TEST(RungsOnVirtualGpus, AreRightInTwentySchedules) {
  in_random_schedules(20, [](std::uint64_t seed) {
    expect_right<Algorithm<TypeParam>, Problem>(1, {130, 264, 328}, seed, 2);
  });
}

TEST_F(OnVirtualGpus, ASplitIsRightInTwentySchedules) {
  in_random_schedules(20, [](std::uint64_t seed) {
    expect_right<Algorithm<SplitK>, Problem>(1, {130, 136, 712}, seed, 2);
  });
}

/// Modelled time of one call, ms; on that machine, if one is named.
template <typename Rung>
double time_of(MatmulShape shape, const char* machine = nullptr) {
  vgpu::reset();
  if (machine != nullptr) vgpu::use_machine(machine);
  return modelled_ms<Algorithm<Rung>, Problem>(1, shape);
}

TEST_F(OnVirtualGpus, StagesHideTheLoads) {
  EXPECT_LT(time_of<RingOfStages>({512, 512, 512}), time_of<OneStage>({512, 512, 512}));
  // The default machine's tensor cores are so slow that a second stage hides everything.
  const MatmulShape shape{256, 256, 2048};
  const char* machine = "h100-nvlink";
  const double two = time_of<StoredByTma<Tile<128, 256, 2>>>(shape, machine);
  const double three = time_of<StoredByTma<Tile<128, 256, 3>>>(shape, machine);
  const double four = time_of<StoredByTma<Tile<128, 256, 4>>>(shape, machine);
  EXPECT_LT(1.1 * three, two);
  EXPECT_LT(1.05 * four, two);  // three hide as much as four in the model
  EXPECT_LT(1.3 * four, time_of<OneStage>(shape, machine));
}

TEST_F(OnVirtualGpus, APersistentBlockLoadsTheNextTileWhileItStoresOne) {
  const MatmulShape many_tiles{1024, 1024, 64};
  EXPECT_LT(time_of<Persistent<>>(many_tiles), time_of<LargerTile>(many_tiles));
}

TEST_F(OnVirtualGpus, ATileMoreThanThereAreMultiprocessorsIsAWaveMore) {
  // 8 multiprocessors: 8 tiles of 128 x 256 in one wave, 9 in two.
  const double eight = time_of<StoredByTma<>>({1024, 256, 512}),
               nine = time_of<StoredByTma<>>({1152, 256, 512});
  EXPECT_GT(nine, 1.6 * eight);
  EXPECT_LT(nine, 2.2 * eight);
}

TEST_F(OnVirtualGpus, FourBlocksShareTheKOfATile) {
  // Two tiles for eight multiprocessors: 32 k-blocks of 8 each instead of 32.
  const MatmulShape few_rows{128, 256, 2048};
  EXPECT_LT(3 * time_of<SplitK>(few_rows), time_of<Specialised<>>(few_rows));
}

TEST(SharedMemoryOfABlock, IsThatOfTheCostCard) {
  EXPECT_EQ(WithoutTma::shared_bytes<__half>(), 32'768);
  EXPECT_EQ(OneStage::shared_bytes<__half>(), 32'776);
  EXPECT_EQ(RingOfStages::shared_bytes<__half>(), 131'136);
  EXPECT_EQ(Specialised<>::shared_bytes<__half>(), 133'120);
  EXPECT_EQ(LargerTile::shared_bytes<__half>(), 198'656);
  EXPECT_EQ(StoredByTma<>::shared_bytes<__half>(), 230'400);
  EXPECT_EQ(ClusterMulticast<>::shared_bytes<__half>(), 230'400);
  EXPECT_EQ(SplitK::shared_bytes<__half>(), 229'456);
  EXPECT_EQ(StoredByTma<MiddleTile>::shared_bytes<__half>(), 230'400);
  EXPECT_EQ(StoredByTma<SmallTile>::shared_bytes<__half>(), 214'016);
}

}  // namespace
}  // namespace overlap::tensor_core_gemm
