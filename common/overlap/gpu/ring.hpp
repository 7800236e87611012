// Ranks in a ring, and whose shard is where in each step.
#pragma once

#include "overlap/gpu/ranks.hpp"

namespace overlap {

/// A ring of ranks, as one of them sees it. In each step all shards move one rank to the left: a rank begins
/// with its own, and gets the next one from its right neighbour. Chapter 03 writes this out.
class Ring {
 public:
  constexpr Ring(int rank, int ranks) : rank_(rank), ranks_(ranks) {}
  explicit Ring(const Rank& rank) : Ring(rank.id(), rank.size()) {}

  /// The rank so many places to the right; to the left if `places` is negative. Any number of rounds. A rank
  /// sends to at(-1), which is Rank::previous(), and receives from at(1), Rank::next().
  constexpr int at(int places) const { return ((rank_ + places) % ranks_ + ranks_) % ranks_; }
  /// Whose shard this rank has in a step: after P - 1 steps it has had all.
  constexpr int shard(int step) const { return at(step); }

 private:
  int rank_, ranks_;
};

}  // namespace overlap
