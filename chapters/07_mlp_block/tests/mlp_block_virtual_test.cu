// Chapter 07 on virtual GPUs: right in any order of events, moving just the bytes of its cost card, and
// faster the more of the communication is hidden.
#include <gtest/gtest.h>

#include "dense_virtual.hpp"
#include "mlp_run.hpp"

namespace overlap::mlp_block {
namespace {

TEST_F(OnVirtualGpus, OverlappedIsRightInTwentySchedulesBackToBack) {
  for (const int ranks : {2, 3, 8}) {
    in_random_schedules(20, [ranks](std::uint64_t seed) {
      expect_right_block<OverlappedBlock<__half>>(ranks, {19, 37, 11}, seed, 4);
    });
  }
}

TEST_F(OnVirtualGpus, OthersAreRightInTwentySchedules) {
  in_random_schedules(20, [](std::uint64_t seed) {
    expect_right_block<SequenceParallelBlock<__half>>(3, {19, 37, 11}, seed, 2);
    expect_right_block<VanillaBlock<__half>>(3, {19, 37, 11}, seed, 2);
  });
}

TEST_F(OnVirtualGpus, SameSeedSameSchedule) {
  expect_same_seed_same_schedule([] { expect_right_block<OverlappedBlock<__half>>(4, {33, 40, 8}, 1, 2); });
}

/// The bytes that one call moves between GPUs.
template <typename Block>
void expect_bytes_of_cost_card(int ranks, MatmulShape whole) {
  SCOPED_TRACE(std::to_string(ranks) + " ranks");
  const LinkTraffic moved = traffic_of_a_call<Block, typename BlockTraits<Block>::Problem>(ranks, whole);
  for (int rank = 0; rank < ranks; ++rank) expect_bytes_of(Block::cost(whole, ranks, rank), moved, rank);
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

/// Modelled milliseconds of one call on four ranks.
template <typename Block>
double ms_of(MatmulShape whole) {
  vgpu::reset();
  return modelled_ms<Block, typename BlockTraits<Block>::Problem>(4, whole);
}

TEST_F(OnVirtualGpus, TheModelShowsWhatIsHidden) {
  const MatmulShape shape{512, 2048, 256};
  const double vanilla = ms_of<VanillaBlock<__half>>(shape);
  const double sequence = ms_of<SequenceParallelBlock<__half>>(shape);
  const double overlapped = ms_of<OverlappedBlock<__half>>(shape);
  EXPECT_LT(1.2 * overlapped, sequence);
  EXPECT_LT(1.2 * overlapped, vanilla);
}

TEST_F(OnVirtualGpus, TheModelShowsNormalisationOfAQuarterOfTheTokens) {
  const MatmulShape shape{2048, 64, 256};  // hardly any products
  EXPECT_LT(ms_of<SequenceParallelBlock<__half>>(shape), ms_of<VanillaBlock<__half>>(shape));
}

}  // namespace
}  // namespace overlap::mlp_block
