// Chapter 06 on any GPUs, and with the race detector: the caller may reuse A, B and C in its stream right
// after the call, because later work waits for the call.
#include "06_reduce_scatter/all_to_all_sum.cuh"
#include "06_reduce_scatter/multiply_then_scatter.cuh"
#include "06_reduce_scatter/rotating_accumulators.cuh"

#include "ownership.hpp"

namespace overlap::reduce_scatter {
namespace {

void expect_caller_owns_with_each_start_and_pass(int ranks) {
  for (const Start start : {Start::kFirstPartial, Start::kZeros}) {
    for (const Pass pass : {Pass::kStore, Pass::kCopy}) {
      SCOPED_TRACE("start " + std::to_string(static_cast<int>(start)) + ", pass " +
                   std::to_string(static_cast<int>(pass)));
      expect_caller_owns_matrices<RotatingAccumulators<__half>, ScatterProblem<__half>>(ranks, start, pass);
    }
  }
}

const bool kOwnership = test_ownership(
    "Chapter06", {{"MultiplyThenScatter",
                   expect_caller_owns_matrices<MultiplyThenScatter<__half>, ScatterProblem<__half>>},
                  {"RotatingAccumulators", expect_caller_owns_with_each_start_and_pass},
                  {"AllToAllSum", expect_caller_owns_matrices<AllToAllSum<__half>, ScatterProblem<__half>>}});

}  // namespace
}  // namespace overlap::reduce_scatter
