// Chapter 21 on any GPUs: consecutive calls, overflow of the number of the call, the order of the summands; a
// stopped run ends.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "21_small_all_reduce/gemm_all_reduce.cuh"
#include "all_reduce_run.hpp"
#include "overlap/gpu/stream.hpp"
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
    // need a lock to launch theirs: without this wait 8 ranks on 2 x H200 did not end.
    rank.synchronize(other.get());
    const std::vector<float> found = download(rank, sum.data(), kElements);
    EXPECT_EQ(std::memcmp(found.data(), right.data(), sizeof(float) * kElements), 0);
    rank.barrier();
  });
}

TEST_P(Calls, SumsAreAddedInTheOrderOfTheRanks) {
  expect_the_order_of_ranks<OneShot<float>>(GetParam());
  expect_the_order_of_ranks<TwoShot<float>>(GetParam());
  expect_the_order_of_ranks<FlagInData<float>>(GetParam());
  expect_the_order_of_ranks<WordIsFlag<float>>(GetParam());
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
