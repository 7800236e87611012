// Chapter 06 on virtual GPUs: right in any order of events, moving just the bytes of its cost card, and
// faster in the model than one after the other.
#include <gtest/gtest.h>

#include "06_reduce_scatter/all_to_all_sum.cuh"
#include "06_reduce_scatter/multiply_then_scatter.cuh"
#include "06_reduce_scatter/rotating_accumulators.cuh"
#include "dense_run.hpp"
#include "on_virtual_gpus.hpp"
#include "overlap/bench/timing.hpp"

namespace overlap::reduce_scatter {
namespace {

using Problem = ScatterProblem<__half>;

TEST_F(OnVirtualGpus, AreRightInTwentySchedules) {
  for (std::uint64_t seed = 1; seed <= schedules(); ++seed) {
    SCOPED_TRACE("schedule " + std::to_string(seed));
    const int ranks = seed % 2 == 0 ? 3 : 8;
    const MatmulShape shape = {19, 21, 11};
    const auto with_schedule = [&](auto check) {
      vgpu::reset();
      vgpu::use_schedule(seed);
      check();
    };
    with_schedule([&] { expect_right<MultiplyThenScatter<__half>, Problem>(ranks, shape, seed, 3); });
    with_schedule([&] { expect_right<AllToAllSum<__half>, Problem>(ranks, shape, seed, 3); });
    with_schedule([&] {
      expect_right<RotatingAccumulators<__half>, Problem>(ranks, shape, seed, 3, Start::kZeros, Pass::kStore);
    });
    with_schedule([&] {
      expect_right<RotatingAccumulators<__half, float>, Problem>(ranks, shape, seed, 3, Start::kFirstPartial,
                                                                 Pass::kCopy);
    });
  }
}

TEST_F(OnVirtualGpus, SameSeedSameSchedule) {
  expect_same_seed_same_schedule([] { expect_right<AllToAllSum<__half>, Problem>(4, {33, 40, 8}); });
}

/// C of random normals, all ranks' rows, as bits of f32: rounding to 16 bits would hide most differences.
std::vector<std::uint32_t> sum_of_normals(std::uint64_t schedule) {
  vgpu::reset();
  if (schedule > 0) vgpu::use_schedule(schedule);
  std::vector<std::vector<std::uint32_t>> parts(4);
  const MatmulShape whole = {18, 24, 40};
  run_ranks(4, [&](Rank& rank) {
    ScatterProblem<float> problem(rank, whole, 9);
    AllToAllSum<float> algorithm(rank, whole);
    problem.fill_normal();
    algorithm.run(problem.a(), problem.b(), problem.c(), rank.stream());
    rank.synchronize(rank.stream());
    std::vector<std::uint32_t>& part = parts[static_cast<std::size_t>(rank.id())];
    part.resize(problem.reference().size());
    CUDA_CHECK(cudaMemcpy(part.data(), problem.c(), part.size() * sizeof(float), cudaMemcpyDeviceToHost));
  });
  std::vector<std::uint32_t> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

TEST_F(OnVirtualGpus, AllToAllSumGivesTheSameBitsInEverySchedule) {
  const std::vector<std::uint32_t> in_order_of_time = sum_of_normals(0);
  EXPECT_EQ(in_order_of_time.size(), 18u * 24u);
  for (std::uint64_t seed = 1; seed <= 10; ++seed) EXPECT_EQ(sum_of_normals(seed), in_order_of_time) << seed;
}

/// What one call of the algorithm adds to the bytes and copies from each rank to each other one.
template <typename Algorithm, typename... More>
std::vector<std::vector<vgpu::Traffic>> traffic_of_a_call(int ranks, MatmulShape whole, More... more) {
  vgpu::reset();
  const auto now = [ranks] {
    std::vector<std::vector<vgpu::Traffic>> traffic(static_cast<std::size_t>(ranks));
    for (int from = 0; from < ranks; ++from) {
      for (int to = 0; to < ranks; ++to)
        traffic[static_cast<std::size_t>(from)].push_back(from == to ? vgpu::Traffic{}
                                                                     : vgpu::traffic(from, to));
    }
    return traffic;
  };
  std::vector<std::vector<vgpu::Traffic>> before, after;
  run_ranks(ranks, [&](Rank& rank) {
    Problem problem(rank, whole, 1);
    Algorithm algorithm(rank, whole, more...);
    problem.fill_exact();
    rank.barrier();
    if (rank.id() == 0) before = now();
    rank.barrier();
    algorithm.run(problem.a(), problem.b(), problem.c(), rank.stream());
    rank.synchronize(rank.stream());
    rank.barrier();
    if (rank.id() == 0) after = now();
    rank.barrier();
  });
  for (std::size_t from = 0; from < after.size(); ++from) {
    for (std::size_t to = 0; to < after.size(); ++to) {
      after[from][to].bytes -= before[from][to].bytes;
      after[from][to].copies -= before[from][to].copies;
    }
  }
  return after;
}

std::uint64_t bytes_out(const std::vector<std::vector<vgpu::Traffic>>& traffic, int rank) {
  std::uint64_t bytes = 0;
  for (const vgpu::Traffic& link : traffic[static_cast<std::size_t>(rank)]) bytes += link.bytes;
  return bytes;
}

std::uint64_t bytes_in(const std::vector<std::vector<vgpu::Traffic>>& traffic, int rank) {
  std::uint64_t bytes = 0;
  for (const auto& from : traffic) bytes += from[static_cast<std::size_t>(rank)].bytes;
  return bytes;
}

constexpr MatmulShape kSizes[] = {{16, 32, 8}, {19, 37, 11}, {5, 3, 7}};

TEST_F(OnVirtualGpus, AllToAllSumMovesTheBytesOfItsCostCard) {
  for (const MatmulShape shape : kSizes) {
    for (const int ranks : {1, 2, 3, 8}) {
      const auto traffic = traffic_of_a_call<AllToAllSum<__half>>(ranks, shape);
      const Chunks chunks{shape.m, shape.n, ranks};
      for (int rank = 0; rank < ranks; ++rank) {
        SCOPED_TRACE(std::to_string(rank) + " of " + std::to_string(ranks));
        const Cost cost = AllToAllSum<__half>::cost(shape, ranks, rank);
        EXPECT_EQ(bytes_out(traffic, rank), static_cast<std::uint64_t>(cost.bytes_out));
        EXPECT_EQ(bytes_in(traffic, rank), static_cast<std::uint64_t>(cost.bytes_in));
        for (int to = 0; to < ranks; ++to) {  // one message for each owner with rows
          const vgpu::Traffic link = traffic[static_cast<std::size_t>(rank)][static_cast<std::size_t>(to)];
          EXPECT_EQ(link.copies, to != rank && chunks.elements(to) > 0 ? 1u : 0u);
        }
      }
    }
  }
}

TEST_F(OnVirtualGpus, RotatingAccumulatorsMoveTheBytesOfTheirCostCard) {
  for (const MatmulShape shape : kSizes) {
    for (const int ranks : {1, 2, 3, 8}) {
      for (const Start start : {Start::kFirstPartial, Start::kZeros}) {
        for (const Pass pass : {Pass::kCopy, Pass::kStore}) {
          using Algorithm = RotatingAccumulators<__half, float>;
          const auto traffic = traffic_of_a_call<Algorithm>(ranks, shape, start, pass);
          for (int rank = 0; rank < ranks; ++rank) {
            SCOPED_TRACE(std::to_string(rank) + " of " + std::to_string(ranks));
            // What a kernel stores is no copy: only copies are counted here.
            const std::int64_t copied = Algorithm::bytes_by_copy(shape, ranks, rank, start, pass);
            EXPECT_EQ(bytes_out(traffic, rank), static_cast<std::uint64_t>(copied));
            if (pass == Pass::kCopy) {  // then all that goes is counted, and all that comes
              const Cost cost = Algorithm::cost(shape, ranks, rank, start);
              EXPECT_EQ(copied, cost.bytes_out);
              EXPECT_EQ(bytes_in(traffic, rank), static_cast<std::uint64_t>(cost.bytes_in));
            }
            const auto next = static_cast<std::size_t>((rank + 1) % ranks);
            EXPECT_EQ(traffic[static_cast<std::size_t>(rank)][next].bytes, bytes_out(traffic, rank));
          }
        }
      }
    }
  }
}

TEST_F(OnVirtualGpus, NcclMovesTheBytesOfItsCostCard) {
  for (const MatmulShape shape : kSizes) {
    for (const int ranks : {1, 2, 3, 8}) {
      const auto traffic = traffic_of_a_call<MultiplyThenScatter<__half>>(ranks, shape);
      for (int rank = 0; rank < ranks; ++rank) {
        const Cost cost = MultiplyThenScatter<__half>::cost(shape, ranks);
        EXPECT_EQ(bytes_out(traffic, rank), static_cast<std::uint64_t>(cost.bytes_out))
            << rank << " of " << ranks;
        EXPECT_EQ(bytes_in(traffic, rank), static_cast<std::uint64_t>(cost.bytes_in))
            << rank << " of " << ranks;
      }
    }
  }
}

TEST_F(OnVirtualGpus, OverlappedIsFasterThanOneAfterTheOtherInTheModel) {
  run_ranks(4, [](Rank& rank) {
    const MatmulShape whole = {512, 512, 1024};
    Problem problem(rank, whole, 1);
    MultiplyThenScatter<__half> nccl(rank, whole);
    RotatingAccumulators<__half> rotating(rank, whole);
    RotatingAccumulators<__half> zeros(rank, whole, Start::kZeros);
    AllToAllSum<__half> all_to_all(rank, whole);
    const auto call = [&](auto& algorithm) {
      return [&](cudaStream_t stream) { algorithm.run(problem.a(), problem.b(), problem.c(), stream); };
    };
    const auto times = time_variants(rank,
                                     {{"gemm_only", [&](cudaStream_t stream) { problem.gemm_only(stream); }},
                                      {"nccl", call(nccl)},
                                      {"zeros", call(zeros)},
                                      {"rotating", call(rotating)},
                                      {"all_to_all", call(all_to_all)}},
                                     1, 0);
    const auto ms = [&](int i) { return times[static_cast<std::size_t>(i)].device_ms.median; };
    EXPECT_LT(ms(0), ms(4));  // no transfer is free
    EXPECT_LT(ms(4), ms(1));
    EXPECT_LT(ms(3), ms(2));  // zeros have one pass more
    EXPECT_LT(ms(2), ms(1));
  });
}

}  // namespace
}  // namespace overlap::reduce_scatter
