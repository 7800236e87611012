// Chapter 16 on any GPU of compute capability 9.0: every rung is right on every element, in both types, for
// sizes around those of tiles and stages and for random sizes, and writes nothing outside C.
#include "16_tensor_core_gemm/tensor_core_gemm.cuh"

#include <gtest/gtest.h>

#include "16_tensor_core_gemm/experiments/clusters.cuh"
#include "16_tensor_core_gemm/fitting.cuh"

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "dense_run.hpp"
#include "overlap/data/data.hpp"
#include "overlap/data/verify.hpp"
#include "overlap/gpu/host_copy.hpp"

namespace overlap::tensor_core_gemm {
namespace {

/// k and n are multiples of 8, as TMA needs. Smaller than a tile and a stage, around one of each, more
/// k-blocks than stages, several partial tiles.
std::vector<MatmulShape> shapes_around_tiles() {
  return {{1, 8, 8},      {64, 64, 64},   {128, 128, 64},  {128, 256, 128}, {129, 264, 72},
          {127, 248, 56}, {63, 8, 520},   {200, 16, 384},  {8, 520, 24},    {257, 136, 200},
          {300, 400, 96}, {65, 320, 640}, {384, 512, 128}, {1, 1032, 16}};
}

/// An element type and a rung, for GoogleTest's typed suites.
template <SixteenBit Element, typename RungOf>
struct Case {
  using T = Element;
  using Rung = RungOf;
  using Algorithm = TensorCoreGemm<T, Rung>;
};

template <typename C>
class Rungs : public testing::Test {};

using Cases =
    testing::Types<Case<__half, OneStage>, Case<__half, RingOfStages>, Case<__half, Specialised<>>,
                   Case<__half, Persistent<>>, Case<__half, StoredByTma<>>, Case<__nv_bfloat16, OneStage>,
                   Case<__nv_bfloat16, RingOfStages>, Case<__nv_bfloat16, Specialised<>>,
                   Case<__nv_bfloat16, Persistent<>>, Case<__nv_bfloat16, StoredByTma<>>,
                   Case<__half, ClusterMulticast<>>, Case<__nv_bfloat16, ClusterMulticast<>>,
                   Case<__half, WithoutTma>, Case<__nv_bfloat16, WithoutTma>, Case<__half, LargerTile>,
                   Case<__nv_bfloat16, LargerTile>>;
TYPED_TEST_SUITE(Rungs, Cases);

TYPED_TEST(Rungs, AreRightAroundTilesAndStages) {
  using Algorithm = typename TypeParam::Algorithm;
  expect_all_right<Algorithm, GatherProblem<typename TypeParam::T>>(1, shapes_around_tiles());
}

TYPED_TEST(Rungs, AreRightOnTwoHundredRandomSizes) {
  using Algorithm = typename TypeParam::Algorithm;
  const unsigned seed = 20260;
  SCOPED_TRACE("seed " + std::to_string(seed));
  expect_all_right<Algorithm, GatherProblem<typename TypeParam::T>>(
      1, random_shapes(200, seed, {160}, {20, 8}, {20, 8}), seed);
}

TYPED_TEST(Rungs, CallsFollowEachOtherAtOnce) {
  using Algorithm = typename TypeParam::Algorithm;
  expect_all_right<Algorithm, GatherProblem<typename TypeParam::T>>(1, {{130, 264, 200}}, 3,
                                                                    calls_at_once(8));
}

/// A matrix in device memory, followed by kRest elements; all are NaN at first.
template <SixteenBit T>
struct Guarded {
  Guarded(int device, std::int64_t elements) : elements(elements), memory(device, elements + kRest) {
    CUDA_CHECK(cudaMemset(memory.data(), 0xff, memory.bytes()));
  }
  std::vector<T> copy() const { return on_host(memory.data(), elements + kRest); }
  static constexpr std::int64_t kRest = 4096;
  std::int64_t elements;
  DeviceBuffer<T> memory;
};

TYPED_TEST(Rungs, MakeZerosOfNoSumsAndNothingOfNoElements) {
  using T = typename TypeParam::T;
  run_ranks(1, [](Rank& rank) {
    for (const MatmulShape shape : {MatmulShape{40, 24, 0}, MatmulShape{0, 24, 8}, MatmulShape{40, 0, 8}}) {
      const Guarded<T> a(0, shape.m * shape.k), b(0, shape.k * shape.n), c(0, shape.m * shape.n);
      CUDA_CHECK(cudaDeviceSynchronize());
      typename TypeParam::Algorithm algorithm(rank, shape);
      algorithm.run(a.memory.data(), b.memory.data(), c.memory.data(), rank.stream());
      rank.synchronize(rank.stream());
      const std::vector<T> found = c.copy();
      for (std::size_t i = 0; i < found.size(); ++i) {
        if (static_cast<std::int64_t>(i) < c.elements) {
          ASSERT_EQ(value_of(found[i]), 0) << i;
        } else {
          ASSERT_TRUE(is_nan(found[i])) << i;
        }
      }
    }
  });
}

TYPED_TEST(Rungs, WriteNothingBehindC) {
  using T = typename TypeParam::T;
  run_ranks(1, [](Rank& rank) {
    for (const MatmulShape shape :
         {MatmulShape{1, 8, 8}, MatmulShape{129, 264, 72}, MatmulShape{70, 136, 64}}) {
      Guarded<T> a(0, shape.m * shape.k), b(0, shape.k * shape.n), c(0, shape.m * shape.n);
      CUDA_CHECK(cudaMemset(a.memory.data(), 0, a.memory.bytes()));
      CUDA_CHECK(cudaMemset(b.memory.data(), 0, b.memory.bytes()));
      CUDA_CHECK(cudaDeviceSynchronize());
      typename TypeParam::Algorithm algorithm(rank, shape);
      algorithm.run(a.memory.data(), b.memory.data(), c.memory.data(), rank.stream());
      rank.synchronize(rank.stream());
      const std::vector<T> found = c.copy();
      const auto written =
          std::count_if(found.begin(), found.end(), [](T element) { return !is_nan(element); });
      EXPECT_EQ(written, c.elements);
      EXPECT_TRUE(
          std::all_of(found.begin() + c.elements, found.end(), [](T element) { return is_nan(element); }));
    }
  });
}

// ---- B[n, k]: k is the fast index ------------------------------------------------------------------------
template <SixteenBit T, typename Rung>
void expect_right_with_columns_of_b(MatmulShape shape) {
  std::mt19937 random(7);
  const auto numbers = [&random](std::int64_t count) {
    std::vector<T> values(static_cast<std::size_t>(count));
    for (T& value : values) value = from_float<T>(static_cast<float>(static_cast<int>(random() % 5) - 2));
    return values;
  };
  const std::vector<T> a = numbers(shape.m * shape.k), b = numbers(shape.n * shape.k);
  std::vector<T> rows(b.size()), expected(static_cast<std::size_t>(shape.m * shape.n)), found;
  for (std::int64_t n = 0; n < shape.n; ++n) {
    for (std::int64_t k = 0; k < shape.k; ++k)
      rows[static_cast<std::size_t>(k * shape.n + n)] = b[static_cast<std::size_t>(n * shape.k + k)];
  }
  reference_matmul<T>(shape, a, rows, expected);
  run_ranks(1, [&](Rank& rank) {
    const DeviceBuffer<T> a_there = on_device(0, a), b_there = on_device(0, b), c_there(0, expected.size());
    CUDA_CHECK(cudaMemset(c_there.data(), 0xff, c_there.bytes()));
    CUDA_CHECK(cudaDeviceSynchronize());
    TensorCoreGemm<T, Rung, Major::kK> algorithm(rank, shape);
    algorithm.run(a_there.data(), b_there.data(), c_there.data(), rank.stream());
    rank.synchronize(rank.stream());
    found = on_host(c_there.data(), shape.m * shape.n);
  });
  const Verification compared = compare_matrices<T>(expected, found, shape.n);
  EXPECT_TRUE(compared.ok()) << describe(compared);
}

TEST(ColumnsOfB, AreRight) {
  for (const MatmulShape shape :
       {MatmulShape{129, 264, 72}, MatmulShape{64, 32, 200}, MatmulShape{1, 7, 8}}) {
    const MatmulShape even{shape.m, (shape.n + 7) / 8 * 8, shape.k};
    expect_right_with_columns_of_b<__half, WithoutTma>(even);
    expect_right_with_columns_of_b<__half, OneStage>(even);
    expect_right_with_columns_of_b<__half, StoredByTma<>>(even);
    expect_right_with_columns_of_b<__nv_bfloat16, RingOfStages>(even);
    expect_right_with_columns_of_b<__half, ClusterMulticast<>>(even);
    expect_right_with_columns_of_b<__nv_bfloat16, ClusterMulticast<Tile<64, 128, 4>>>(even);
  }
  expect_right_with_columns_of_b<__half, SplitK>({129, 264, 264});
  expect_right_with_columns_of_b<__nv_bfloat16, SplitK>({64, 32, 712});
}

// ---- Other tiles -----------------------------------------------------------------------------------------
TEST(Tiles, OfOtherShapesAreRight) {
  const std::vector<MatmulShape> shapes = {{129, 264, 72}, {64, 72, 200}, {200, 400, 328}};
  expect_all_right<TensorCoreGemm<__half, StoredByTma<Tile<64, 256, 4>>>, GatherProblem<__half>>(1, shapes);
  expect_all_right<TensorCoreGemm<__half, StoredByTma<Tile<64, 128, 6>>>, GatherProblem<__half>>(1, shapes);
  expect_all_right<TensorCoreGemm<__half, StoredByTma<Tile<128, 64, 2>>>, GatherProblem<__half>>(1, shapes);
  expect_all_right<TensorCoreGemm<__half, Persistent<Tile<128, 128, 2>>>, GatherProblem<__half>>(1, shapes);
  expect_all_right<TensorCoreGemm<__half, ClusterMulticast<Tile<64, 128, 6>>>, GatherProblem<__half>>(1,
                                                                                                      shapes);
  expect_all_right<TensorCoreGemm<__half, StoredByTma<MiddleTile>>, GatherProblem<__half>>(1, shapes);
  expect_all_right<TensorCoreGemm<__half, StoredByTma<SmallTile>>, GatherProblem<__half>>(1, shapes);
}

TEST(Ranks, HaveTheirOwnColumns) {
  for (const int ranks : {2, 3, 4}) {
    const Verification all = found_on(ranks, [](Rank& rank) {
      GatherProblem<__half> problem(rank, {70, 480, 72}, 5);
      problem.fill_exact();
      problem.poison_result();
      TensorCoreGemm<__half, StoredByTma<>> algorithm(rank, problem.whole());
      algorithm.run(problem.whole_a(), problem.b(), problem.c(), rank.stream());
      rank.synchronize(rank.stream());
      return problem.compare_exact(false);
    });
    EXPECT_TRUE(all.ok()) << describe(all);
    EXPECT_EQ(all.elements, 70 * 480);
  }
}

// ---- Unsupported -----------------------------------------------------------------------------------------
void expect_refused(MatmulShape shape, const std::string& sentence) {
  expect_thrown<UsageError>(
      [&] { run_ranks(1, [&](Rank& rank) { TensorCoreGemm<__half, OneStage> algorithm(rank, shape); }); },
      sentence);
}

TEST(Refused, RowsThatTmaCannotStepOver) {
  expect_refused({64, 64, 60}, "--k: rows of 60 elements");
  expect_refused({64, 63, 64}, "--n: rows of 63 elements");
}

TEST(Refused, MatricesOfTwoToThe31Elements) {
  expect_refused({1 << 16, 8, 1 << 15}, "2147483648 elements is too large");
  expect_refused({8, 1 << 16, 1 << 15}, "2147483648 elements is too large");
}

TEST(Refused, PointersThatTmaCannotRead) {
  EXPECT_THROW(run_ranks(1,
                         [](Rank& rank) {
                           const DeviceBuffer<__half> memory(0, 4096);
                           TensorCoreGemm<__half, OneStage> algorithm(rank, {8, 8, 8});
                           algorithm.run(memory.data() + 1, memory.data() + 1024, memory.data() + 2048,
                                         rank.stream());
                         }),
               CudaError);
}

// ---- Order and cost --------------------------------------------------------------------------------------
TEST(Order, TakesEachTileOnceAndGroupByGroup) {
  for (const int along_m : {1, 3, 8, 9, 21}) {
    for (const int along_n : {1, 2, 7}) {
      for (const int group : {1, 3, 8}) {
        const Tiling tiling{along_m, along_n, 1};
        std::set<std::pair<int, int>> seen;
        int last_group = 0;
        for (int i = 0; i < tiling.tiles(); ++i) {
          const TilePlace tile = place_of(i, tiling, group);
          ASSERT_TRUE(tile.m >= 0 && tile.m < along_m && tile.n >= 0 && tile.n < along_n);
          EXPECT_TRUE(seen.insert({tile.m, tile.n}).second) << i;
          EXPECT_GE(tile.m / group, last_group);
          last_group = tile.m / group;
        }
      }
    }
  }
  // Groups of one: row by row. Groups of two: a column of two tiles, then the next column.
  EXPECT_EQ(place_of(4, {3, 4, 1}, 1).m, 1);
  EXPECT_EQ(place_of(1, {4, 4, 1}, 2).m, 1);
  EXPECT_EQ(place_of(2, {4, 4, 1}, 2).n, 1);
}

/// Replaces the sums: the first element of each tile is the tile's number, counted in the order in which the
/// grid's only block computes tiles. The counter lies behind C.
struct NumberStore : PlainStore {
  template <typename Tile, SixteenBit T>
  __device__ static void store(const Fragment<Tile::kN>&, T* c, const CUtensorMap&, Staging<T, Tile>*,
                               int row, int column, int m, int n) {
    if (threadIdx.x != 0) return;
    int& tiles = *reinterpret_cast<int*>(c + std::int64_t{m} * n);
    c[std::int64_t{row} * n + column] = static_cast<T>(static_cast<float>(tiles++));
  }
};

TEST(Order, APersistentBlockTakesTilesInGroupsOfEightRows) {
  using Rung = Persistent<Tile<64, 64, 2>, NumberStore>;
  constexpr Tiling kTiling = {10, 3, 1};
  constexpr MatmulShape kShape = {10 * 64, 3 * 64, 8};
  run_ranks_or_skip(1, [&](Rank& rank) {
    multiprocessors_with_wgmma(rank);  // may throw Skip
    CUDA_CHECK(cudaFuncSetAttribute(Rung::kernel<__half, Major::kMN>,
                                    cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    Rung::shared_bytes<__half>()));
    const DeviceBuffer<__half> a(0, kShape.m * kShape.k), b(0, kShape.k * kShape.n),
        c(0, kShape.m * kShape.n + 2);
    for (const auto* buffer : {&a, &b, &c}) CUDA_CHECK(cudaMemset(buffer->data(), 0, buffer->bytes()));
    CUDA_CHECK(cudaDeviceSynchronize());
    Rung::launch<Major::kMN>(1, a.data(), b.data(), c.data(), kShape, rank.stream());
    rank.synchronize(rank.stream());
    const std::vector<__half> found = on_host(c.data(), kShape.m * kShape.n);
    for (int i = 0; i < kTiling.tiles(); ++i) {
      const TilePlace tile = place_of(i, kTiling, 8);
      ASSERT_EQ(value_of(found[static_cast<std::size_t>(64 * tile.m * kShape.n + 64 * tile.n)]), i);
    }
  });
}

TEST(Order, GivesEachTileOnceToTheBlocksOfAPair) {
  for (const int along_m : {1, 2, 3, 8, 9, 21}) {
    for (const int along_n : {1, 2, 7}) {
      const PairedOrder order{{along_m, along_n, 1}, 8};
      std::set<std::pair<int, int>> seen;
      for (int i = 0; i < order.tiles(); ++i) {
        const TilePlace tile = order(i);
        ASSERT_TRUE(tile.m >= 0 && tile.m <= along_m && tile.n >= 0 && tile.n < along_n);
        EXPECT_EQ(tile.m % 2, i % 2);  // by rank
        EXPECT_EQ(tile.n, order(i ^ 1).n);
        EXPECT_TRUE(seen.insert({tile.m, tile.n}).second) << i;
      }
      EXPECT_EQ(static_cast<int>(seen.size()), (along_m + 1) / 2 * 2 * along_n);
    }
  }
  // A column of eight rows of tiles, then the next column.
  const PairedOrder order{{20, 3, 1}, ClusterMulticast<>::kTileGroup};
  EXPECT_EQ(order(7).m, 7);
  EXPECT_EQ(order(8).m, 0);
  EXPECT_EQ(order(8).n, 1);
}

TEST(Order, OfPairsNeedsAnEvenNumberOfBlocks) {
  EXPECT_EQ(ClusterMulticast<>::blocks({64, 32, 1}, 132), 132);
  EXPECT_EQ(ClusterMulticast<>::blocks({64, 32, 1}, 131), 130);
  EXPECT_EQ(ClusterMulticast<>::blocks({1, 1, 1}, 132), 2);
  EXPECT_EQ(ClusterMulticast<>::blocks({3, 1, 1}, 132), 4);
}

TEST(CostOf, AProductIsOneKernel) {
  using Algorithm = TensorCoreGemm<__half, StoredByTma<>>;
  EXPECT_EQ(Algorithm::cost({128, 256, 64}), Cost{.launches = 1});
  EXPECT_EQ(Algorithm::cost({128, 256, 0}), Cost{});
  EXPECT_EQ(Algorithm::cost({0, 256, 64}), Cost{});
}

TEST(WorkOf, CountsWhatTilesLoad) {
  const Work work = work_of<Tile<128, 256, 4>>({8192, 8192, 8192});
  EXPECT_EQ(work.flops, 2LL * 8192 * 8192 * 8192);
  EXPECT_EQ(work.bytes, 3LL * 8192 * 8192 * 2);
  // 64 x 32 tiles, each 128 blocks of 64 (128 + 256) elements.
  EXPECT_EQ(work.loaded_bytes, 64LL * 32 * 128 * 64 * 384 * 2);
  EXPECT_EQ((work_of<Tile<128, 256, 4>>({1, 8, 8}).loaded_bytes), 64 * 384 * 2);
}

}  // namespace
}  // namespace overlap::tensor_core_gemm
