// Chapter 21 on any GPUs: consecutive calls, overflow of the number of the call; a stopped run ends.
#include <gtest/gtest.h>

#include "21_small_all_reduce/gemm_all_reduce.cuh"
#include "all_reduce_run.hpp"
#include "stopped_run.hpp"

namespace overlap::small_all_reduce {
namespace {

class Calls : public AllReduces {};
INSTANTIATE_TEST_SUITE_P(Chapter21, Calls, testing::Values(1, 2, 3, 4, 8));

TEST_P(Calls, CallsThatFollowEachOtherAtOnce) { expect_all_right<__half>({1, 300}, calls_at_once(13)); }

TEST_P(Calls, NumbersOfCallsThatOverflow) {
  const WordsThatOverflow soon;
  expect_all_right<float>({5, 700}, 9);
}

// ---- A rank that throws --------------------------------------------------------------------------------

template <typename AllReduce>
class Stopped : public testing::Test {};
using Waiting = testing::Types<OneShot<__half, Reuse::kExitBarrier>, OneShot<__half>, TwoShot<__half>,
                               FlagInData<__half>, WordIsFlag<__half>>;
TYPED_TEST_SUITE(Stopped, Waiting);

TYPED_TEST(Stopped, ByARankThatThrowsInsteadOfMakingItsCall) {
  expect_stopped_run<GemmThen<__half, TypeParam>, AllReduceProblem<__half>>(3, 1, 1, {3, 45, 7});
}

}  // namespace
}  // namespace overlap::small_all_reduce
