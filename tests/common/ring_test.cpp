// Neighbours in a ring, and the rank that holds each shard.
#include "overlap/gpu/ring.hpp"

#include <gtest/gtest.h>

#include <set>

namespace overlap {
namespace {

TEST(RingTest, NeighboursAreOnePlaceAway) {
  EXPECT_EQ(Ring(0, 4).at(1), 1);
  EXPECT_EQ(Ring(0, 4).at(-1), 3);
  EXPECT_EQ(Ring(3, 4).at(1), 0);
  EXPECT_EQ(Ring(3, 4).at(-1), 2);
}

TEST(RingTest, OneRankIsItsOwnNeighbour) {
  EXPECT_EQ(Ring(0, 1).at(-1), 0);
  EXPECT_EQ(Ring(0, 1).at(1), 0);
  EXPECT_EQ(Ring(0, 1).shard(0), 0);
}

TEST(RingTest, GoesRoundInBothDirections) {
  EXPECT_EQ(Ring(1, 3).at(0), 1);
  EXPECT_EQ(Ring(1, 3).at(5), 0);
  EXPECT_EQ(Ring(1, 3).at(-2), 2);
  EXPECT_EQ(Ring(1, 3).at(-3), 1);
  EXPECT_EQ(Ring(1, 3).at(-7), 0);
}

TEST(RingTest, EveryRankHasEveryShardOnce) {
  for (const int ranks : {1, 2, 3, 8}) {
    for (int rank = 0; rank < ranks; ++rank) {
      const Ring ring(rank, ranks);
      std::set<int> shards;
      for (int step = 0; step < ranks; ++step) shards.insert(ring.shard(step));
      EXPECT_EQ(ring.shard(0), rank);
      EXPECT_EQ(shards.size(), static_cast<std::size_t>(ranks));
      EXPECT_EQ(*shards.begin(), 0);
      EXPECT_EQ(*shards.rbegin(), ranks - 1);
    }
  }
}

// In each step a rank holds the shard that its right neighbour held in the step before.
TEST(RingTest, ShardsMoveOneRankToTheLeft) {
  for (const int ranks : {2, 3, 8}) {
    for (int rank = 0; rank < ranks; ++rank) {
      const Ring ring(rank, ranks), right(ring.at(1), ranks);
      EXPECT_EQ(right.at(-1), rank);
      for (int step = 1; step < ranks; ++step) EXPECT_EQ(ring.shard(step), right.shard(step - 1));
    }
  }
}

}  // namespace
}  // namespace overlap
