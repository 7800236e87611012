// Chapter 06 on virtual GPUs: right in any order of events, moving just the bytes of its cost card, and
// faster in the model than one after the other.
#include <gtest/gtest.h>

#include "06_reduce_scatter/all_to_all_sum.cuh"
#include "06_reduce_scatter/multiply_then_scatter.cuh"
#include "06_reduce_scatter/rotating_accumulators.cuh"
#include "dense_virtual.hpp"
#include "overlap/gpu/host_copy.hpp"

namespace overlap::reduce_scatter {
namespace {

using Problem = ScatterProblem<__half>;

TEST_F(OnVirtualGpus, AreRightInTwentySchedules) {
  const auto in_schedules = [](const auto& check) {
    in_random_schedules(20, [&](std::uint64_t seed) { check(seed % 2 == 0 ? 3 : 8, seed); });
  };
  const MatmulShape shape = {19, 21, 11};
  in_schedules([&](int ranks, std::uint64_t seed) {
    expect_right<MultiplyThenScatter<__half>, Problem>(ranks, shape, seed, 3);
  });
  in_schedules([&](int ranks, std::uint64_t seed) {
    expect_right<AllToAllSum<__half>, Problem>(ranks, shape, seed, 3);
  });
  in_schedules([&](int ranks, std::uint64_t seed) {
    expect_right<RotatingAccumulators<__half>, Problem>(ranks, shape, seed, 3, Start::kZeros, Pass::kStore);
  });
  in_schedules([&](int ranks, std::uint64_t seed) {
    expect_right<RotatingAccumulators<__half, float>, Problem>(ranks, shape, seed, 3, Start::kFirstPartial,
                                                               Pass::kCopy);
  });
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
    parts[static_cast<std::size_t>(rank.id())] =
        on_host(reinterpret_cast<const std::uint32_t*>(problem.c()), std::ssize(problem.reference()));
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

constexpr MatmulShape kSizes[] = {{16, 32, 8}, {19, 37, 11}, {5, 3, 7}};

TEST_F(OnVirtualGpus, AllToAllSumMovesTheBytesOfItsCostCard) {
  for (const MatmulShape shape : kSizes) {
    for (const int ranks : {1, 2, 3, 8}) {
      const auto traffic = traffic_of_a_call<AllToAllSum<__half>, Problem>(ranks, shape);
      const Chunks chunks{shape.m, shape.n, ranks};
      for (int rank = 0; rank < ranks; ++rank) {
        SCOPED_TRACE(std::to_string(rank) + " of " + std::to_string(ranks));
        const Cost cost = AllToAllSum<__half>::cost(shape, ranks, rank);
        expect_bytes_of(cost, traffic, rank);
        for (int to = 0; to < ranks; ++to) {  // one message for each owner with rows
          if (to == rank) continue;
          EXPECT_EQ(traffic.over(rank, to).copies, chunks.elements(to) > 0 ? 1 : 0);
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
          const auto traffic = traffic_of_a_call<Algorithm, Problem>(ranks, shape, start, pass);
          for (int rank = 0; rank < ranks; ++rank) {
            SCOPED_TRACE(std::to_string(rank) + " of " + std::to_string(ranks));
            // A kernel's stores are no copies: only copies are counted here.
            const std::int64_t copied = Algorithm::bytes_by_copy(shape, ranks, rank, start, pass);
            EXPECT_EQ(traffic.out_of(rank).bytes, copied);
            if (pass == Pass::kCopy) {  // with copies only, these are all bytes out and in
              const Cost cost = Algorithm::cost(shape, ranks, rank, start);
              EXPECT_EQ(copied, cost.bytes_out);
              EXPECT_EQ(traffic.into(rank).bytes, cost.bytes_in);
            }
            if (ranks > 1) {
              EXPECT_EQ(traffic.over(rank, (rank + 1) % ranks).bytes, copied);
            }
          }
        }
      }
    }
  }
}

TEST_F(OnVirtualGpus, NcclMovesTheBytesOfItsCostCard) {
  for (const MatmulShape shape : kSizes) {
    for (const int ranks : {1, 2, 3, 8}) {
      const auto traffic = traffic_of_a_call<MultiplyThenScatter<__half>, Problem>(ranks, shape);
      SCOPED_TRACE(std::to_string(ranks) + " ranks");
      for (int rank = 0; rank < ranks; ++rank)
        expect_bytes_of(MultiplyThenScatter<__half>::cost(shape, ranks), traffic, rank);
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
    const auto ms = modelled_ms(
        rank, {[&](cudaStream_t stream) { problem.gemm_only(stream); }, call_of(nccl, problem),
               call_of(zeros, problem), call_of(rotating, problem), call_of(all_to_all, problem)});
    EXPECT_LT(ms[0], ms[4]);  // no transfer is free
    EXPECT_LT(ms[4], ms[1]);
    EXPECT_LT(ms[3], ms[2]);  // the pass of zeros is additional
    EXPECT_LT(ms[2], ms[1]);
  });
}

}  // namespace
}  // namespace overlap::reduce_scatter
