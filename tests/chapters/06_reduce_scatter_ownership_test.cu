// Chapter 06 on any GPUs, and with the race detector: the caller owns A, B and C again as soon as its
// stream has passed the call, and not earlier.
#include "06_reduce_scatter/all_to_all_sum.cuh"
#include "06_reduce_scatter/multiply_then_scatter.cuh"
#include "06_reduce_scatter/rotating_accumulators.cuh"

#include <gtest/gtest.h>

#include "ownership.hpp"

namespace overlap::reduce_scatter {
namespace {

class Chapter06 : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ownership, Chapter06, testing::Values(1, 2, 3, 4, 8),
                         testing::PrintToStringParamName());

TEST_P(Chapter06, MultiplyThenScatter) {
  expect_caller_owns_matrices<MultiplyThenScatter<__half>, ScatterProblem<__half>>(GetParam());
}
TEST_P(Chapter06, RotatingAccumulators) {
  for (const Start start : {Start::kFirstPartial, Start::kZeros}) {
    for (const Pass pass : {Pass::kStore, Pass::kCopy}) {
      SCOPED_TRACE("start " + std::to_string(static_cast<int>(start)) + ", pass " +
                   std::to_string(static_cast<int>(pass)));
      expect_caller_owns_matrices<RotatingAccumulators<__half>, ScatterProblem<__half>>(GetParam(), start,
                                                                                        pass);
    }
  }
}
TEST_P(Chapter06, AllToAllSum) {
  expect_caller_owns_matrices<AllToAllSum<__half>, ScatterProblem<__half>>(GetParam());
}

}  // namespace
}  // namespace overlap::reduce_scatter
