// Chapter 07 on any GPUs, and with the race detector: the caller owns A, B and C again as soon as its
// stream has passed the call, and not earlier.
#include <gtest/gtest.h>

#include "mlp_run.hpp"
#include "ownership.hpp"

namespace overlap::mlp_block {
namespace {

class Chapter07 : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ownership, Chapter07, testing::Values(1, 2, 3, 4, 8),
                         testing::PrintToStringParamName());

template <typename Block>
void expect_caller_owns_block(int ranks) {
  expect_caller_owns_matrices<Block, typename BlockTraits<Block>::Problem>(ranks);
}

TEST_P(Chapter07, Vanilla) { expect_caller_owns_block<VanillaBlock<__half>>(GetParam()); }
TEST_P(Chapter07, SequenceParallel) { expect_caller_owns_block<SequenceParallelBlock<__half>>(GetParam()); }
TEST_P(Chapter07, Overlapped) { expect_caller_owns_block<OverlappedBlock<__half>>(GetParam()); }

}  // namespace
}  // namespace overlap::mlp_block
