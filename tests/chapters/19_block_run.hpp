// Runs of chapter 19's block, for its tests.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "19_fused_reduce_scatter/experiments/fused_block.cuh"
#include "mlp_run.hpp"

namespace overlap {

template <SixteenBit T, typename In, typename Out>
struct BlockTraits<fused_reduce_scatter::FusedBlock<T, In, Out>> {
  using Problem = MlpProblem<T>;
  static int copies(int) { return 1; }
};

namespace fused_reduce_scatter {

/// With tiles so small that small products have many.
template <SixteenBit T>
using SmallBlock = FusedBlock<T, tensor_core_gemm::Tile<64, 64, 2>, tensor_core_gemm::Tile<64, 64, 2>>;

/// Sizes of a block that TMA can step over: feed-forward size in multiples of 8 for each rank, and a hidden
/// size in multiples of 8. One token and fewer than ranks; tiles that straddle shards on the way in, which
/// have borders of their own on the way back; several tiles of each.
inline std::vector<MatmulShape> block_shapes(int ranks) {
  const std::int64_t f = 8 * ranks;
  return {{1, f, 8}, {5, 2 * f, 24}, {33, 9 * f, 72}, {130, 5 * f, 136}, {257, 2 * f, 64}};
}

/// `count` random ones.
inline std::vector<MatmulShape> random_block_shapes(int ranks, int count, unsigned seed) {
  std::mt19937 random(seed);
  const auto up_to = [&random](int most) {
    return static_cast<std::int64_t>(1 + random() % static_cast<unsigned>(most));
  };
  std::vector<MatmulShape> shapes;
  for (int i = 0; i < count; ++i) {
    const std::int64_t t = up_to(150), f = 8 * ranks * up_to(10), h = 8 * up_to(20);
    shapes.push_back({t, f, h});
  }
  return shapes;
}

}  // namespace fused_reduce_scatter
}  // namespace overlap
