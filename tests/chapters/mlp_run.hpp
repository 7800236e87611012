// Runs of chapter 07's blocks, compared on every element.
#pragma once

#include <algorithm>

#include "07_mlp_block/overlapped_block.cuh"
#include "07_mlp_block/sequence_block.cuh"
#include "07_mlp_block/vanilla_block.cuh"
#include "dense_run.hpp"
#include "overlap/mlp_problem.hpp"

namespace overlap {

/// The problem as VanillaBlock takes it: all of X and Y on every rank.
template <Floating T>
struct MlpOnEveryRank : MlpProblem<T> {
  using MlpProblem<T>::MlpProblem;
  const T* a() const { return this->whole_x(); }
  T* c() { return this->whole_y(); }
};

/// The problem that a block solves, and how many ranks then have each element of Y.
template <typename Block>
struct BlockTraits;
template <Floating T>
struct BlockTraits<VanillaBlock<T>> {
  using Problem = MlpOnEveryRank<T>;
  static int copies(int ranks) { return ranks; }
};
template <Floating T>
struct BlockTraits<SequenceParallelBlock<T>> {
  using Problem = MlpProblem<T>;
  static int copies(int) { return 1; }
};
template <Floating T>
struct BlockTraits<OverlappedBlock<T>> {
  using Problem = MlpProblem<T>;
  static int copies(int) { return 1; }
};

/// Calls that must be right on every element, back to back; skips the test where the block cannot run.
template <typename Block>
void expect_right_block(int ranks, MatmulShape whole, std::uint64_t seed = 1, int calls = 1) {
  const DenseRun run = run_dense<Block, typename BlockTraits<Block>::Problem>(ranks, whole, seed, calls);
  if (!run.skipped.empty()) GTEST_SKIP() << run.skipped;
  EXPECT_TRUE(run.found.ok()) << whole.m << " x " << whole.n << " x " << whole.k << " on " << ranks
                              << " ranks: " << describe(run.found);
  EXPECT_EQ(run.found.elements, whole.m * whole.k * BlockTraits<Block>::copies(ranks) * results_of(calls));
}

}  // namespace overlap
