// Chapter 21 on virtual GPUs: right in any order of events, bytes equal to the cost cards, and beside other
// waiting kernels if both are resident.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "21_small_all_reduce/add_and_normalise.cuh"
#include "21_small_all_reduce/experiments/sum_in_epilogue.cuh"
#include "21_small_all_reduce/flag_in_data.cuh"
#include "21_small_all_reduce/gemm_all_reduce.cuh"
#include "21_small_all_reduce/one_shot.cuh"
#include "21_small_all_reduce/two_shot.cuh"
#include "21_small_all_reduce/word_is_flag.cuh"
#include "abort_flag.hpp"
#include "dense_virtual.hpp"
#include "ownership.hpp"

namespace overlap::small_all_reduce::virtual_gpus {
namespace {

using Problem = AllReduceProblem<__half>;

template <typename AllReduce>
class Kernels : public OnVirtualGpus {};
using All = testing::Types<OneShot<__half, Reuse::kExitBarrier>, OneShot<__half>, TwoShot<__half>,
                           FlagInData<__half>, WordIsFlag<__half>>;
TYPED_TEST_SUITE(Kernels, All);

/// All of C, on every rank.
template <typename AllReduce>
void expect_products(int ranks, MatmulShape whole, std::uint64_t seed, int calls) {
  using Layer = GemmThen<__half, AllReduce>;
  expect_runs_right(ranks, {whole}, calls, run_dense_all<Layer, Problem>(ranks, {whole}, seed, calls),
                    [ranks](MatmulShape shape) { return ranks * shape.m * shape.n; });
}

TYPED_TEST(Kernels, CallsAtOnceAreRightInTwentySchedules) {
  in_random_schedules(20, [](std::uint64_t seed) {
    const int ranks = std::array{2, 3, 4, 8}[seed % 4];
    expect_products<TypeParam>(ranks, {3, 45, 2 * ranks}, seed, 5);
  });
  in_random_schedules(20, [](std::uint64_t seed) {  // several blocks
    expect_products<TypeParam>(2, {17, 1024, 4}, seed, 4);
  });
}

TYPED_TEST(Kernels, TheCallerOwnsItsMatricesInManySchedules) {
  in_random_schedules(3, [](std::uint64_t) {
    run_ranks(3, [](Rank& rank) {
      expect_caller_owns_matrices_on<GemmThen<__half, TypeParam>, Problem>(rank, {3, 45, 7});
    });
  });
}

TYPED_TEST(Kernels, SameSeedSameSchedule) {
  expect_same_seed_same_schedule([] { expect_products<TypeParam>(3, {3, 45, 7}, 1, 2); });
}

// ---- A rank without a call -----------------------------------------------------------------------------

// Few elements: each thread that waits looks at its word thousands of times before it reads the flag.
TYPED_TEST(Kernels, TheAbortFlagAloneEndsACallsWaits) {
  expect_the_abort_flag_ends_waits<GemmThen<__half, TypeParam>, Problem>(3, {1, 8, 6});
}

/// AddAndNormalise, with A as x: a rank's columns of A are as many as C's.
class Normalise {
 public:
  Normalise(Rank& rank, MatmulShape whole)
      : gain_and_residual_(rank.device(), static_cast<std::size_t>(whole.m * whole.n)),
        normalise_(rank, whole.m, whole.n, 1.0F) {}
  void run(const __half* a, const __half* /*b*/, __half* c, cudaStream_t stream) {
    normalise_.run(a, gain_and_residual_.data(), gain_and_residual_.data(), c, stream);
  }

 private:
  DeviceBuffer<__half> gain_and_residual_;
  AddAndNormalise<__half> normalise_;
};

TEST_F(OnVirtualGpus, TheAbortFlagAloneEndsWaitsWithinOtherKernels) {
  expect_the_abort_flag_ends_waits<Normalise, Problem>(3, {1, 8, 3 * 8});
  expect_the_abort_flag_ends_waits<SumInEpilogue<__half>, Problem>(3, {1, 8, 3 * 8});
}

// ---- Sums sent by the epilogue -------------------------------------------------------------------------

/// Tiles that are only partly filled, several of them, and several blocks of k.
template <SixteenBit T>
void expect_sums_in_epilogue(int ranks, std::uint64_t seed, int calls) {
  const std::vector<MatmulShape> shapes = {
      {1, 8, 8 * ranks}, {5, 72, 72 * ranks}, {33, 136, 136 * ranks}, {70, 200, 64 * ranks}};
  expect_runs_right(ranks, shapes, calls,
                    run_dense_all<SumInEpilogue<T>, AllReduceProblem<T>>(ranks, shapes, seed, calls),
                    [ranks](MatmulShape shape) { return ranks * shape.m * shape.n; });
}

TEST_F(OnVirtualGpus, SumsThatLeaveFromTheEpilogueAreRight) {
  for (const int ranks : {1, 2, 3, 4, 8}) expect_sums_in_epilogue<__half>(ranks, 1, 4);
  expect_sums_in_epilogue<__nv_bfloat16>(3, 1, 1);
}

TEST_F(OnVirtualGpus, SumsThatLeaveFromTheEpilogueAreRightInTwentySchedules) {
  in_random_schedules(20, [](std::uint64_t seed) {
    expect_sums_in_epilogue<__half>(std::array{2, 3, 4}[seed % 3], seed, 2);
  });
}

TEST_F(OnVirtualGpus, WhatTmaCannotStepOverIsLeftToOthers) {
  for (const MatmulShape whole : {MatmulShape{1, 12, 32}, MatmulShape{1, 16, 24}}) {
    EXPECT_THROW(run_ranks(2, [&](Rank& rank) { const SumInEpilogue<__half> uneven(rank, whole); }), Skip);
  }
}

// ---- Unsupported ---------------------------------------------------------------------------------------

TYPED_TEST(Kernels, AllMultiprocessorsSetAsideAreRefused) {
  expect_thrown<UsageError>(
      [] { run_ranks(2, [](Rank& rank) { const TypeParam all_reduce(rank, 100, 8); }); },
      "8 multiprocessors cannot be set aside: GPU 0 has 8");
}

TYPED_TEST(Kernels, MoreRanksThanTheKernelsParametersHaveRoomForAreRefused) {
  vgpu::use_gpus(kMaxRanks + 1);
  expect_thrown<UsageError>(
      [] { run_ranks(kMaxRanks + 1, [](Rank& rank) { const TypeParam all_reduce(rank, 100); }); },
      "have room for 16 ranks, and there are 17");
}

}  // namespace
}  // namespace overlap::small_all_reduce::virtual_gpus
