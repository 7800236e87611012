// Chapter 18 on any GPUs, and with the race detector: the caller may use A, B and C again once its stream has
// passed the call, and not earlier.
#include "18_ring_in_kernel/ring_ahead.cuh"
#include "18_ring_in_kernel/ring_in_kernel.cuh"

#include "kernel_ownership.hpp"

namespace overlap::ring_in_kernel {
namespace {

template <typename Algorithm>
void expect_caller_owns(int ranks) {
  expect_caller_owns_all_matrices<Algorithm, GatherProblem<__half>>(ranks, gathered_shapes(ranks));
}

const bool kOwnership = test_ownership(
    "Chapter18", {{"RingInKernel", expect_caller_owns<RingInKernel<__half, OwnershipTile>>},
                  {"RingAhead", expect_caller_owns<RingAhead<__half, tensor_core_gemm::Tile<64, 64, 3>>>}});

}  // namespace
}  // namespace overlap::ring_in_kernel
