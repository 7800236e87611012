// Chapter 19 on any GPUs, and with the race detector: the caller may use X, W and C again once its stream has
// passed the call, and not earlier.

#include "block_run.hpp"
#include "kernel_ownership.hpp"

namespace overlap::fused_reduce_scatter {
namespace {

template <typename Wire>
using Fused = FusedReduceScatter<__half, Wire, OwnershipTile>;

void expect_caller_owns_with_each_wire(int ranks) {
  const std::vector<MatmulShape> shapes = scattered_shapes(ranks);
  expect_caller_owns_all_matrices<Fused<SixteenBitWire>, ScatterProblem<__half>>(ranks, shapes);
  expect_caller_owns_all_matrices<Fused<F32Wire>, ScatterProblem<__half>>(ranks, shapes);
}

void expect_caller_owns_block(int ranks) {
  expect_caller_owns_all_matrices<SmallBlock<__half>, MlpProblem<__half>>(ranks, gathered_shapes(ranks));
}

const bool kOwnership = test_ownership(
    "Chapter19",
    {{"FusedReduceScatter", expect_caller_owns_with_each_wire}, {"Block", expect_caller_owns_block}});

}  // namespace
}  // namespace overlap::fused_reduce_scatter
