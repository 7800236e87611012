// Chapter 04 on any GPUs, and with the race detector: the caller may reuse A, B and C in its stream right
// after the call, because later work waits for the call.
#include "04_copy_engine/copy_engine_ring.cuh"

#include "ownership.hpp"

namespace overlap::copy_engine {
namespace {

const bool kOwnership = test_ownership(
    "Chapter04",
    {{"CopyEngineRing", expect_caller_owns_matrices<CopyEngineRing<__half>, GatherProblem<__half>>}});

}  // namespace
}  // namespace overlap::copy_engine
