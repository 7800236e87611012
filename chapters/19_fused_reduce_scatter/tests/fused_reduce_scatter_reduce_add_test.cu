// Chapter 19's experiment reduce_add on any GPUs of compute capability 9.0: right where all sums are exact;
// elsewhere each element is one of the sums that some order of arrival gives.
#include "19_fused_reduce_scatter/experiments/reduce_add.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "dense_run.hpp"
#include "ownership.hpp"
#include "stopped_run.hpp"
#include "summands.hpp"

namespace overlap::fused_reduce_scatter {
namespace {

/// Small tiles, so that small GEMMs have many.
template <SixteenBit T, typename Wire = SixteenBitWire>
using SmallAdd = ReduceAdd<T, Wire, tensor_core_gemm::Tile<64, 64, 2>>;

class ReduceAddOnRanks : public testing::TestWithParam<int> {
 protected:
  /// A depth of which each rank gets `eights` times 8.
  std::int64_t depth(int eights) const { return std::int64_t{8} * eights * GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(ReduceAdd, ReduceAddOnRanks, testing::Values(1, 2, 3, 4, 8),
                         testing::PrintToStringParamName());

TEST_P(ReduceAddOnRanks, AreRightAroundTiles) {
  // One row and fewer rows than ranks; no whole tile; several tiles of each owner.
  const std::vector<MatmulShape> shapes = {{1, 8, depth(1)}, {5, 24, depth(2)}, {257, 136, depth(2)}};
  expect_all_right<ReduceAdd<__half>, ScatterProblem<__half>>(GetParam(), shapes);
  expect_all_right<SmallAdd<__nv_bfloat16>, ScatterProblem<__nv_bfloat16>>(GetParam(), shapes);
  expect_all_right<SmallAdd<__half, F32Wire>, ScatterProblem<__half>>(GetParam(), shapes);
  expect_all_right<ReduceAdd<__nv_bfloat16, F32Wire>, ScatterProblem<__nv_bfloat16>>(GetParam(),
                                                                                     {{150, 200, depth(3)}});
}

TEST_P(ReduceAddOnRanks, AreRightOnRandomSizes) {
  const unsigned seed = 20261950 + static_cast<unsigned>(GetParam());
  SCOPED_TRACE("seed " + std::to_string(seed));
  const std::vector<MatmulShape> shapes = random_shapes(10, seed, {200}, {20, 8}, {6, 8 * GetParam()});
  expect_all_right<SmallAdd<__half>, ScatterProblem<__half>>(GetParam(), every(2, 0, shapes), seed);
  expect_all_right<SmallAdd<__half, F32Wire>, ScatterProblem<__half>>(GetParam(), every(2, 1, shapes), seed);
}

TEST_P(ReduceAddOnRanks, CallsMayFollowEachOtherAtOnce) {
  // The third call adds to the sums that the first call has cleared, and so on. With one row: ranks without
  // rows must not run ahead.
  const std::vector<MatmulShape> shapes = {{150, 72, depth(2)}, {1, 8, depth(1)}};
  const int calls = calls_at_once(7);
  expect_all_right<SmallAdd<__half>, ScatterProblem<__half>>(GetParam(), shapes, 1, calls);
  expect_all_right<SmallAdd<__half, F32Wire>, ScatterProblem<__half>>(GetParam(), shapes, 1, calls);
}

TEST(ReduceAddStopped, ByARankThatThrowsInsteadOfMakingItsCall) {
  expect_stopped_run<SmallAdd<__half>, ScatterProblem<__half>>(3, 1, 1, {130, 72, 48});
}

TEST_P(ReduceAddOnRanks, TheCallerOwnsItsMatricesBehindACall) {
  run_ranks(GetParam(), [&](Rank& rank) {
    for (const MatmulShape shape : {MatmulShape{70, 72, depth(2)}, MatmulShape{1, 8, depth(1)}})
      expect_caller_owns_matrices_on<SmallAdd<__half>, ScatterProblem<__half>>(rank, shape);
  });
}

// ---- Orders of arrival -----------------------------------------------------------------------------------
/// All possible bits of an element of C, for the other ranks' summands `sent`, sent as W, and the owner's.
template <SixteenBit T, typename W>
std::set<std::uint16_t> possible_bits(std::vector<float> sent, float own) {
  for (float& part : sent) part = static_cast<float>(value_of(from_float<W>(part)));
  std::sort(sent.begin(), sent.end());
  std::set<std::uint16_t> bits;
  do {
    float sum = 0;
    for (const float part : sent) sum = static_cast<float>(value_of(from_float<W>(sum + part)));
    bits.insert(bits_of(from_float<T>(sum + own)));
  } while (std::next_permutation(sent.begin(), sent.end()));
  return bits;
}

/// Makes several calls on random normals: each element must have one of its possible_bits(). Returns how many
/// elements have more than one possible value.
template <typename Algorithm, SixteenBit T>
int expect_possible_sums(int ranks, MatmulShape whole, int calls) {
  std::vector<int> several(static_cast<std::size_t>(ranks));
  run_ranks(ranks, [&](Rank& rank) {
    ScatterProblem<T> problem(rank, whole, 5);
    Algorithm algorithm(rank, whole);
    problem.fill_normal();
    const Summands<T, typename Algorithm::Tile> summands(rank, problem);
    const Range rows = balanced_share(whole.m, rank.size(), rank.id());
    std::vector<std::set<std::uint16_t>> possible;
    for (std::int64_t i = rows.begin * whole.n; i < rows.end * whole.n; ++i) {
      std::vector<float> sent;
      for (int source = 0; source < rank.size(); ++source) {
        if (source != rank.id()) sent.push_back(summands.of(source, i));
      }
      possible.push_back(possible_bits<T, typename Algorithm::W>(sent, summands.of(rank.id(), i)));
      several[static_cast<std::size_t>(rank.id())] += possible.back().size() > 1 ? 1 : 0;
    }
    rank.barrier();  // the others have read the summands
    for (int call = 0; call < calls; ++call) {
      problem.poison_result();
      algorithm.run(problem.a(), problem.b(), problem.c(), rank.stream());
      rank.synchronize(rank.stream());
      std::vector<std::uint16_t> found(possible.size());
      if (!found.empty())
        CUDA_CHECK(cudaMemcpy(found.data(), problem.c(), found.size() * 2, cudaMemcpyDeviceToHost));
      for (std::size_t i = 0; i < found.size(); ++i) {
        ASSERT_TRUE(possible[i].contains(found[i]))
            << "rank " << rank.id() << " of " << ranks << ", call " << call << ", element " << i;
      }
    }
    rank.barrier();
  });
  int all = 0;
  for (const int own : several) all += own;
  return all;
}

TEST(ReduceAddBits, AreThoseOfOneOrderOfArrival) {
  for (const int ranks : {1, 2, 3, 4}) {
    for (const MatmulShape shape : {MatmulShape{70, 72, 40 * ranks}, MatmulShape{5, 8, 16 * ranks}}) {
      const int half = expect_possible_sums<SmallAdd<__half>, __half>(ranks, shape, 3);
      const int bfloat = expect_possible_sums<SmallAdd<__nv_bfloat16>, __nv_bfloat16>(ranks, shape, 3);
      expect_possible_sums<SmallAdd<__half, F32Wire>, __half>(ranks, shape, 3);
      if (ranks < 4) {  // two summands in any order give one sum
        EXPECT_EQ(half, 0);
        EXPECT_EQ(bfloat, 0);
      } else {
        EXPECT_GT(half, shape.m * shape.n / 20);
        EXPECT_GT(bfloat, shape.m * shape.n / 20);
      }
    }
  }
}

TEST_P(ReduceAddOnRanks, AreWithinTheBoundOnRandomNormals) {
  const MatmulShape whole{40, 48, depth(6)};
  const Verification all = found_on(GetParam(), [&](Rank& rank) {
    ScatterProblem<__nv_bfloat16> problem(rank, whole, 3);
    SmallAdd<__nv_bfloat16> algorithm(rank, whole);
    problem.fill_normal();
    problem.poison_result();
    rank.barrier();
    algorithm.run(problem.a(), problem.b(), problem.c(), rank.stream());
    rank.synchronize(rank.stream());
    return problem.compare_normal(false);
  });
  EXPECT_TRUE(all.ok()) << describe(all);
  EXPECT_EQ(all.elements, whole.m * whole.n);
}

TEST(ReduceAddCostOf, ACallIsThePagesCostCard) {
  // As the chapter's card, except for the memory: a set of sums has 1024 x 4096 elements, a set of slots
  // eight times as many.
  const MatmulShape whole{8192, 4096, 32768};
  const Cost slots = FusedReduceScatter<__half>::cost(whole, 8, 3),
             sums = ReduceAdd<__half>::cost(whole, 8, 3);
  EXPECT_EQ(sums.messages, slots.messages);
  EXPECT_EQ(sums.bytes_out, slots.bytes_out);
  EXPECT_EQ(sums.bytes_in, slots.bytes_in);
  EXPECT_EQ(sums.launches, 1);
  EXPECT_EQ(sums.memory, 2 * 8'388'608 + 8 * 128 * 4);
  EXPECT_EQ((ReduceAdd<__half, F32Wire>::cost(whole, 8, 3).memory), 4 * 8'388'608 + 8 * 128 * 4);
}

}  // namespace
}  // namespace overlap::fused_reduce_scatter
