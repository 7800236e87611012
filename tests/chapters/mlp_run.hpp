// Runs of chapter 07's blocks, compared on every element.
#pragma once

#include "07_mlp_block/overlapped_block.cuh"
#include "07_mlp_block/sequence_block.cuh"
#include "07_mlp_block/vanilla_block.cuh"
#include "dense_run.hpp"
#include "overlap/bench/mlp_problem.hpp"

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
struct BlockTraits<mlp_block::VanillaBlock<T>> {
  using Problem = MlpOnEveryRank<T>;
  static int copies(int ranks) { return ranks; }
};
template <Floating T>
struct BlockTraits<mlp_block::SequenceParallelBlock<T>> {
  using Problem = MlpProblem<T>;
  static int copies(int) { return 1; }
};
template <Floating T>
struct BlockTraits<mlp_block::OverlappedBlock<T>> {
  using Problem = MlpProblem<T>;
  static int copies(int) { return 1; }
};

/// Back-to-back calls for each shape in one run must be right on every element; skips where the block cannot
/// run.
template <typename Block>
void expect_right_blocks(int ranks, const std::vector<MatmulShape>& shapes, std::uint64_t seed = 1,
                         int calls = 1) {
  using Traits = BlockTraits<Block>;
  expect_runs_right(ranks, shapes, calls,
                    run_dense_all<Block, typename Traits::Problem>(ranks, shapes, seed, calls),
                    [ranks](MatmulShape shape) { return shape.m * shape.k * Traits::copies(ranks); });
}

template <typename Block>
void expect_right_block(int ranks, MatmulShape whole, std::uint64_t seed = 1, int calls = 1) {
  expect_right_blocks<Block>(ranks, {whole}, seed, calls);
}

}  // namespace overlap
