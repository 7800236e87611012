// Chapter 04 on any GPUs, and with the race detector: the caller owns A, B and C again as soon as its
// stream has passed the call, and not earlier.
#include "04_copy_engine/copy_engine_ring.cuh"

#include "ownership.hpp"

namespace overlap::copy_engine {
namespace {

const bool kOwnership = test_ownership(
    "Chapter04",
    {{"CopyEngineRing", expect_caller_owns_matrices<CopyEngineRing<__half>, GatherProblem<__half>>}});

}  // namespace
}  // namespace overlap::copy_engine
