// Chapter 17 on any GPUs, and with the race detector: the caller may use A, B and C again once its stream has
// passed the call, and not earlier.
#include "17_gemm_on_signals/gemm_on_signals.cuh"

#include "17_gemm_on_signals/experiments/pushed_by_blocks.cuh"
#include "kernel_ownership.hpp"

namespace overlap::gemm_on_signals {
namespace {

void expect_caller_owns_in_pieces(int ranks) {
  using Gemm = GemmOnSignals<__half, wgmma::Major::kMN, OwnershipTile>;
  for (const int pieces : {1, 2})
    expect_caller_owns_all_matrices<Gemm, GatherProblem<__half>>(ranks, gathered_shapes(ranks), pieces);
}

void expect_caller_owns_pushed_by_blocks(int ranks) {
  using Gemm = PushedByBlocks<__half, wgmma::Major::kMN, OwnershipTile>;
  expect_caller_owns_all_matrices<Gemm, GatherProblem<__half>>(ranks, gathered_shapes(ranks));
}

const bool kOwnership =
    test_ownership("Chapter17", {{"GemmOnSignals", expect_caller_owns_in_pieces},
                                 {"PushedByBlocks", expect_caller_owns_pushed_by_blocks}});

}  // namespace
}  // namespace overlap::gemm_on_signals
