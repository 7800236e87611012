// Chapter 05 on any GPUs, and with the race detector: the caller may reuse A, B and C in its stream right
// after the call, because later work waits for the call.
#include "05_two_streams/experiments/openings.cuh"
#include "05_two_streams/ring_two_streams.cuh"

#include "ownership.hpp"

namespace overlap::two_streams {
namespace {

void expect_caller_owns_with_each_opening(int ranks) {
  for (const Opening opening :
       {Opening::kBefore, Opening::kBeside, Opening::kCopyFirst, Opening::kAfter, Opening::kBarrierAfter}) {
    SCOPED_TRACE("opening " + std::to_string(static_cast<int>(opening)));
    expect_caller_owns_matrices<PullWithOpening<__half>, GatherProblem<__half>>(ranks, opening);
  }
}

const bool kOwnership = test_ownership(
    "Chapter05",
    {{"RingTwoStreams", expect_caller_owns_matrices<RingTwoStreams<__half>, GatherProblem<__half>>},
     {"PullTwoStreams", expect_caller_owns_with_each_opening}});

}  // namespace
}  // namespace overlap::two_streams
