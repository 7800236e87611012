// Chapter 18 on any GPUs, and with the race detector: the caller owns A, B and C again as soon as its
// stream has passed the call, and not earlier.
#include "18_ring_in_kernel/ring_ahead.cuh"
#include "18_ring_in_kernel/ring_in_kernel.cuh"

#include <gtest/gtest.h>

#include "kernel_ownership.hpp"

namespace overlap::ring_in_kernel {
namespace {

class Chapter18 : public KernelOwnership {};
INSTANTIATE_TEST_SUITE_P(Ownership, Chapter18, testing::Values(1, 2, 3, 4, 8),
                         testing::PrintToStringParamName());

TEST_P(Chapter18, RingInKernel) {
  expect_caller_owns_all_matrices<RingInKernel<__half, Tile>, GatherProblem<__half>>(GetParam(), gathered());
}
TEST_P(Chapter18, RingAhead) {
  expect_caller_owns_all_matrices<RingAhead<__half, tensor_core_gemm::Tile<64, 64, 3>>,
                                  GatherProblem<__half>>(GetParam(), gathered());
}

}  // namespace
}  // namespace overlap::ring_in_kernel
