// Chapter 05 on virtual GPUs: right in any order of events, moving just the bytes of its cost cards, and
// faster than one stream just where the last wave is partial.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "04_copy_engine/copy_engine_ring.cuh"
#include "05_two_streams/experiments/openings.cuh"
#include "05_two_streams/experiments/split_waves.hpp"
#include "05_two_streams/pull_two_streams.cuh"
#include "05_two_streams/ring_two_streams.cuh"
#include "dense_run.hpp"
#include "on_virtual_gpus.hpp"
#include "overlap/bench/gate.hpp"
#include "overlap/bench/split_only.hpp"

namespace overlap::two_streams::virtual_gpus {
namespace {

using Ring = RingTwoStreams<__half>;
using Pull = PullTwoStreams<__half>;
using Opened = PullWithOpening<__half>;
using Problem = GatherProblem<__half>;
constexpr Opening kOpenings[] = {Opening::kBefore, Opening::kBeside, Opening::kCopyFirst, Opening::kAfter,
                                 Opening::kBarrierAfter};

TEST_F(OnVirtualGpus, BackToBackCallsAreRightInTwentySchedules) {
  for (std::uint64_t seed = 1; seed <= schedules(); ++seed) {
    for (const int ranks : {2, 3, 8}) {
      SCOPED_TRACE("schedule " + std::to_string(seed));
      vgpu::reset();
      vgpu::use_schedule(seed);
      expect_right<Ring, Problem>(ranks, {19, 17, 11}, seed, 5);
      expect_right<Opened, Problem>(ranks, {19, 17, 11}, seed, 3, kOpenings[seed % 5]);
    }
  }
}

/// A and B are made by `stream`, right before the call: both streams, and the transfers, have to wait for it.
template <typename Algorithm, typename... More>
void expect_to_start_after_the_stream(More... more) {
  run_ranks(4, [&](Rank& rank) {
    const MatmulShape shape{19, 17, 11};
    Problem problem(rank, shape, 1);
    Algorithm algorithm(rank, shape, more...);
    problem.fill_exact();
    problem.poison_result();
    const auto rows = balanced_share(shape.m, 4, rank.id()).size(),
               columns = balanced_share(shape.n, 4, rank.id()).size();
    const DeviceBuffer<__half> a(rank.device(), rows * shape.k), b(rank.device(), shape.k * columns);
    const cudaStream_t stream = rank.stream();
    for (const DeviceBuffer<__half>* of : {&a, &b})
      CUDA_CHECK(cudaMemsetAsync(of->data(), 0xFF, of->bytes(), stream));
    rank.synchronize(stream);
    rank.barrier();
    CUDA_CHECK(cudaMemcpyAsync(a.data(), problem.a(), a.bytes(), cudaMemcpyDefault, stream));
    CUDA_CHECK(cudaMemcpyAsync(b.data(), problem.b(), b.bytes(), cudaMemcpyDefault, stream));
    algorithm.run(a.data(), b.data(), problem.c(), stream);
    // The next one to use them may be there at once, too: A and B are nobody's any more.
    CUDA_CHECK(cudaMemsetAsync(a.data(), 0xFF, a.bytes(), stream));
    CUDA_CHECK(cudaMemsetAsync(b.data(), 0xFF, b.bytes(), stream));
    rank.synchronize(stream);
    const Verification found = problem.compare_exact(false);
    EXPECT_TRUE(found.ok()) << describe(found);
  });
}

TEST_F(OnVirtualGpus, BothStreamsStartAfterTheCallersAndEndBeforeIt) {
  for (std::uint64_t seed = 1; seed <= schedules(); ++seed) {
    SCOPED_TRACE("schedule " + std::to_string(seed));
    vgpu::reset();
    vgpu::use_schedule(seed);
    expect_to_start_after_the_stream<Ring>();
    expect_to_start_after_the_stream<Opened>(kOpenings[seed % 5]);
  }
}

TEST_F(OnVirtualGpus, SameSeedSameSchedule) {
  expect_same_seed_same_schedule([] {
    expect_right<Ring, Problem>(4, {33, 40, 8}, 1, 2);
    expect_right<Pull, Problem>(4, {33, 40, 8}, 1, 2);
  });
}

/// What went from one rank's GPU to another's in one call of the algorithm.
template <typename Algorithm>
std::vector<std::vector<vgpu::Traffic>> traffic_of_a_call(int ranks, MatmulShape shape) {
  std::vector<std::vector<vgpu::Traffic>> moved(static_cast<std::size_t>(ranks));
  const auto now = [&](Rank& rank) {
    std::vector<vgpu::Traffic> out;
    for (int other = 0; other < ranks; ++other) out.push_back(vgpu::traffic(rank.id(), other));
    return out;
  };
  vgpu::reset();
  run_ranks(ranks, [&](Rank& rank) {
    Problem problem(rank, shape, 1);
    Algorithm algorithm(rank, shape);
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

TEST_F(OnVirtualGpus, MoveTheBytesOfTheirCostCards) {
  for (const MatmulShape shape : {MatmulShape{16, 32, 8}, MatmulShape{19, 37, 11}, MatmulShape{5, 3, 7}}) {
    for (const int ranks : {1, 2, 3, 8}) {
      SCOPED_TRACE(std::to_string(shape.m) + " rows on " + std::to_string(ranks) + " ranks");
      const auto ring = traffic_of_a_call<Ring>(ranks, shape), pull = traffic_of_a_call<Pull>(ranks, shape);
      for (int rank = 0; rank < ranks; ++rank) {
        std::uint64_t ring_in = 0, ring_out = 0, pull_in = 0, pull_out = 0, pulls = 0;
        for (int other = 0; other < ranks; ++other) {
          if (other == rank) continue;
          ring_out += ring[rank][other].bytes;
          ring_in += ring[other][rank].bytes;
          if (other != (rank + ranks - 1) % ranks) {
            EXPECT_EQ(ring[rank][other].bytes, 0u) << "only to the left";
          }
          pull_in += pull[other][rank].bytes;
          pull_out += pull[rank][other].bytes;
          pulls += pull[rank][other].copies;
        }
        const Cost of_ring = Ring::cost(shape, ranks, rank);
        EXPECT_EQ(ring_in, static_cast<std::uint64_t>(of_ring.bytes_in));
        EXPECT_EQ(ring_out, static_cast<std::uint64_t>(of_ring.bytes_out));
        const Cost of_pull = Pull::cost(shape, ranks, rank);
        EXPECT_EQ(pull_in, static_cast<std::uint64_t>(of_pull.bytes_in));
        EXPECT_EQ(pull_out, static_cast<std::uint64_t>(of_pull.bytes_out));
        EXPECT_EQ(pulls, static_cast<std::uint64_t>(of_pull.messages));
        EXPECT_EQ(pull[rank][rank].bytes,
                  static_cast<std::uint64_t>(Pull::bytes_published(shape, ranks, rank)));
      }
    }
  }
}

/// Modelled time of one call on four ranks, on the slowest, from the gate that starts all of them.
template <typename Algorithm, typename... More>
float modelled_ms(MatmulShape shape, More... more) {
  std::vector<float> ms(4);
  vgpu::reset();
  run_ranks(4, [&](Rank& rank) {
    Problem problem(rank, shape, 1);
    Algorithm algorithm(rank, shape, more...);
    problem.fill_normal();
    Gate gate(rank);
    const Event start(rank.device()), stop(rank.device());
    gate.close(rank.stream());
    CUDA_CHECK(cudaEventRecord(start, rank.stream()));
    algorithm.run(problem.a(), problem.b(), problem.c(), rank.stream());
    CUDA_CHECK(cudaEventRecord(stop, rank.stream()));
    gate.open();
    rank.synchronize(rank.stream());
    CUDA_CHECK(cudaEventElapsedTime(&ms[static_cast<std::size_t>(rank.id())], start, stop));
  });
  return *std::max_element(ms.begin(), ms.end());
}

// Tiles of 128 rows and 64 columns, 8 multiprocessors, 4 ranks.
constexpr MatmulShape kPartialWaves = {4 * 128, 4 * 640, 256};  // 10 tiles each: a wave, and a quarter of one
constexpr MatmulShape kWholeWaves = {4 * 128, 4 * 512, 256};    // 8 tiles each: a whole wave

TEST_F(OnVirtualGpus, TheSecondStreamFillsPartialWaves) {
  const float one = modelled_ms<copy_engine::CopyEngineRing<__half>>(kPartialWaves),
              two = modelled_ms<Ring>(kPartialWaves);
  EXPECT_LT(two, 0.7f * one);  // 5 waves instead of 8
}

TEST_F(OnVirtualGpus, WholeWavesLeaveTheSecondStreamNothing) {
  const float one = modelled_ms<copy_engine::CopyEngineRing<__half>>(kWholeWaves),
              two = modelled_ms<Ring>(kWholeWaves);
  EXPECT_GT(two, 0.9f * one);  // only launches are hidden
}

TEST_F(OnVirtualGpus, TheRingIsFasterThanThePull) {
  EXPECT_LT(modelled_ms<Ring>(kPartialWaves), modelled_ms<Pull>(kPartialWaves));
}

TEST_F(OnVirtualGpus, OpeningsAreAsGoodAsTheirNames) {
  const auto ms = [](Opening opening) { return modelled_ms<Opened>(kPartialWaves, opening); };
  const float before = ms(Opening::kBefore), beside = ms(Opening::kBeside);
  EXPECT_LT(beside, before);
  EXPECT_LE(beside, ms(Opening::kCopyFirst));
  EXPECT_LT(before, ms(Opening::kBarrierAfter));
  EXPECT_LE(ms(Opening::kBarrierAfter), ms(Opening::kAfter));
}

/// Modelled time of what `enqueue` puts into the rank's stream, from a gate: the host's time does not count.
template <typename Enqueue>
double gated_ms(Rank& rank, const Enqueue& enqueue) {
  Gate gate(rank);
  const Event start(rank.device()), stop(rank.device());
  gate.close(rank.stream());
  CUDA_CHECK(cudaEventRecord(start, rank.stream()));
  enqueue(rank.stream());
  CUDA_CHECK(cudaEventRecord(stop, rank.stream()));
  gate.open();
  rank.synchronize(rank.stream());
  float ms = 0;
  CUDA_CHECK(cudaEventElapsedTime(&ms, start, stop));
  return ms;
}

// What the sweep prints, against what its products take, in units of a product of one tile.
TEST_F(OnVirtualGpus, PredictedWavesAreThoseOfTheModel) {
  constexpr std::int64_t kDepth = 1024;  // a wave takes fifty times as long as a launch
  struct Columns {
    std::int64_t m, n_of_rank;
  };
  // Tiles have two rows for a column: 65 rows fill half of one, 129 take two, and 576 columns are 9 tiles.
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
        const double wave = gated_ms(rank, [&](cudaStream_t stream) {
          matmul_row_major(rank.cublas(), stream, {1, 1, kDepth}, problem.whole_a(), problem.b(),
                           problem.c());
        });
        const double one = gated_ms(rank, [&](cudaStream_t stream) { problem.gemm_only(stream); });
        EXPECT_NEAR(one / wave, static_cast<double>(predicted.whole), 0.15);
        for (const int streams : {1, 2}) {
          SplitOnly<__half> split(rank, whole, streams);
          const double parts = gated_ms(rank, [&](cudaStream_t stream) {
            split.run(problem.whole_a(), problem.b(), problem.c(), stream);
          });
          const std::int64_t waves = streams == 1 ? predicted.one_stream : predicted.two_streams;
          EXPECT_NEAR(parts / wave, static_cast<double>(waves), 0.15) << streams << " streams";
        }
      });
    }
  }
}

}  // namespace
}  // namespace overlap::two_streams::virtual_gpus
