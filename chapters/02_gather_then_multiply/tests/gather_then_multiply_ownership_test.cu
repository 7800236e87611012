// Chapter 02 on any GPUs, and with the race detector: the caller may reuse A, B and C in its stream right
// after the call, because later work waits for the call.
#include "02_gather_then_multiply/gather_then_multiply.cuh"

#include "ownership.hpp"

namespace overlap::gather_then_multiply {
namespace {

const bool kOwnership = test_ownership(
    "Chapter02",
    {{"GatherThenMultiply", expect_caller_owns_matrices<GatherThenMultiply<__half>, GatherProblem<__half>>}});

}  // namespace
}  // namespace overlap::gather_then_multiply
