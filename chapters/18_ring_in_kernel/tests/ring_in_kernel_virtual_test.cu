// Chapter 18 on virtual GPUs: right in any order of events, bytes equal to the cost cards, and the page's
// order of modelled times.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "16_tensor_core_gemm/fitting.cuh"
#include "18_ring_in_kernel/ring_ahead.cuh"
#include "18_ring_in_kernel/ring_in_kernel.cuh"
#include "abort_flag.hpp"
#include "dense_virtual.hpp"
#include "in_company.hpp"
#include "overlap/gpu/error.hpp"
#include "ownership.hpp"

namespace overlap::ring_in_kernel::virtual_gpus {
namespace {

using Form = RingInKernel<__half>;
using Ahead = RingAhead<__half>;
using AheadForFewRows = RingAhead<__half, SmallTile>;
using Problem = GatherProblem<__half>;

template <typename Algorithm>
class Kernels : public OnVirtualGpus {};
using All = testing::Types<Form, Ahead, AheadForFewRows>;
TYPED_TEST_SUITE(Kernels, All);

/// With tiles of 256 columns, as product_that_fills() takes it.
template <typename Algorithm>
class KernelsThatFillAGpu : public OnVirtualGpus {};
using WithLargeTiles = testing::Types<Form, Ahead>;
TYPED_TEST_SUITE(KernelsThatFillAGpu, WithLargeTiles);

TYPED_TEST(Kernels, BackToBackCallsAreRightInTwentySchedules) {
  in_random_schedules(20, [](std::uint64_t seed) {
    const int ranks = std::array{2, 3, 4, 8}[seed % 4];
    expect_right<TypeParam, Problem>(ranks, {19, ranks * 16, 72}, seed, 3);
  });
  in_random_schedules(20, [](std::uint64_t seed) {  // four tiles in each step
    expect_right<TypeParam, Problem>(2, {258, 2 * 264, 72}, seed, 2);
  });
}

// A shard without rows has no tile, but every rank waits for it: otherwise a rank could run two calls ahead,
// and overwrite a slot that another rank still reads.
TYPED_TEST(Kernels, ShardsWithoutRowsCloseTheRing) {
  in_random_schedules(20, [](std::uint64_t seed) {
    expect_right<TypeParam, Problem>(3, {seed % 2 == 0 ? 1 : 2, 24, 136}, seed, 6);
  });
}

TYPED_TEST(Kernels, TheCallerOwnsAAndBAndCBehindTheCallInAnySchedule) {
  in_random_schedules(3, [](std::uint64_t) {
    run_ranks(3, [](Rank& rank) { expect_caller_owns_matrices_on<TypeParam, Problem>(rank, {19, 48, 40}); });
  });
}

TYPED_TEST(Kernels, SameSeedSameSchedule) {
  expect_same_seed_same_schedule([] { expect_right<TypeParam, Problem>(3, {33, 48, 72}, 1, 2); });
}

TYPED_TEST(Kernels, MoveTheBytesOfTheirCostCards) {
  for (const int ranks : {1, 2, 3, 8}) {
    for (const std::int64_t m : {3, 64, 391}) {
      SCOPED_TRACE(std::to_string(m) + " rows on " + std::to_string(ranks) + " ranks");
      const MatmulShape shape{m, ranks * 16, 136};
      expect_one_neighbour(traffic_of_a_call<TypeParam, Problem>(ranks, shape), ranks, -1,
                           [&](int rank) { return TypeParam::cost(shape, ranks, rank); });
    }
  }
}

// A shard without rows has a wait of its own.
TYPED_TEST(Kernels, TheAbortFlagAloneEndsACallsWaits) {
  expect_the_abort_flag_ends_waits<TypeParam, Problem>(3, {130, 48, 72});
  expect_the_abort_flag_ends_waits<TypeParam, Problem>(3, {2, 48, 72});
}

/// Modelled time of one call on four ranks, on the slowest.
template <typename Algorithm>
double ms_of(MatmulShape shape) {
  vgpu::reset();
  return modelled_ms<Algorithm, Problem>(4, shape);
}

__global__ void await_one_arrival(Arrivals arrivals) { await_arrival(arrivals, 0, 1); }

// Nobody counts in the word.
TEST_F(OnVirtualGpus, AStopEndsTheWaitForAnArrival) {
  const DeviceBuffer<std::uint32_t> words(0, 1);
  const DeviceBuffer<unsigned> stop(0, 1);
  CUDA_CHECK(cudaMemset(words.data(), 0, words.bytes()));
  CUDA_CHECK(cudaMemset(stop.data(), 1, stop.bytes()));
  await_one_arrival<<<1, 1>>>({words.data(), words.data(), 1, stop.data()});
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

// Each shard has eight tiles, one for each multiprocessor: one block for all of them would take eight times
// as long.
TYPED_TEST(KernelsThatFillAGpu, TakeLittleLongerThanTheProductAlone) {
  const MatmulShape shape{4 * 128, 4 * 2048, 64};
  const double fused = ms_of<TypeParam>(shape);
  vgpu::reset();
  using Product = TensorCoreGemm<__half, StoredByTma<>>;
  const double alone = modelled_ms<Product, Problem>(1, {shape.m, shape.n / 4, shape.k});
  EXPECT_LT(fused, 1.5 * alone);
}

TEST_F(OnVirtualGpus, TransfersAheadOfTheProductAreFasterThanThoseWithin) {
  const MatmulShape shape{512, 2048, 64};
  EXPECT_LT(ms_of<Ahead>(shape), ms_of<Form>(shape));
}

TEST_F(OnVirtualGpus, FewRowsTakeLessTimeWithTheTileThatFits) {
  // A shard of 32 rows and 1,024 columns: 8 small tiles, one for each multiprocessor, or 4 large ones.
  const MatmulShape shape{4 * 32, 4 * 1024, 64};
  EXPECT_LT(ms_of<Fitting<Ahead>>(shape), 0.8 * ms_of<Ahead>(shape));
}

// ---- Unsupported -----------------------------------------------------------------------------------------
TYPED_TEST(Kernels, MoreRanksThanTheKernelsParametersHaveRoomForAreRefused) {
  vgpu::use_gpus(kMaxRanks + 1);
  expect_thrown<UsageError>(
      [] { run_ranks(kMaxRanks + 1, [](Rank& rank) {
             TypeParam algorithm(rank, {17, 8 * 17, 8});
           }); },
      "have room for 16 ranks, and there are 17");
}

// Counts by fetch_add() in a neighbour's memory.
TYPED_TEST(Kernels, WantNativeAtomics) {
  vgpu::use_machine("h100-pcie");
  expect_skipped<TypeParam, Problem>(2, {19, 32, 72}, "cudaDevP2PAttrNativeAtomicSupported is 0");
}

TYPED_TEST(Kernels, AllMultiprocessorsSetAsideAreRefused) {
  if constexpr (!std::is_same_v<TypeParam, Form>) {
    expect_thrown<UsageError>(
        [] {
          run_dense<TypeParam, Problem>(2, {19, 32, 72}, 1, 1, Tuning{}, 8);
        },
        "8 multiprocessors cannot be set aside: GPU 0 has 8");
  }
}

// ---- Blocks that find no room ----------------------------------------------------------------------------
TEST_F(OnVirtualGpus, RanksThatShareAGpuShareItsMultiprocessors) {
  expect_no_room<Form, Problem>(9, {9, 72, 8});
}

// On two ranks each block that runs can end, and then makes room for those that NCCL has kept out. On four,
// what it awaits has come round the ring.
TYPED_TEST(KernelsThatFillAGpu, WithoutRoomForNcclBothWaitForEver) {
  const auto nccl = [](Rank& rank) { return nccl_of(rank, 1); };
  expect_deadlock(
      [&] { run_in_company<TypeParam, Problem>(4, product_that_fills(4, 512), nccl); },
      {"ring_in_kernel::multiply_", "ncclAllReduce", "channels cannot start (no free multiprocessor)"});
}

TYPED_TEST(KernelsThatFillAGpu, TwoOfThemInOppositeOrderWaitForEver) {
  expect_two_wait_for_ever<TypeParam, Problem>("ring_in_kernel::multiply_");
}

TEST(SharedMemoryOfABlock, IsThatOfTheCostCard) {
  EXPECT_EQ((sizeof(SharedMemory<__half, tensor_core_gemm::Tile<128, 256, 4>, TmaStore>)), 230'400u);
}

}  // namespace
}  // namespace overlap::ring_in_kernel::virtual_gpus
