// The extension shard_by_shard of chapter 07: right in any order of events, with room for one shard's hidden
// activations.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "07_mlp_block/sequence_block.cuh"
#include "memory_of.hpp"
#include "mlp_run.hpp"
#include "on_virtual_gpus.hpp"

namespace overlap::mlp_block {
namespace {

using Block = SequenceParallelBlock<__half>;

TEST_F(OnVirtualGpus, SmallCallsAtOnceAreRight) {
  for (const int ranks : {1, 2, 3, 4, 8}) {
    expect_right_block<Block>(ranks, {19, 37, 11}, 1, 4);
    expect_right_block<Block>(ranks, {3, 5, 7}, 1, 4);  // fewer tokens than ranks
  }
}

TEST_F(OnVirtualGpus, CallsAtOnceAreRightInTenSchedules) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    for (const int ranks : {2, 3, 8}) {
      SCOPED_TRACE("schedule " + std::to_string(seed) + ", " + std::to_string(ranks) + " ranks");
      vgpu::reset();
      vgpu::use_schedule(seed);
      expect_right_block<Block>(ranks, {19, 37, 11}, seed, 4);
    }
  }
}

TEST_F(OnVirtualGpus, HoldsTheHiddenActivationsOfOneShard) {
  for (const int ranks : {1, 2, 3, 8}) {
    const MatmulShape shape{240, 480, 64};  // as many tokens and columns on each rank
    const std::int64_t tokens = shape.m / ranks, panels = std::min(ranks, 2);
    const std::int64_t hidden = tokens * (shape.n / ranks) * 2, of_tokens = tokens * shape.k * 2;
    for (const std::int64_t held : memory_of<Block>(ranks, shape)) {
      EXPECT_LE(held, hidden + (panels + 2) * of_tokens) << "with normalised tokens, and their sum";
      EXPECT_EQ(Block::cost(shape, ranks, 0).memory, held - of_tokens) << "without the former";
    }
  }
}

/// Bytes that have gone between this rank's GPU and the others'.
std::pair<std::int64_t, std::int64_t> moved(const Rank& rank) {
  std::int64_t out = 0, in = 0;
  for (int peer = 0; peer < rank.size(); ++peer) {
    if (peer == rank.id()) continue;
    out += static_cast<std::int64_t>(vgpu::traffic(rank.id(), peer).bytes);
    in += static_cast<std::int64_t>(vgpu::traffic(peer, rank.id()).bytes);
  }
  return {out, in};
}

TEST_F(OnVirtualGpus, MovesTheBytesOfItsCostCardAndNoPadding) {
  for (const MatmulShape shape : {MatmulShape{16, 32, 8}, MatmulShape{19, 37, 11}, MatmulShape{5, 3, 7}}) {
    for (const int ranks : {1, 2, 3, 8}) {
      std::int64_t all = 0;
      for (int rank = 0; rank < ranks; ++rank) all += Block::cost(shape, ranks, rank).bytes_out;
      EXPECT_EQ(all, 2 * (ranks - 1) * shape.m * shape.k * 2);
      run_ranks(ranks, [&](Rank& rank) {
        Block block(rank, shape);
        BlockTraits<Block>::Problem problem(rank, shape, 1);
        problem.fill_exact();
        rank.barrier();
        const auto before = moved(rank);
        rank.barrier();
        block.run(problem.a(), problem.b(), problem.c(), rank.stream());
        rank.synchronize(rank.stream());
        rank.barrier();
        const auto after = moved(rank);
        const Cost cost = Block::cost(shape, ranks, rank.id());
        EXPECT_EQ(after.first - before.first, cost.bytes_out) << "rank " << rank.id() << " of " << ranks;
        EXPECT_EQ(after.second - before.second, cost.bytes_in) << "rank " << rank.id() << " of " << ranks;
      });
    }
  }
}

}  // namespace
}  // namespace overlap::mlp_block
