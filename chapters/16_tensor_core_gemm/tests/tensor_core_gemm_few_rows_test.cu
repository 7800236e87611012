// Chapter 16 on any GPU of compute capability 9.0, few rows: k split over four blocks, and the choice of
// tile.
#include <gtest/gtest.h>

#include <concepts>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "16_tensor_core_gemm/fitting.cuh"
#include "16_tensor_core_gemm/tensor_core_gemm.cuh"
#include "dense_run.hpp"

namespace overlap::tensor_core_gemm {
namespace {

// ---- k split over the blocks of a cluster ----------------------------------------------------------------
template <SixteenBit T>
using Split = TensorCoreGemm<T, SplitK>;

/// Partial and whole tiles; fewer k-blocks than blocks, as many, one more, and many.
std::vector<MatmulShape> shapes_to_split() {
  return {{129, 136, 8},      {70, 264, 2 * 64},       {64, 128, 3 * 64},
          {1, 8, 4 * 64},     {128, 128, 4 * 64 + 8},  {130, 264, 5 * 64},
          {64, 136, 23 * 64}, {257, 72, 21 * 64 + 16}, {33, 520, 40 * 64}};
}

TEST(SplitOfK, IsRight) {
  expect_all_right<Split<__half>, GatherProblem<__half>>(1, shapes_to_split());
  expect_all_right<Split<__nv_bfloat16>, GatherProblem<__nv_bfloat16>>(1, shapes_to_split());
}

TEST(SplitOfK, IsRightIfCallsFollowEachOtherAtOnce) {
  expect_all_right<Split<__half>, GatherProblem<__half>>(1, {{130, 264, 1400}}, 3, calls_at_once(8));
}

TEST(SplitOfK, GivesEachTileToOneBlockOfEachPart) {
  for (const Tiling tiling : {Tiling{1, 1, 8}, {2, 7, 8}, {3, 5, 8}, {4, 1, 8}}) {
    const SplitOrder order{tiling};
    std::map<std::pair<int, int>, std::set<int>> parts;  // by the tile's place
    for (int index = 0; index < order.tiles(); ++index) {
      const TilePlace tile = order(index);
      EXPECT_LT(tile.m, tiling.along_m);
      if (tile.n < tiling.along_n) parts[{tile.m, tile.n}].insert(index % kCluster / kNeighbours);
    }
    EXPECT_EQ(std::ssize(parts), tiling.tiles());
    for (const auto& [tile, its_parts] : parts) EXPECT_EQ(its_parts, (std::set{0, 1, 2, 3}));
  }
}

TEST(SplitOfK, GivesEachKBlockToOneBlock) {
  for (const int along_k : {1, 3, 4, 5, 7, 128}) {
    int next = 0;
    for (int part = 0; part < kParts; ++part) {
      const KBlocks own = share_of_k(along_k, part);
      EXPECT_EQ(own.first, next);
      EXPECT_GE(own.count, along_k / kParts);
      EXPECT_LE(own.count, along_k / kParts + 1);
      next += own.count;
    }
    EXPECT_EQ(next, along_k);
  }
}

// ---- The choice ------------------------------------------------------------------------------------------
TEST(Fitting, IsRightWithAndWithoutASplit) {
  // On the virtual GPUs' eight multiprocessors: four blocks a tile, then one, with small and large tiles.
  const std::vector<MatmulShape> shapes = {
      {128, 256, 1288}, {130, 256, 1024}, {64, 520, 200}, {300, 400, 96}, {520, 512, 72}};
  expect_all_right<FittingGemm<__half>, GatherProblem<__half>>(1, shapes);
  expect_all_right<FittingGemm<__nv_bfloat16>, GatherProblem<__nv_bfloat16>>(1, shapes);
}

/// Rows and columns of the tile that with_fitting_tile() chooses.
std::pair<int, int> fitting(MatmulShape shape, int multiprocessors = 132) {
  return with_fitting_tile(shape, multiprocessors, []<typename Tile>(Tile) {
    return std::pair{Tile::kM, Tile::kN};
  });
}

TEST(Tiles, FitTheShape) {
  const std::pair large{128, 256}, middle{128, 128}, small{64, 128};
  EXPECT_EQ(clocks_of_stage<LargeTile>(), 1024);
  EXPECT_EQ(clocks_of_stage<MiddleTile>(), 512);
  EXPECT_EQ(clocks_of_stage<SmallTile>(), 384);
  EXPECT_EQ((clocks_of_stage<Tile<64, 256, 5>>()), 640);
  EXPECT_EQ(fitting({8192, 8192, 8192}), large);
  EXPECT_EQ(fitting({512, 8192, 8192}), large);  // 128 tiles: nearly a wave
  EXPECT_EQ(fitting({576, 8192, 8192}),
            middle);  // 160 large ones would be two waves, 320 middle ones are three
  EXPECT_EQ(fitting({256, 8192, 8192}), middle);  // 128 instead of 64
  EXPECT_EQ(fitting({512, 3584, 8192}), middle);  // 112 instead of 56; small ones would be two waves
  EXPECT_EQ(fitting({256, 3584, 8192}), small);   // 112 instead of 56 or 28
  EXPECT_EQ(fitting({64, 8192, 8192}), small);    // half of a larger one would be outside C
  EXPECT_EQ(fitting({1, 8, 8}), small);
  EXPECT_EQ(fitting({1, 8, 8}, 1), small);
}

TEST(Tiles, FitTheProductOfAShard) {
  const auto of_shard = [](MatmulShape whole, int ranks) {
    return fitting(product_of_a_shard(whole, ranks));
  };
  const std::pair large{128, 256}, middle{128, 128}, small{64, 128};
  for (const int ranks : {2, 4, 8}) {
    EXPECT_EQ(of_shard({256, 3584 * ranks, 8192}, ranks), small);
    EXPECT_EQ(of_shard({512, 3584 * ranks, 8192}, ranks), small);
    EXPECT_EQ(of_shard({1024 * ranks, 4096 * ranks, 4096}, ranks), large);
    EXPECT_EQ(of_shard({8192, 3584 * ranks, 8192}, ranks), large);
  }
  EXPECT_EQ(of_shard({1024, 2 * 3584, 8192}, 2), middle);
  EXPECT_EQ(product_of_a_shard({7, 24, 5}, 3), (MatmulShape{3, 8, 5}));  // the largest shard
}

TEST(Fitting, SplitsKWhereAllClustersAreOneWave) {
  const auto splits = [](MatmulShape shape, int clusters = 16) {
    return with_fitting_rung(shape, 132, clusters,
                             []<typename Rung>(Rung) { return std::same_as<Rung, SplitK>; });
  };
  EXPECT_TRUE(splits({256, 1792, 8192}, 14));  // 28 tiles
  EXPECT_FALSE(splits({256, 1792, 8192}, 13));
  EXPECT_TRUE(splits({64, 4096, 8192}));   // 32
  EXPECT_FALSE(splits({64, 4097, 8192}));  // 33 are 17 clusters
  EXPECT_TRUE(splits({64, 4097, 8192}, 17));
  EXPECT_FALSE(splits({1, 8, 8192}, 0));  // no GPC has eight multiprocessors left
  EXPECT_FALSE(splits({256, 3584, 8192}));
  EXPECT_TRUE(splits({256, 1792, 19 * 64 + 8}));  // 20 k-blocks
  EXPECT_FALSE(splits({256, 1792, 19 * 64}));     // a quarter would not fill five stages
}

}  // namespace
}  // namespace overlap::tensor_core_gemm
