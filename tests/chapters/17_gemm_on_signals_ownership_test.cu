// Chapter 17 on any GPUs, and with the race detector: the caller owns A, B and C again as soon as its
// stream has passed the call, and not earlier.
#include "17_gemm_on_signals/gemm_on_signals.cuh"

#include <gtest/gtest.h>

#include "kernel_ownership.hpp"

namespace overlap::gemm_on_signals {
namespace {

class Chapter17 : public KernelOwnership {};
INSTANTIATE_TEST_SUITE_P(Ownership, Chapter17, testing::Values(1, 2, 3, 4, 8),
                         testing::PrintToStringParamName());

TEST_P(Chapter17, GemmOnSignals) {
  using Gemm = GemmOnSignals<__half, wgmma::Major::kMN, Tile>;
  for (const int pieces : {1, 2})
    expect_caller_owns_all_matrices<Gemm, GatherProblem<__half>>(GetParam(), gathered(), pieces);
}

}  // namespace
}  // namespace overlap::gemm_on_signals
