// Chapter 19 on any GPUs, and with the race detector: the caller owns A, B and C again as soon as its
// stream has passed the call, and not earlier.
#include <gtest/gtest.h>

#include "19_block_run.hpp"
#include "kernel_ownership.hpp"

namespace overlap::fused_reduce_scatter {
namespace {

class Chapter19 : public KernelOwnership {};
INSTANTIATE_TEST_SUITE_P(Ownership, Chapter19, testing::Values(1, 2, 3, 4, 8),
                         testing::PrintToStringParamName());

TEST_P(Chapter19, FusedReduceScatter) {
  expect_caller_owns_all_matrices<FusedReduceScatter<__half, SixteenBitWire, Tile>, ScatterProblem<__half>>(
      GetParam(), scattered());
  expect_caller_owns_all_matrices<FusedReduceScatter<__half, F32Wire, Tile>, ScatterProblem<__half>>(
      GetParam(), scattered());
}
TEST_P(Chapter19, Block) {
  expect_caller_owns_all_matrices<SmallBlock<__half>, MlpProblem<__half>>(GetParam(), gathered());
}

}  // namespace
}  // namespace overlap::fused_reduce_scatter
