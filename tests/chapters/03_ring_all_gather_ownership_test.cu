// Chapter 03 on any GPUs, and with the race detector: the caller owns A, B and C again as soon as its
// stream has passed the call, and not earlier.
#include "03_ring_all_gather/ring_all_gather.cuh"

#include <gtest/gtest.h>

#include "ownership.hpp"

namespace overlap::ring_all_gather {
namespace {

class Chapter03 : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ownership, Chapter03, testing::Values(1, 2, 3, 4, 8),
                         testing::PrintToStringParamName());

TEST_P(Chapter03, RingAllGather) {
  expect_caller_owns_matrices<RingAllGatherMatmul<__half>, GatherProblem<__half>>(GetParam());
}

}  // namespace
}  // namespace overlap::ring_all_gather
