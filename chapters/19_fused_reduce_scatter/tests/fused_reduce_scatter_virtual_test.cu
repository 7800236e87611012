// Chapter 19 on virtual GPUs: right in any order of events, bytes equal to the cost card, and refused if its
// blocks are not all resident.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "06_reduce_scatter/multiply_then_scatter.cuh"
#include "19_fused_reduce_scatter/experiments/reduce_add.cuh"
#include "19_fused_reduce_scatter/fused_reduce_scatter.cuh"
#include "abort_flag.hpp"
#include "block_run.hpp"
#include "dense_virtual.hpp"
#include "in_company.hpp"
#include "overlap/gpu/error.hpp"

namespace overlap::fused_reduce_scatter::virtual_gpus {
namespace {

using Problem = ScatterProblem<__half>;
using Small = tensor_core_gemm::Tile<64, 64, 2>;
template <typename Wire = SixteenBitWire>
using WithSmallTiles = FusedReduceScatter<__half, Wire, Small>;
template <typename Wire = SixteenBitWire>
using SmallAdd = ReduceAdd<__half, Wire, Small>;

/// Two algorithms in turns, with 3 rows, so that a rank may have none, and with 70.
template <typename Even, typename Odd>
void expect_right_in_turns(int calls) {
  for (const int ranks : {1, 2, 3, 4, 8}) {
    in_random_schedules(20, [&](std::uint64_t seed) {
      const MatmulShape shape = {seed % 3 == 0 ? 3 : 70, seed % 4 == 0 ? 72 : 8, 16 * ranks};
      if (seed % 2 == 0) {
        expect_right<Even, Problem>(ranks, shape, seed, calls);
      } else {
        expect_right<Odd, Problem>(ranks, shape, seed, calls);
      }
    });
  }
}

TEST_F(OnVirtualGpus, AreRightInTwentySchedules) {
  expect_right_in_turns<WithSmallTiles<>, WithSmallTiles<F32Wire>>(3);
}

TEST_F(OnVirtualGpus, SumsAddedUpAreRightInTwentySchedules) {
  expect_right_in_turns<SmallAdd<>, SmallAdd<F32Wire>>(4);
}

TEST_F(OnVirtualGpus, TheAbortFlagAloneEndsACallsWaits) {
  expect_the_abort_flag_ends_waits<WithSmallTiles<>, Problem>(3, {130, 72, 48});
  expect_the_abort_flag_ends_waits<SmallAdd<>, Problem>(3, {130, 72, 48});
}

/// The bits of all of C on random normals, computed by four ranks in the schedule of this seed.
template <typename Algorithm>
std::vector<std::uint16_t> bits_in_schedule(std::uint64_t seed) {
  vgpu::reset();
  vgpu::use_schedule(seed);
  const MatmulShape whole{64, 72, 64};
  std::vector<std::uint16_t> bits(static_cast<std::size_t>(whole.m * whole.n));
  run_ranks(4, [&](Rank& rank) {
    Problem problem(rank, whole, 5);
    Algorithm algorithm(rank, whole);
    problem.fill_normal();
    rank.barrier();
    algorithm.run(problem.a(), problem.b(), problem.c(), rank.stream());
    rank.synchronize(rank.stream());
    const Range rows = balanced_share(whole.m, rank.size(), rank.id());
    CUDA_CHECK(cudaMemcpy(bits.data() + rows.begin * whole.n, problem.c(),
                          static_cast<std::size_t>(rows.size() * whole.n) * 2, cudaMemcpyDeviceToHost));
    rank.barrier();
  });
  return bits;
}

template <typename Algorithm>
std::size_t different_results() {
  std::set<std::vector<std::uint16_t>> results;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto bits = bits_in_schedule<Algorithm>(seed);
    if (seed % 5 == 0) {
      EXPECT_EQ(bits, bits_in_schedule<Algorithm>(seed)) << "schedule " << seed << " again";
    }
    results.insert(bits);
  }
  return results.size();
}

TEST_F(OnVirtualGpus, OnlySumsInSlotsHaveTheSameBitsInEachOrderOfArrival) {
  EXPECT_EQ(different_results<WithSmallTiles<>>(), 1U);
  EXPECT_GT(different_results<SmallAdd<>>(), 1U);
}

TEST_F(OnVirtualGpus, BlocksAreRightInTwentySchedulesBackToBack) {
  for (const int ranks : {2, 3, 8}) {
    in_random_schedules(20, [ranks](std::uint64_t seed) {
      expect_right_block<SmallBlock<__half>>(ranks, {seed % 2 == 0 ? 3 : 70, 8 * ranks, 72}, seed, 2);
    });
  }
}

TEST_F(OnVirtualGpus, BlocksOfRanksMayShareAGpu) {
  vgpu::use_gpus(1);
  expect_right_block<SmallBlock<__half>>(5, {70, 80, 72}, 1, 3);
}

TEST_F(OnVirtualGpus, SameSeedSameSchedule) {
  expect_same_seed_same_schedule([] { expect_right<WithSmallTiles<>, Problem>(3, {90, 72, 48}); });
}

TEST_F(OnVirtualGpus, RanksMayShareAGpuUntilThereIsNoRoomForABlockOfEach) {
  vgpu::use_gpus(1);
  expect_right<WithSmallTiles<>, Problem>(5, {150, 136, 40}, 1, 3);
  vgpu::reset();
  vgpu::use_gpus(1);
  expect_no_room<FusedReduceScatter<__half>, Problem>(16, {150, 136, 128});
}

TEST_F(OnVirtualGpus, TwoInOppositeOrderWaitForEver) {
  expect_two_wait_for_ever<FusedReduceScatter<__half>, Problem>("scatter_tiles");
}

TEST_F(OnVirtualGpus, SumsAddedUpWantNativeAtomics) {
  vgpu::use_machine("h100-pcie");
  expect_skipped<SmallAdd<>, Problem>(2, {150, 136, 32}, "cudaDevP2PAttrNativeAtomicSupported is 0");
  vgpu::reset();
  vgpu::use_machine("h100-pcie");
  expect_right<WithSmallTiles<>, Problem>(2, {150, 136, 32});
}

TEST_F(OnVirtualGpus, MoreRanksThanTheKernelsParametersHaveRoomForAreRefused) {
  const MatmulShape whole{17, 8, 8 * 17};
  vgpu::use_gpus(kMaxRanks + 1);
  expect_thrown<UsageError>(
      [&] {
        run_ranks(kMaxRanks + 1, [&](Rank& rank) { FusedReduceScatter<__half> algorithm(rank, whole); });
      },
      "have room for 16 ranks, and there are 17");
  EXPECT_THROW(FusedReduceScatter<__half>::cost(whole, kMaxRanks + 1, 0), UsageError);
}

template <typename Algorithm, typename Data = Problem>
void expect_bytes_of_the_cost_card(int ranks, MatmulShape whole) {
  SCOPED_TRACE(std::to_string(ranks) + " ranks");
  const LinkTraffic moved = traffic_of_a_call<Algorithm, Data>(ranks, whole);
  for (int rank = 0; rank < ranks; ++rank) expect_bytes_of(Algorithm::cost(whole, ranks, rank), moved, rank);
}

TEST_F(OnVirtualGpus, MoveTheBytesOfTheCostCard) {
  for (const int ranks : {1, 2, 3, 8}) {
    for (const MatmulShape shape : {MatmulShape{150, 136, 8 * ranks}, MatmulShape{3, 8, 16 * ranks}}) {
      expect_bytes_of_the_cost_card<WithSmallTiles<>>(ranks, shape);
      expect_bytes_of_the_cost_card<WithSmallTiles<F32Wire>>(ranks, shape);
      expect_bytes_of_the_cost_card<FusedReduceScatter<__half>>(ranks, shape);
      expect_bytes_of_the_cost_card<SmallAdd<>>(ranks, shape);
      expect_bytes_of_the_cost_card<SmallAdd<F32Wire>>(ranks, shape);
    }
    for (const MatmulShape shape : {MatmulShape{150, 8 * ranks, 136}, MatmulShape{3, 16 * ranks, 8}})
      expect_bytes_of_the_cost_card<SmallBlock<__half>, MlpProblem<__half>>(ranks, shape);
  }
}

/// Modelled time of one call on four ranks, ms.
template <typename Algorithm>
double time_of(MatmulShape whole) {
  vgpu::reset();
  return modelled_ms<Algorithm, Problem>(4, whole);
}

TEST_F(OnVirtualGpus, OneKernelIsFasterThanNcclBehindAProductInTheModel) {
  const MatmulShape shape{512, 512, 512};
  const double fused = time_of<FusedReduceScatter<__half>>(shape);
  const double nccl = time_of<reduce_scatter::MultiplyThenScatter<__half>>(shape);
  EXPECT_LT(1.2 * fused, nccl);
}

}  // namespace
}  // namespace overlap::fused_reduce_scatter::virtual_gpus
