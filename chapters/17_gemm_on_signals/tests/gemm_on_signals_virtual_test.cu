// Chapter 17 on virtual GPUs: right in any order of events, bytes equal to the cost card, transfers hidden,
// and refused if its blocks are not all resident.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "02_gather_then_multiply/gather_then_multiply.cuh"
#include "16_tensor_core_gemm/fitting.cuh"
#include "17_gemm_on_signals/gemm_on_signals.cuh"
#include "abort_flag.hpp"
#include "dense_virtual.hpp"
#include "late_rank.hpp"
#include "overlap/gpu/host_copy.hpp"
#include "ownership.hpp"

namespace overlap::gemm_on_signals::virtual_gpus {
namespace {

using tensor_core_gemm::Tile;
using Gemm = GemmOnSignals<__half, Major::kMN, Tile<64, 64, 2>>;
using Fitted = tensor_core_gemm::Fitting<GemmOnSignals<__half>>;
using Problem = GatherProblem<__half>;

TEST_F(OnVirtualGpus, CallsAtOnceAreRightInTwentySchedules) {
  in_random_schedules(20, [](std::uint64_t seed) {
    const int ranks = std::array{2, 3, 4, 8}[seed % 4], pieces = static_cast<int>(seed % 3) + 1;
    expect_right<Gemm, Problem>(ranks, {150, 8 * ranks, 264}, seed, 4, pieces);
  });
}

TEST_F(OnVirtualGpus, TheCallerOwnsItsMatricesInManySchedules) {
  in_random_schedules(10, [](std::uint64_t) {
    run_ranks(3, [](Rank& rank) { expect_caller_owns_matrices_on<Gemm, Problem>(rank, {100, 24, 72}); });
  });
}

TEST_F(OnVirtualGpus, SameSeedSameSchedule) {
  expect_same_seed_same_schedule([] { expect_right<Gemm, Problem>(3, {100, 24, 8}, 1, 2); });
}

__global__ void await_alone(Arrivals arrivals) { arrivals.await(0); }

/// A kernel that waits for the signal of call `epoch` returns if the word has the value `word`, or if the run
/// is stopped.
void expect_no_wait(std::uint32_t word, std::uint32_t epoch, bool stopped = false) {
  const auto words = on_device(0, std::vector{word}), stop = on_device(0, std::vector{stopped ? 1U : 0U});
  await_alone<<<1, 1>>>({{}, 0, words.data(), epoch, stop.data()});
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess) << "the word is " << word << ", epoch " << epoch;
}

// After 2^32 calls the words overflow.
TEST_F(OnVirtualGpus, ASignalOfACallAheadIsSeenWhereWordsOverflow) {
  for (const std::uint32_t epoch : {1U, 0x7FFFFFFFU, 0x80000000U, 0xFFFFFFFFU}) {
    expect_no_wait(epoch, epoch);
    expect_no_wait(epoch + 1, epoch);
  }
}

__global__ void await_and_look(Arrivals arrivals, const volatile int* came, int* found) {
  arrivals.await(0);
  *found = *came;
}

/// A word that has an earlier value is raised late: behind the wait there is what came before it was raised.
void expect_wait(std::uint32_t word, std::uint32_t epoch) {
  const auto words = on_device(0, std::vector{word}), stop = on_device(0, std::vector{0U});
  const std::vector<int> zero = {0};
  const auto sink = on_device(0, zero), came = on_device(0, zero), found = on_device(0, zero);
  CUDA_CHECK(cudaDeviceSynchronize());
  const Stream waiting(0), raising(0);
  await_and_look<<<1, 1, 0, waiting>>>({{}, 0, words.data(), epoch, stop.data()}, came.data(), found.data());
  come_late<<<1, 1, 0, raising>>>(came.data(), sink.data(), 1 << 12);
  CUDA_CHECK(cudaMemcpyAsync(words.data(), &epoch, sizeof epoch, cudaMemcpyHostToDevice, raising));
  CUDA_CHECK(cudaDeviceSynchronize());
  EXPECT_EQ(on_host(found.data(), 1), std::vector<int>{1}) << "the word was " << word << ", epoch " << epoch;
}

TEST_F(OnVirtualGpus, ASignalOfAnEarlierCallIsAwaitedWhereWordsOverflow) {
  for (const std::uint32_t epoch : {1U, 0U, 0x7FFFFFFFU, 0x80000000U, 0x80000001U, 0xFFFFFFFFU}) {
    expect_wait(epoch - 1, epoch);
    expect_wait(epoch - 2, epoch);
  }
}

TEST_F(OnVirtualGpus, AStopEndsTheWait) { expect_no_wait(0, 1, true); }

TEST_F(OnVirtualGpus, TheAbortFlagAloneEndsACallsWaits) {
  expect_the_abort_flag_ends_waits<Gemm, Problem>(3, {130, 48, 72}, 2);
}

TEST_F(OnVirtualGpus, MovesTheBytesOfItsCostCard) {
  for (const std::int64_t rows : {1, 3, 150, 256, 401}) {
    for (const int ranks : {1, 2, 3, 8}) {
      for (const int pieces : {1, 3}) {
        SCOPED_TRACE(std::to_string(rows) + " rows on " + std::to_string(ranks) + " ranks in " +
                     std::to_string(pieces) + " pieces");
        const MatmulShape shape{rows, 8 * ranks, 136};
        const LinkTraffic moved = traffic_of_a_call<Gemm, Problem>(ranks, shape, pieces);
        for (int rank = 0; rank < ranks; ++rank) {
          const Cost cost = Gemm::cost(shape, ranks, rank, pieces);
          expect_bytes_of(cost, moved, rank);
          if (cost.bytes_out > 0) {  // else its messages are signals alone
            EXPECT_EQ(moved.out_of(rank).copies, cost.messages);
          }
          EXPECT_EQ(moved.over(rank, rank).bytes, Gemm::bytes_of_edges(shape, ranks, rank));
        }
      }
    }
  }
}

// The ranks that wait for a late rank have already pushed their shards, so only the late rank's last pieces
// are in transfer when they could end too early.
TEST_F(OnVirtualGpus, TransfersAloneEndBehindTheLastPieceOfALateRank) {
  constexpr int kPieces = 3;
  const MatmulShape shape{3 * 256, 24, 136};
  for (int late_rank = 0; late_rank < 3; ++late_rank) {
    vgpu::reset();
    run_ranks(3, [&](Rank& rank) {
      Problem problem(rank, shape, 1);
      problem.fill_exact();
      Gemm algorithm(rank, shape, kPieces);
      LateWork late(rank);
      rank.barrier();
      const LinkTraffic before(rank.size());
      rank.barrier();
      if (rank.id() == late_rank) late.start(rank.stream());
      algorithm.gather(problem.a(), rank.stream());
      rank.synchronize(rank.stream());
      const LinkTraffic moved = LinkTraffic(rank.size()).since(before);
      EXPECT_EQ(moved.into(rank.id()).bytes, Gemm::cost(shape, 3, rank.id(), kPieces).bytes_in)
          << "rank " << rank.id() << ", late rank " << late_rank;
      rank.barrier();
    });
  }
}

/// Modelled time of one call on two ranks, ms.
template <typename Algorithm>
double time_of(MatmulShape shape) {
  vgpu::reset();
  return modelled_ms<Algorithm, Problem>(2, shape);
}

// Each shard gives 8 tiles of 128 x 256, one for each multiprocessor.
constexpr MatmulShape kWholeWaves{2 * 256, 2 * 1024, 128};

TEST_F(OnVirtualGpus, TransfersAreHidden) {
  const double fused = time_of<GemmOnSignals<__half>>(kWholeWaves);
  vgpu::reset();
  using Product = tensor_core_gemm::TensorCoreGemm<__half, tensor_core_gemm::StoredByTma<>>;
  const double alone = modelled_ms<Product, Problem>(1, {kWholeWaves.m, kWholeWaves.n / 2, kWholeWaves.k});
  EXPECT_LT(fused, 1.15 * alone);
  EXPECT_LT(fused, 0.95 * time_of<gather_then_multiply::GatherThenMultiply<__half>>(kWholeWaves));
}

// A shard of 64 rows and 1,024 columns: 8 small tiles, one for each multiprocessor, or 4 large ones.
constexpr MatmulShape kFewRows{2 * 64, 2 * 1024, 128};

TEST_F(OnVirtualGpus, FewRowsTakeLessTimeWithTheTileThatFits) {
  using Small = GemmOnSignals<__half, Major::kMN, tensor_core_gemm::SmallTile>;
  const double fitted = time_of<Fitted>(kFewRows);
  EXPECT_EQ(fitted, time_of<Small>(kFewRows));
  EXPECT_LT(fitted, 0.6 * time_of<GemmOnSignals<__half>>(kFewRows));
}

TEST_F(OnVirtualGpus, ManyRowsTakeLargeTiles) {
  constexpr MatmulShape kOneWave{2 * 128, 2 * 2048, 64};  // a shard has 8 large tiles
  EXPECT_EQ(time_of<Fitted>(kOneWave), time_of<GemmOnSignals<__half>>(kOneWave));
}

TEST_F(OnVirtualGpus, FewRowsAreRightInTwentySchedules) {
  in_random_schedules(20, [](std::uint64_t seed) {
    const int ranks = std::array{2, 3, 4, 8}[seed % 4], pieces = static_cast<int>(seed % 3) + 1;
    expect_right<Fitted, Problem>(ranks, {20 * ranks + 1, 8 * ranks, 264}, seed, 3, pieces);
  });
}

TEST_F(OnVirtualGpus, RanksMayShareAGpu) {
  vgpu::use_gpus(1);
  expect_right<Gemm, Problem>(3, {150, 24 * 8, 72}, 1, 3);
  expect_right<Fitted, Problem>(3, {150, 24 * 8, 72}, 1, 3);
}

template <typename Algorithm>
void expect_no_room_for_nine() {
  vgpu::reset();
  vgpu::use_gpus(1);  // of 8 multiprocessors, each with room for one such block
  expect_no_room<Algorithm, Problem>(9, {150, 72, 72});
}

TEST_F(OnVirtualGpus, RanksWithoutRoomAreRefused) {
  expect_no_room_for_nine<GemmOnSignals<__half>>();
  expect_no_room_for_nine<GemmOnSignals<__half, Major::kMN, tensor_core_gemm::MiddleTile>>();
  expect_no_room_for_nine<GemmOnSignals<__half, Major::kMN, tensor_core_gemm::SmallTile>>();
  expect_no_room_for_nine<Fitted>();
}

}  // namespace
}  // namespace overlap::gemm_on_signals::virtual_gpus
