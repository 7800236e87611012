// Chapter 05 on virtual GPUs: right in any order of events, moving just the bytes of its cost cards, and
// faster than one stream just where the last wave is partial.
#include <gtest/gtest.h>

#include "04_copy_engine/copy_engine_ring.cuh"
#include "05_two_streams/experiments/openings.cuh"
#include "05_two_streams/experiments/split_waves.hpp"
#include "05_two_streams/pull_two_streams.cuh"
#include "05_two_streams/ring_two_streams.cuh"
#include "dense_virtual.hpp"
#include "overlap/bench/split_only.hpp"
#include "ownership.hpp"

namespace overlap::two_streams::virtual_gpus {
namespace {

using Ring = RingTwoStreams<__half>;
using Pull = PullTwoStreams<__half>;
using Opened = PullWithOpening<__half>;
using Problem = GatherProblem<__half>;
constexpr Opening kOpenings[] = {Opening::kBefore, Opening::kBeside, Opening::kCopyFirst, Opening::kAfter,
                                 Opening::kBarrierAfter};

TEST_F(OnVirtualGpus, BackToBackCallsAreRightInTwentySchedules) {
  for (const int ranks : {2, 3, 8}) {
    in_random_schedules(20, [ranks](std::uint64_t seed) {
      expect_right<Ring, Problem>(ranks, {19, 17, 11}, seed, 5);
      expect_right<Opened, Problem>(ranks, {19, 17, 11}, seed, 3, kOpenings[seed % 5]);
    });
  }
}

TEST_F(OnVirtualGpus, BothStreamsStartAfterTheCallersAndEndBeforeIt) {
  in_random_schedules(20, [](std::uint64_t seed) {
    run_ranks(4, [seed](Rank& rank) {
      expect_caller_owns_matrices_on<Ring, Problem>(rank, {19, 17, 11});
      expect_caller_owns_matrices_on<Opened, Problem>(rank, {19, 17, 11}, kOpenings[seed % 5]);
    });
  });
}

TEST_F(OnVirtualGpus, SameSeedSameSchedule) {
  expect_same_seed_same_schedule([] {
    expect_right<Ring, Problem>(4, {33, 40, 8}, 1, 2);
    expect_right<Pull, Problem>(4, {33, 40, 8}, 1, 2);
  });
}

TEST_F(OnVirtualGpus, MoveTheBytesOfTheirCostCards) {
  for (const MatmulShape shape : {MatmulShape{16, 32, 8}, MatmulShape{19, 37, 11}, MatmulShape{5, 3, 7}}) {
    for (const int ranks : {1, 2, 3, 8}) {
      SCOPED_TRACE(std::to_string(shape.m) + " rows on " + std::to_string(ranks) + " ranks");
      expect_one_neighbour(
          traffic_of_a_call<Ring, Problem>(ranks, shape), ranks, -1,
          [&](int rank) { return Ring::cost(shape, ranks, rank); }, shape.m >= ranks);
      const LinkTraffic pull = traffic_of_a_call<Pull, Problem>(ranks, shape);
      for (int rank = 0; rank < ranks; ++rank) {
        const Cost cost = Pull::cost(shape, ranks, rank);
        expect_bytes_of(cost, pull, rank);
        EXPECT_EQ(pull.out_of(rank).copies, cost.messages);
        EXPECT_EQ(pull.over(rank, rank).bytes, Pull::bytes_published(shape, ranks, rank));
      }
    }
  }
}

/// Modelled time of one call on four ranks.
template <typename Algorithm, typename... More>
double ms_of(MatmulShape shape, More... more) {
  vgpu::reset();
  return modelled_ms<Algorithm, Problem>(4, shape, more...);
}

// Tiles of 128 rows and 64 columns, 8 multiprocessors, 4 ranks.
constexpr MatmulShape kPartialWaves = {4 * 128, 4 * 640, 256};  // 10 tiles a part: 1.25 waves
constexpr MatmulShape kWholeWaves = {4 * 128, 4 * 512, 256};    // 8 tiles a part: a whole wave

TEST_F(OnVirtualGpus, TheSecondStreamFillsPartialWaves) {
  const double one = ms_of<copy_engine::CopyEngineRing<__half>>(kPartialWaves),
               two = ms_of<Ring>(kPartialWaves);
  EXPECT_LT(two, 0.7 * one);  // 5 waves instead of 8
}

TEST_F(OnVirtualGpus, WholeWavesLeaveTheSecondStreamNothing) {
  const double one = ms_of<copy_engine::CopyEngineRing<__half>>(kWholeWaves), two = ms_of<Ring>(kWholeWaves);
  EXPECT_GT(two, 0.9 * one);  // only launches are hidden
}

TEST_F(OnVirtualGpus, TheRingIsFasterThanThePull) {
  EXPECT_LT(ms_of<Ring>(kPartialWaves), ms_of<Pull>(kPartialWaves));
}

TEST_F(OnVirtualGpus, OpeningsAreAsGoodAsTheirNames) {
  const auto ms = [](Opening opening) { return ms_of<Opened>(kPartialWaves, opening); };
  const double before = ms(Opening::kBefore), beside = ms(Opening::kBeside);
  EXPECT_LT(beside, before);
  EXPECT_LE(beside, ms(Opening::kCopyFirst));
  EXPECT_LT(before, ms(Opening::kBarrierAfter));
  EXPECT_LE(ms(Opening::kBarrierAfter), ms(Opening::kAfter));
}

// The waves that the sweep prints against the modelled times of its GEMMs, in units of a GEMM of one tile.
TEST_F(OnVirtualGpus, PredictedWavesAreThoseOfTheModel) {
  constexpr std::int64_t kDepth = 1024;  // a wave takes fifty times as long as a launch
  struct Columns {
    std::int64_t m, n_of_rank;
  };
  // Tiles are 128 x 64: 65 rows fill half of a tile, 129 rows take two, and 576 columns are 9 tiles.
  for (const auto [m, n_of_rank] :
       {Columns{65, 512}, Columns{512, 640}, Columns{576, 512}, Columns{520, 576}, Columns{129, 1024},
        Columns{1032, 64}, Columns{40, 130}, Columns{9, 64}}) {
    for (const int ranks : {1, 2, 3, 4}) {
      SCOPED_TRACE(std::to_string(m) + " x " + std::to_string(n_of_rank) + " in " + std::to_string(ranks));
      vgpu::reset();
      run_ranks(ranks, [m = m, n_of_rank = n_of_rank](Rank& rank) {
        const MatmulShape whole{m, n_of_rank * rank.size(), kDepth};
        Problem problem(rank, whole, 1);
        int multiprocessors = 0;
        CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, rank.device()));
        const SplitWaves predicted =
            split_waves(problem.product(), rank.size(), backend::product_tile(), multiprocessors);
        SplitOnly<__half> one_stream(rank, whole, 1), two_streams(rank, whole, 2);
        const auto wave = [&](cudaStream_t stream) {
          matmul_row_major(rank.cublas(), stream, {1, 1, kDepth}, problem.whole_a(), problem.b(),
                           problem.c());
        };
        const auto parts_on = [&](SplitOnly<__half>& split) {
          return [&](cudaStream_t stream) { split.run(problem.whole_a(), problem.b(), problem.c(), stream); };
        };
        const auto ms = modelled_ms(rank, {wave, [&](cudaStream_t stream) { problem.gemm_only(stream); },
                                           parts_on(one_stream), parts_on(two_streams)});
        EXPECT_NEAR(ms[1] / ms[0], static_cast<double>(predicted.whole), 0.15);
        EXPECT_NEAR(ms[2] / ms[0], static_cast<double>(predicted.one_stream), 0.15);
        EXPECT_NEAR(ms[3] / ms[0], static_cast<double>(predicted.two_streams), 0.15);
      });
    }
  }
}

}  // namespace
}  // namespace overlap::two_streams::virtual_gpus
