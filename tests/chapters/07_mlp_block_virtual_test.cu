// Chapter 07 on virtual GPUs: right in any order of events, moving just the bytes of its cost card, and
// faster the more is hidden.
#include <gtest/gtest.h>

#include "mlp_run.hpp"
#include "on_virtual_gpus.hpp"
#include "overlap/bench/timing.hpp"

namespace overlap::mlp_block {
namespace {

TEST_F(OnVirtualGpus, OverlappedIsRightInTwentySchedulesBackToBack) {
  for (std::uint64_t seed = 1; seed <= schedules(); ++seed) {
    for (const int ranks : {2, 3, 8}) {
      vgpu::reset();
      vgpu::use_schedule(seed);
      SCOPED_TRACE("schedule " + std::to_string(seed));
      expect_right_block<OverlappedBlock<__half>>(ranks, {19, 37, 11}, seed, 4);
    }
  }
}

TEST_F(OnVirtualGpus, OthersAreRightInTwentySchedules) {
  for (std::uint64_t seed = 1; seed <= schedules(); ++seed) {
    vgpu::reset();
    vgpu::use_schedule(seed);
    SCOPED_TRACE("schedule " + std::to_string(seed));
    expect_right_block<SequenceParallelBlock<__half>>(3, {19, 37, 11}, seed, 2);
    expect_right_block<VanillaBlock<__half>>(3, {19, 37, 11}, seed, 2);
  }
}

TEST_F(OnVirtualGpus, SameSeedSameSchedule) {
  expect_same_seed_same_schedule([] { expect_right_block<OverlappedBlock<__half>>(4, {33, 40, 8}, 1, 2); });
}

/// The bytes that go between GPUs in one call.
template <typename Block>
void expect_bytes_of_cost_card(int ranks, MatmulShape whole) {
  using Problem = typename BlockTraits<Block>::Problem;
  run_ranks(ranks, [&](Rank& rank) {
    Block block(rank, whole);
    Problem problem(rank, whole, 1);
    problem.fill_exact();
    rank.barrier();
    std::vector<vgpu::Traffic> in_before, out_before;
    for (int peer = 0; peer < ranks; ++peer) {
      in_before.push_back(vgpu::traffic(peer, rank.id()));
      out_before.push_back(vgpu::traffic(rank.id(), peer));
    }
    rank.barrier();
    block.run(problem.a(), problem.b(), problem.c(), rank.stream());
    rank.synchronize(rank.stream());
    rank.barrier();
    std::int64_t in = 0, out = 0;
    for (int peer = 0; peer < ranks; ++peer) {
      if (peer == rank.id()) continue;
      in += static_cast<std::int64_t>(vgpu::traffic(peer, rank.id()).bytes - in_before[peer].bytes);
      out += static_cast<std::int64_t>(vgpu::traffic(rank.id(), peer).bytes - out_before[peer].bytes);
    }
    const Cost cost = Block::cost(whole, ranks, rank.id());
    EXPECT_EQ(in, cost.bytes_in) << "rank " << rank.id() << " of " << ranks;
    EXPECT_EQ(out, cost.bytes_out) << "rank " << rank.id() << " of " << ranks;
  });
}

TEST_F(OnVirtualGpus, MovesTheBytesOfItsCostCard) {
  for (const MatmulShape shape : {MatmulShape{16, 32, 8}, MatmulShape{19, 37, 11}, MatmulShape{5, 3, 7}}) {
    for (const int ranks : {1, 2, 3, 8}) {
      expect_bytes_of_cost_card<VanillaBlock<__half>>(ranks, shape);
      expect_bytes_of_cost_card<SequenceParallelBlock<__half>>(ranks, shape);
      expect_bytes_of_cost_card<OverlappedBlock<__half>>(ranks, shape);
    }
  }
}

/// Modelled milliseconds of one call.
template <typename Block>
double modelled_ms(int ranks, MatmulShape whole) {
  vgpu::reset();
  double ms = 0;
  run_ranks(ranks, [&](Rank& rank) {
    Block block(rank, whole);
    typename BlockTraits<Block>::Problem problem(rank, whole, 1);
    problem.fill_exact();
    const auto call = [&](cudaStream_t stream) { block.run(problem.a(), problem.b(), problem.c(), stream); };
    const double time = time_variants(rank, {{"block", call}}, 1, 0).front().device_ms.median;
    if (rank.id() == 0) ms = time;
  });
  return ms;
}

TEST_F(OnVirtualGpus, TheModelShowsWhatIsHidden) {
  const MatmulShape shape{512, 2048, 256};
  const double vanilla = modelled_ms<VanillaBlock<__half>>(4, shape);
  const double sequence = modelled_ms<SequenceParallelBlock<__half>>(4, shape);
  const double overlapped = modelled_ms<OverlappedBlock<__half>>(4, shape);
  EXPECT_LT(1.2 * overlapped, sequence);
  EXPECT_LT(1.2 * overlapped, vanilla);
}

TEST_F(OnVirtualGpus, TheModelShowsNormalisationOfAQuarterOfTheTokens) {
  const MatmulShape shape{2048, 64, 256};  // hardly any products
  EXPECT_LT(modelled_ms<SequenceParallelBlock<__half>>(4, shape),
            modelled_ms<VanillaBlock<__half>>(4, shape));
}

}  // namespace
}  // namespace overlap::mlp_block
