// Runs of chapter 19's block, for its tests.
#pragma once

#include <cstdint>
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

/// With small tiles, so that small GEMMs have many.
template <SixteenBit T>
using SmallBlock =
    FusedBlock<T, gemm_on_signals::GemmOnSignals<T, Major::kMN, tensor_core_gemm::Tile<64, 64, 2>>,
               FusedReduceScatter<T, SixteenBitWire, tensor_core_gemm::Tile<64, 64, 2>>>;

/// Sizes of a block that TMA can step over: the hidden size and each rank's share of the feed-forward size
/// are multiples of 8. One token; fewer tokens than ranks; tiles with rows of two shards in the first GEMM,
/// which the second GEMM does not have; several tiles of each.
inline std::vector<MatmulShape> block_shapes(int ranks) {
  const std::int64_t f = 8 * ranks;
  return {{1, f, 8}, {5, 2 * f, 24}, {33, 9 * f, 72}, {130, 5 * f, 136}, {257, 2 * f, 64}};
}

/// `count` random sizes of this kind.
inline std::vector<MatmulShape> random_block_shapes(int ranks, int count, unsigned seed) {
  return random_shapes(count, seed, {150}, {10, 8 * ranks}, {20, 8});
}

}  // namespace fused_reduce_scatter
}  // namespace overlap
