// Experiment of chapter 19: chapter 07's block, with the collective of each GEMM in the GEMM's kernel.
//
//   stream       normalise | one kernel | activate | one kernel                                | add X
//   transfer               | shards     |          |
//
// The first kernel (chapter 17) waits for shards of tokens that copy engines push; the second one sends its
// tiles, and adds. All other steps are those of chapter 07, unchanged.
#pragma once

#include "07_mlp_block/overlapped_block.cuh"
#include "16_tensor_core_gemm/fitting.cuh"
#include "17_gemm_on_signals/gemm_on_signals.cuh"
#include "19_fused_reduce_scatter/fused_reduce_scatter.cuh"
#include "overlap/gpu/error.hpp"

namespace overlap::fused_reduce_scatter {

/// Returns `whole`, the {t, f, h} of a block, if TMA can step over the rows of both GEMMs' matrices on every
/// rank: h must be a multiple of 8, and f one of 8 P. Else throws Skip, so that the other variants still run.
inline MatmulShape block_for_tma(MatmulShape whole, int ranks) {
  try {
    tensor_core_gemm::require_all_sizes(whole, ranks);
    require_all_sizes({whole.m, whole.k, whole.n}, ranks);
  } catch (const UsageError& error) {
    throw Skip(error.what());
  }
  return whole;
}

/// Chapter 07's overlapped block with chapter 17's kernel for the first GEMM and this chapter's for the
/// second, each with the tile that fits.
template <SixteenBit T,
          typename Gather = tensor_core_gemm::Fitting<gemm_on_signals::GemmOnSignals<T, Major::kMN>>,
          typename Scatter = tensor_core_gemm::Fitting<FusedReduceScatter<T>, product_of_an_owner>>
class FusedBlock : public mlp_block::OverlappedBlock<T, Gather, Scatter> {
 public:
  /// Collective. Throws Skip unless the GPU has compute capability 9.0, and as block_for_tma() and
  /// OverlappedBlock do.
  FusedBlock(Rank& rank, MatmulShape whole)
      : FusedBlock::OverlappedBlock(rank, block_for_tma(whole, rank.size())) {}
};

}  // namespace overlap::fused_reduce_scatter
