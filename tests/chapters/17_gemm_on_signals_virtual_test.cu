// Chapter 17 on virtual GPUs: right in any order of events, moving just the bytes of its cost card, hiding
// the transfers, and refused where its blocks find no room.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "02_gather_then_multiply/gather_then_multiply.cuh"
#include "16_tensor_core_gemm/fitting.cuh"
#include "17_gemm_on_signals/gemm_on_signals.cuh"
#include "dense_run.hpp"
#include "on_virtual_gpus.hpp"
#include "overlap/bench/timing.hpp"
#include "ownership.hpp"

namespace overlap::gemm_on_signals::virtual_gpus {
namespace {

using tensor_core_gemm::Tile;
using Gemm = GemmOnSignals<__half, Major::kMN, Tile<64, 64, 2>>;
using Fitted = tensor_core_gemm::Fitting<GemmOnSignals<__half>>;
using Problem = GatherProblem<__half>;

TEST_F(OnVirtualGpus, CallsAtOnceAreRightInTwentySchedules) {
  for (std::uint64_t seed = 1; seed <= schedules(); ++seed) {
    SCOPED_TRACE("schedule " + std::to_string(seed));
    const int ranks[] = {2, 3, 4, 8};
    const int number = ranks[seed % 4];
    vgpu::reset();
    vgpu::use_schedule(seed);
    expect_right<Gemm, Problem>(number, {150, 8 * number, 72}, seed, 4, static_cast<int>(seed % 3) + 1);
  }
}

TEST_F(OnVirtualGpus, TheCallerOwnsItsMatricesInManySchedules) {
  for (std::uint64_t seed = 1; seed <= schedules() / 2; ++seed) {
    SCOPED_TRACE("schedule " + std::to_string(seed));
    vgpu::reset();
    vgpu::use_schedule(seed);
    run_ranks(3, [](Rank& rank) { expect_caller_owns_matrices_on<Gemm, Problem>(rank, {100, 24, 72}); });
  }
}

TEST_F(OnVirtualGpus, SameSeedSameSchedule) {
  expect_same_seed_same_schedule([] { expect_right<Gemm, Problem>(3, {100, 24, 8}, 1, 2); });
}

/// What went from each rank's GPU to each other's in one call.
std::vector<std::vector<vgpu::Traffic>> traffic_of_a_call(int ranks, MatmulShape shape, int pieces) {
  std::vector<std::vector<vgpu::Traffic>> moved(static_cast<std::size_t>(ranks));
  const auto now = [&](Rank& rank) {
    std::vector<vgpu::Traffic> out;
    for (int other = 0; other < ranks; ++other) out.push_back(vgpu::traffic(rank.id(), other));
    return out;
  };
  vgpu::reset();
  run_ranks(ranks, [&](Rank& rank) {
    Problem problem(rank, shape, 1);
    Gemm algorithm(rank, shape, pieces);
    problem.fill_exact();
    rank.barrier();
    const auto before = now(rank);
    rank.barrier();
    algorithm.run(problem.a(), problem.b(), problem.c(), rank.stream());
    rank.synchronize(rank.stream());
    rank.barrier();
    auto& own = moved[static_cast<std::size_t>(rank.id())] = now(rank);
    for (std::size_t i = 0; i < own.size(); ++i) {
      own[i].bytes -= before[i].bytes;
      own[i].copies -= before[i].copies;
    }
  });
  return moved;
}

TEST_F(OnVirtualGpus, MovesTheBytesOfItsCostCard) {
  for (const std::int64_t rows : {1, 3, 150, 256, 401}) {
    for (const int ranks : {1, 2, 3, 8}) {
      for (const int pieces : {1, 3}) {
        SCOPED_TRACE(std::to_string(rows) + " rows on " + std::to_string(ranks) + " ranks in " +
                     std::to_string(pieces) + " pieces");
        const MatmulShape shape{rows, 8 * ranks, 16};
        const auto moved = traffic_of_a_call(ranks, shape, pieces);
        for (int rank = 0; rank < ranks; ++rank) {
          std::uint64_t in = 0, out = 0, copies = 0;
          for (int other = 0; other < ranks; ++other) {
            if (other == rank) continue;
            in += moved[other][rank].bytes;
            out += moved[rank][other].bytes;
            copies += moved[rank][other].copies;
          }
          const Cost cost = Gemm::cost(shape, ranks, rank, pieces);
          EXPECT_EQ(in, static_cast<std::uint64_t>(cost.bytes_in));
          EXPECT_EQ(out, static_cast<std::uint64_t>(cost.bytes_out));
          if (cost.bytes_out > 0) {  // else its messages are signals alone
            EXPECT_EQ(copies, static_cast<std::uint64_t>(cost.messages));
          }
          EXPECT_EQ(moved[rank][rank].bytes,
                    static_cast<std::uint64_t>(Gemm::bytes_of_edges(shape, ranks, rank)));
        }
      }
    }
  }
}

/// Modelled time of one call on two ranks, ms.
template <typename Algorithm>
double time_of(MatmulShape shape) {
  vgpu::reset();
  double ms = 0;
  run_ranks(2, [&](Rank& rank) {
    Problem problem(rank, shape, 1);
    problem.fill_exact();
    Algorithm algorithm(rank, shape);
    const auto call = [&](cudaStream_t stream) {
      algorithm.run(problem.a(), problem.b(), problem.c(), stream);
    };
    const double found = time_variants(rank, {{"call", call}}, 1, 1).front().device_ms.median;
    if (rank.id() == 0) ms = found;
  });
  return ms;
}

// Each shard gives 8 tiles of 128 x 256, one for each multiprocessor.
constexpr MatmulShape kWholeWaves{2 * 256, 2 * 1024, 128};

TEST_F(OnVirtualGpus, TransfersAreHidden) {
  const double fused = time_of<GemmOnSignals<__half>>(kWholeWaves);
  vgpu::reset();
  double alone = 0;
  run_ranks(1, [&](Rank& rank) {
    const MatmulShape share{kWholeWaves.m, kWholeWaves.n / 2, kWholeWaves.k};
    Problem problem(rank, share, 1);
    problem.fill_exact();
    tensor_core_gemm::TensorCoreGemm<__half, tensor_core_gemm::StoredByTma<>> gemm(rank, share);
    const auto call = [&](cudaStream_t stream) { gemm.run(problem.a(), problem.b(), problem.c(), stream); };
    alone = time_variants(rank, {{"call", call}}, 1, 1).front().device_ms.median;
  });
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
  for (std::uint64_t seed = 1; seed <= schedules(); ++seed) {
    SCOPED_TRACE("schedule " + std::to_string(seed));
    const int ranks[] = {2, 3, 4, 8};
    const int number = ranks[seed % 4];
    vgpu::reset();
    vgpu::use_schedule(seed);
    expect_right<Fitted, Problem>(number, {20 * number + 1, 8 * number, 72}, seed, 3,
                                  static_cast<int>(seed % 3) + 1);
  }
}

TEST_F(OnVirtualGpus, RanksMayShareAGpu) {
  vgpu::use_gpus(1);
  expect_right<Gemm, Problem>(3, {150, 24 * 8, 72}, 1, 3);
  expect_right<Fitted, Problem>(3, {150, 24 * 8, 72}, 1, 3);
}

template <typename Algorithm>
void expect_no_room() {
  vgpu::reset();
  vgpu::use_gpus(1);  // of 8 multiprocessors, each with room for one such block
  try {
    run_ranks(9, [](Rank& rank) { Algorithm algorithm(rank, {150, 72, 72}); });
    FAIL() << "not refused";
  } catch (const Skip& skip) {
    EXPECT_NE(std::string(skip.what()).find("waits in 1 blocks at the same time, and GPU 0 has room for 0"),
              std::string::npos)
        << skip.what();
  }
}

TEST_F(OnVirtualGpus, RanksWithoutRoomAreRefused) {
  expect_no_room<GemmOnSignals<__half>>();
  expect_no_room<GemmOnSignals<__half, Major::kMN, tensor_core_gemm::MiddleTile>>();
  expect_no_room<GemmOnSignals<__half, Major::kMN, tensor_core_gemm::SmallTile>>();
  expect_no_room<Fitted>();
}

}  // namespace
}  // namespace overlap::gemm_on_signals::virtual_gpus
