// Chapter 04 on any GPUs, and with the race detector: the caller owns A, B and C again as soon as its
// stream has passed the call, and not earlier.
#include "04_copy_engine/copy_engine_ring.cuh"

#include <gtest/gtest.h>

#include "ownership.hpp"

namespace overlap::copy_engine {
namespace {

class Chapter04 : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ownership, Chapter04, testing::Values(1, 2, 3, 4, 8),
                         testing::PrintToStringParamName());

TEST_P(Chapter04, CopyEngineRing) {
  expect_caller_owns_matrices<CopyEngineRing<__half>, GatherProblem<__half>>(GetParam());
}

}  // namespace
}  // namespace overlap::copy_engine
