// Chapter 19 on any GPUs: partial sums are added in the order of the ranks, in f32, so each call gives the
// same bits.
#include <gtest/gtest.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "19_fused_reduce_scatter/fused_reduce_scatter.cuh"
#include "overlap/bench/dense_problem.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/ranks.hpp"

#include "summands.hpp"

namespace overlap::fused_reduce_scatter {
namespace {

/// Small tiles, so that small GEMMs have many.
template <SixteenBit T, typename Wire = SixteenBitWire>
using OnSmallTiles = FusedReduceScatter<T, Wire, tensor_core_gemm::Tile<64, 64, 2>>;

class SumsOnRanks : public testing::TestWithParam<int> {
 protected:
  /// A depth of which each rank gets `eights` times 8.
  std::int64_t depth(int eights) const { return std::int64_t{8} * eights * GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(FusedReduceScatter, SumsOnRanks, testing::Values(1, 2, 3, 4, 8),
                         testing::PrintToStringParamName());

/// Expected rows of C of a rank, for random normals: its own partial sums in f32 and the others' in the
/// wire's type, added in f32 in the order of the ranks, rounded once.
template <typename Algorithm, SixteenBit T>
std::vector<std::uint16_t> expected_bits(Rank& rank, const ScatterProblem<T>& problem) {
  const MatmulShape whole = problem.whole();
  const Range rows = balanced_share(whole.m, rank.size(), rank.id());
  const Summands<T, typename Algorithm::Tile> summands(rank, problem);
  std::vector<std::uint16_t> bits;
  for (std::int64_t i = rows.begin * whole.n; i < rows.end * whole.n; ++i) {
    float total = 0;
    for (int source = 0; source < rank.size(); ++source) {
      const float part = summands.of(source, i);
      const bool stays = source == rank.id() || std::same_as<typename Algorithm::W, float>;
      total += stays ? part : static_cast<float>(value_of(from_float<T>(part)));
    }
    bits.push_back(bits_of(from_float<T>(total)));
  }
  rank.barrier();  // the others have read the summands
  return bits;
}

template <typename Algorithm, SixteenBit T>
void expect_same_bits(int ranks, MatmulShape whole, int calls) {
  run_ranks(ranks, [&](Rank& rank) {
    ScatterProblem<T> problem(rank, whole, 5);
    Algorithm algorithm(rank, whole);
    problem.fill_normal();
    const std::vector<std::uint16_t> expected = expected_bits<Algorithm, T>(rank, problem);
    for (int call = 0; call < calls; ++call) {
      problem.poison_result();
      algorithm.run(problem.a(), problem.b(), problem.c(), rank.stream());
      rank.synchronize(rank.stream());
      std::vector<std::uint16_t> found(expected.size());
      if (!found.empty())
        CUDA_CHECK(cudaMemcpy(found.data(), problem.c(), found.size() * 2, cudaMemcpyDeviceToHost));
      ASSERT_EQ(found, expected) << "rank " << rank.id() << " of " << ranks << ", call " << call;
    }
    rank.barrier();
  });
}

TEST_P(SumsOnRanks, AddInTheOrderOfTheRanksInF32) {
  for (const MatmulShape shape : {MatmulShape{140, 72, depth(9)}, MatmulShape{5, 8, depth(2)}}) {
    expect_same_bits<OnSmallTiles<__half>, __half>(GetParam(), shape, 2);
    expect_same_bits<OnSmallTiles<__nv_bfloat16>, __nv_bfloat16>(GetParam(), shape, 2);
    expect_same_bits<OnSmallTiles<__half, F32Wire>, __half>(GetParam(), shape, 2);
    expect_same_bits<FusedReduceScatter<__half>, __half>(GetParam(), shape, 1);
  }
}

TEST(SameBits, InAHundredCalls) { expect_same_bits<OnSmallTiles<__half>, __half>(3, {130, 72, 24 * 5}, 100); }

}  // namespace
}  // namespace overlap::fused_reduce_scatter
