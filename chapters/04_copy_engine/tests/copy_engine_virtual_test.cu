// Chapter 04 on virtual GPUs: right in any order of events, moving just the bytes of its cost card, and as
// fast, in the model, as the page says.
#include <gtest/gtest.h>

#include "04_copy_engine/copy_engine_ring.cuh"
#include "04_copy_engine/experiments/patterns.cuh"
#include "04_copy_engine/experiments/transport_timing.cuh"
#include "dense_virtual.hpp"
#include "overlap/bench/split_only.hpp"
#include "ownership.hpp"

namespace overlap::copy_engine {
namespace {

using Ring = CopyEngineRing<__half>;
using Problem = GatherProblem<__half>;

TEST_F(OnVirtualGpus, BackToBackCallsAreRightInTwentySchedules) {
  for (const int ranks : {2, 3, 8}) {
    in_random_schedules(20, [ranks](std::uint64_t seed) {
      expect_right<Ring, Problem>(ranks, {19, 17, 11}, seed, 5);
    });
  }
}

TEST_F(OnVirtualGpus, AHundredCallsFollowEachOtherInSeveralSchedules) {
  for (const int ranks : {2, 4}) {
    in_random_schedules(4, [ranks](std::uint64_t seed) {
      expect_right<Ring, Problem>(ranks, {9, 5, 6}, seed, 100);
    });
  }
}

TEST_F(OnVirtualGpus, TheCallerMayOverwriteAAfterTheCall) {
  in_random_schedules(20, [](std::uint64_t) {
    run_ranks(2, [](Rank& rank) { expect_caller_owns_matrices_on<Ring, Problem>(rank, {40, 5, 40}); });
  });
}

TEST_F(OnVirtualGpus, SameSeedSameSchedule) {
  expect_same_seed_same_schedule([] { expect_right<Ring, Problem>(4, {33, 40, 8}, 1, 2); });
}

TEST_F(OnVirtualGpus, MovesTheBytesOfItsCostCard) {
  for (const MatmulShape shape : {MatmulShape{16, 32, 8}, MatmulShape{19, 37, 11}, MatmulShape{5, 3, 7}}) {
    for (const int ranks : {1, 2, 3, 8}) {
      expect_one_neighbour(
          traffic_of_a_call<Ring, Problem>(ranks, shape), ranks, -1,
          [&](int rank) { return Ring::cost(shape, ranks, rank); }, shape.m >= ranks);
    }
  }
}

TEST_F(OnVirtualGpus, TheRingHidesItsTransfersInTheModel) {
  run_ranks(4, [](Rank& rank) {
    Problem problem(rank, {512, 2048, 512}, 1);
    Ring ring(rank, problem.whole());
    RingPush<__half> transfers(rank, problem.whole());
    SplitOnly<__half> split(rank, problem.whole());
    const auto products = [&](cudaStream_t stream) {
      split.run(problem.whole_a(), problem.b(), problem.c(), stream);
    };
    const auto ms = modelled_ms(
        rank,
        {call_of(ring, problem), [&](cudaStream_t stream) { transfers.run(problem.a(), stream); }, products});
    EXPECT_LT(ms[0], ms[2] + ms[1] / 2);  // at least half of the transfers cost nothing
  });
}

TEST_F(OnVirtualGpus, NcclSlowsTheProductAndCopyEnginesDoNot) {
  run_ranks(4, [](Rank& rank) {
    Problem problem(rank, {512, 2048, 512}, 1);
    SplitOnly<__half> split(rank, problem.whole());
    Transports transports(rank, 128 * 512 * 2);
    const auto multiply = [&](cudaStream_t stream) {
      split.run(problem.whole_a(), problem.b(), problem.c(), stream);
    };
    std::vector<SideBySideCall> pairs = {{multiply, {}}};
    for (const Transport& transport : transports.list()) {
      if (transport.name == "NCCL send and receive" || transport.name == "copy engine, push")
        pairs.push_back({multiply, [&transport](cudaStream_t stream) { transport.send(3, stream); }});
    }
    ASSERT_EQ(pairs.size(), 3u);
    const std::vector<SideBySide> times = time_side_by_side(rank, pairs, 1);
    EXPECT_GT(times[1].product_ms, 1.1 * times[2].product_ms);  // NCCL's channel causes a second wave
    EXPECT_LT(times[2].product_ms, 1.1 * times[0].product_ms);
    // The calculator's time of the same sub-product.
    const MatmulShape step{128, 512, 512};
    EXPECT_EQ(waves(step, backend::product_tile(), transports.multiprocessors()).waves, 1);
    EXPECT_EQ(waves(step, backend::product_tile(), transports.multiprocessors() - 1).waves, 2);
  });
}

TEST_F(OnVirtualGpus, PushesToTheSameGpuCollide) {
  run_ranks(4, [](Rank& rank) {
    DirectAllGather permutation(rank, 100000, DirectAllGather::Order::kPushLeft);
    DirectAllGather collision(rank, 100000, DirectAllGather::Order::kPushSameOrder);
    const std::vector<double> times = time_alone(rank,
                                                 {{[&](cudaStream_t stream) { permutation.run(stream); }, {}},
                                                  {[&](cudaStream_t stream) { collision.run(stream); }, {}}},
                                                 1);
    EXPECT_LT(1.2 * times[0], times[1]);
  });
}

}  // namespace
}  // namespace overlap::copy_engine
