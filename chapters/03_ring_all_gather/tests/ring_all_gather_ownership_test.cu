// Chapter 03 on any GPUs, and with the race detector: the caller may reuse A, B and C in its stream right
// after the call, because later work waits for the call.
#include "03_ring_all_gather/ring_all_gather.cuh"

#include "ownership.hpp"

namespace overlap::ring_all_gather {
namespace {

const bool kOwnership = test_ownership(
    "Chapter03",
    {{"RingAllGather", expect_caller_owns_matrices<RingAllGatherMatmul<__half>, GatherProblem<__half>>}});

}  // namespace
}  // namespace overlap::ring_all_gather
