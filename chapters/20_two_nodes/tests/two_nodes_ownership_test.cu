// Chapter 20 on any GPUs, and with the race detector: the caller owns A, B and C again as soon as its
// stream has passed the call, and not earlier; for ranks in nodes of one and of two.
#include "20_two_nodes/two_level_gemm.cuh"

#include "kernel_ownership.hpp"

namespace overlap::two_nodes {
namespace {

void expect_caller_owns_in_nodes(int ranks) {
  using Gemm = TwoLevelGemm<__half, wgmma::Major::kMN, OwnershipTile>;
  for (int per_node = 1; per_node <= 2; ++per_node) {
    if (ranks % per_node != 0) continue;
    expect_caller_owns_all_matrices<Gemm, GatherProblem<__half>>(ranks, gathered_shapes(ranks), per_node);
  }
}

const bool kOwnership = test_ownership("Chapter20", {{"TwoLevelGemm", expect_caller_owns_in_nodes}});

}  // namespace
}  // namespace overlap::two_nodes
