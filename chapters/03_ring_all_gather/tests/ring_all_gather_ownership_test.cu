// Chapter 03 on any GPUs, and with the race detector: the caller owns A, B and C again as soon as its
// stream has passed the call, and not earlier.
#include "03_ring_all_gather/ring_all_gather.cuh"

#include "ownership.hpp"

namespace overlap::ring_all_gather {
namespace {

const bool kOwnership = test_ownership(
    "Chapter03",
    {{"RingAllGather", expect_caller_owns_matrices<RingAllGatherMatmul<__half>, GatherProblem<__half>>}});

}  // namespace
}  // namespace overlap::ring_all_gather
