// Chapter 21 on any GPUs, and with the race detector: the caller may use A, B and C again once its stream has
// passed the call, and not earlier.
#include "21_small_all_reduce/flag_in_data.cuh"
#include "21_small_all_reduce/gemm_all_reduce.cuh"
#include "21_small_all_reduce/one_shot.cuh"
#include "21_small_all_reduce/two_shot.cuh"
#include "21_small_all_reduce/word_is_flag.cuh"

#include "ownership.hpp"

namespace overlap::small_all_reduce {
namespace {

template <typename AllReduce>
void expect_caller_owns(int ranks) {
  expect_caller_owns_matrices<GemmThen<__half, AllReduce>, AllReduceProblem<__half>>(ranks);
}

const bool kOwnership = test_ownership(
    "Chapter21", {{"OneShotWithExit", expect_caller_owns<OneShot<__half, Reuse::kExitBarrier>>},
                  {"OneShot", expect_caller_owns<OneShot<__half>>},
                  {"TwoShot", expect_caller_owns<TwoShot<__half>>},
                  {"FlagInData", expect_caller_owns<FlagInData<__half>>},
                  {"WordIsFlag", expect_caller_owns<WordIsFlag<__half>>}});

}  // namespace
}  // namespace overlap::small_all_reduce
