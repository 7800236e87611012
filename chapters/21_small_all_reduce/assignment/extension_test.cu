// The extension late_rank of chapter 21: right in any order of events; and if one of four ranks is late, the
// three others name it.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "21_small_all_reduce/one_shot.cuh"
#include "all_reduce_run.hpp"
#include "late_rank.hpp"
#include "on_virtual_gpus.hpp"
#include "overlap/gpu/graph.hpp"

namespace overlap::small_all_reduce {
namespace {

constexpr int kRanks = 4;
constexpr std::int64_t kElements = 9000;  // several blocks

/// Each of four ranks in turn is late: checks the waits that each rank reports after `call`.
template <typename Call>
void expect_the_late_one_is_named(Rank& rank, OneShot<__half>& all_reduce, const Call& call) {
  constexpr int kRounds = 1 << 23;  // far longer than a wait for a punctual rank, a thousand polls
  LateWork late(rank);
  for (int who = 0; who < kRanks; ++who) {
    rank.barrier();
    if (rank.id() == who) late.start(rank.stream(), kRounds);
    call();
    const std::vector<long long> waited = all_reduce.take_waits(rank.stream());
    ASSERT_EQ(waited.size(), kRanks);
    std::vector<long long> sorted = waited;
    std::ranges::sort(sorted);
    const std::vector<long long> longest = rank.exchange(sorted.back());
    const std::string when =
        "rank " + std::to_string(rank.id()) + ", when rank " + std::to_string(who) + " is late";
    if (rank.id() == who) {
      EXPECT_LT(4 * sorted.back(), std::ranges::max(longest)) << when << ": it waits for nobody";
    } else {
      EXPECT_EQ(waited[static_cast<std::size_t>(who)], sorted.back()) << when;
      EXPECT_LT(4 * sorted[kRanks - 2], sorted.back()) << when << ": it waits for no other";
    }
    rank.barrier();
  }
  const std::vector<long long> taken = all_reduce.take_waits(rank.stream());
  EXPECT_EQ(taken, std::vector<long long>(kRanks, 0)) << "they were taken";
}

// The race detector, too, runs the tests whose names begin with Small.
TEST_F(OnVirtualGpus, SmallCallsAtOnceAreRight) { expect_sums<OneShot<__half>, __half>(3, {300, 9000}, 4); }

TEST_F(OnVirtualGpus, CallsAtOnceAreRightInTenSchedules) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    for (const int ranks : {1, 2, 3, 4, 8}) {
      SCOPED_TRACE("schedule " + std::to_string(seed) + ", " + std::to_string(ranks) + " ranks");
      vgpu::reset();
      vgpu::use_schedule(seed);
      expect_sums<OneShot<__half>, __half>(ranks, {1, 300}, 5);
      expect_sums<OneShot<__half, Reuse::kExitBarrier>, __half>(ranks, {300}, 3);
    }
  }
}

TEST_F(OnVirtualGpus, OfFourRanksTheLateOneIsNamed) {
  run_ranks(kRanks, [](Rank& rank) {
    OneShot<__half> all_reduce(rank, kElements);
    Message<__half> message(rank, kElements);
    message.write(1);
    expect_the_late_one_is_named(rank, all_reduce, [&] {
      for (int i = 0; i < 3; ++i) all_reduce.run(message.x(), message.sum(), rank.stream());
    });
    message.expect_right("behind late ranks");
  });
}

TEST_F(OnVirtualGpus, ReplaysOfAGraphCount) {
  run_ranks(kRanks, [](Rank& rank) {
    OneShot<__half> all_reduce(rank, kElements);
    Message<__half> message(rank, kElements);
    message.write(1);
    const Graph graph =
        Graph::capture(rank.stream(), [&] { all_reduce.run(message.x(), message.sum(), rank.stream()); });
    expect_the_late_one_is_named(rank, all_reduce, [&] {
      for (int i = 0; i < 3; ++i) graph.launch(rank.stream());
    });
  });
}

}  // namespace
}  // namespace overlap::small_all_reduce
