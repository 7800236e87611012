// Chapter 21 on any GPUs, and with the race detector: the caller may use A, B and C again once its stream has
// passed the call, and not earlier; the first call may follow the constructor at once, on any stream, and
// adds in the order of the ranks.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "21_small_all_reduce/flag_in_data.cuh"
#include "21_small_all_reduce/gemm_all_reduce.cuh"
#include "21_small_all_reduce/one_shot.cuh"
#include "21_small_all_reduce/two_shot.cuh"
#include "21_small_all_reduce/word_is_flag.cuh"

#include "overlap/bench/device_data.hpp"
#include "overlap/gpu/stream.hpp"
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

/// Summands whose sum depends on the order of addition: every rank must get the bits of the sum in the order
/// of the ranks.
template <typename AllReduce>
void expect_the_order_of_ranks(int ranks) {
  constexpr std::int64_t kElements = 1000;
  const auto value = [](int rank, std::int64_t i) {
    return static_cast<float>(std::sin(static_cast<double>(i * 31 + rank * 7 + 1)) * std::pow(10, rank % 3));
  };
  run_ranks_or_skip(ranks, [&](Rank& rank) {
    const DeviceBuffer<float> x(rank.device(), kElements), sum(rank.device(), kElements);
    std::vector<float> own, right(kElements, -0.0F);
    for (std::int64_t i = 0; i < kElements; ++i) own.push_back(value(rank.id(), i));
    for (int other = 0; other < ranks; ++other) {
      for (std::int64_t i = 0; i < kElements; ++i) right[static_cast<std::size_t>(i)] += value(other, i);
    }
    upload(rank, own, x);
    rank.barrier();
    // No barrier before the first call, which is on another stream than the constructor's: only the
    // constructor orders it after the other ranks' constructors and its own work.
    const Stream other(rank.device());
    AllReduce all_reduce(rank, kElements);
    all_reduce.run(x.data(), sum.data(), other.get());
    // A copy to pageable memory would wait for the kernel inside the driver, where other ranks of the GPU may
    // need a lock to launch theirs. Without this wait, and without the barrier that now ends the
    // constructors, 8 ranks on 2 x H200 did not end.
    rank.synchronize(other.get());
    const std::vector<float> found = download(rank, sum.data(), kElements);
    EXPECT_EQ(std::memcmp(found.data(), right.data(), sizeof(float) * kElements), 0);
    rank.barrier();
  });
}

class FirstCall : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Chapter21, FirstCall, testing::Values(1, 2, 3, 4, 8));

TEST_P(FirstCall, AddsInTheOrderOfTheRanks) {
  expect_the_order_of_ranks<OneShot<float>>(GetParam());
  expect_the_order_of_ranks<TwoShot<float>>(GetParam());
  expect_the_order_of_ranks<FlagInData<float>>(GetParam());
  expect_the_order_of_ranks<WordIsFlag<float>>(GetParam());
}

}  // namespace
}  // namespace overlap::small_all_reduce
