// Chapter 02 on any GPUs, and with the race detector: the caller owns A, B and C again as soon as its
// stream has passed the call, and not earlier.
#include "02_gather_then_multiply/gather_then_multiply.cuh"

#include <gtest/gtest.h>

#include "ownership.hpp"

namespace overlap::gather_then_multiply {
namespace {

class Chapter02 : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ownership, Chapter02, testing::Values(1, 2, 3, 4, 8),
                         testing::PrintToStringParamName());

TEST_P(Chapter02, GatherThenMultiply) {
  expect_caller_owns_matrices<GatherThenMultiply<__half>, GatherProblem<__half>>(GetParam());
}

}  // namespace
}  // namespace overlap::gather_then_multiply
