// Chapters 17 to 19 on GPUs of compute capability 9.0, and with the race detector: what the caller gives to
// run() is its own again as soon as its stream is past the call, and not before. A program of its own: these
// kernels are built for no other GPU.
#include <gtest/gtest.h>

#include <vector>

#include "18_ring_in_kernel/ring_ahead.cuh"
#include "18_ring_in_kernel/ring_in_kernel.cuh"
#include "19_block_run.hpp"
#include "ownership.hpp"

namespace overlap {
namespace {

using T = __half;
using Small = tensor_core_gemm::Tile<64, 64, 2>;

class OnRanks : public testing::TestWithParam<int> {
 protected:
  /// Rows for all ranks, of several tiles, and fewer rows than ranks; each rank has `columns` columns.
  std::vector<MatmulShape> gathered() const { return {{70, 16 * GetParam(), 72}, {1, 8 * GetParam(), 8}}; }
  /// The same where each rank has a part of the depth.
  std::vector<MatmulShape> scattered() const { return {{70, 72, 16 * GetParam()}, {1, 8, 8 * GetParam()}}; }
};
class Chapter17 : public OnRanks {};
class Chapter18 : public OnRanks {};
class Chapter19 : public OnRanks {};

const auto kRanks = testing::Values(1, 2, 3, 4, 8);
INSTANTIATE_TEST_SUITE_P(Ownership, Chapter17, kRanks, testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Ownership, Chapter18, kRanks, testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Ownership, Chapter19, kRanks, testing::PrintToStringParamName());

TEST_P(Chapter17, GemmOnSignals) {
  using Gemm = gemm_on_signals::GemmOnSignals<T, wgmma::Major::kMN, Small>;
  for (const int pieces : {1, 2})
    expect_caller_owns_all_matrices<Gemm, GatherProblem<T>>(GetParam(), gathered(), pieces);
}

TEST_P(Chapter18, RingInKernel) {
  expect_caller_owns_all_matrices<ring_in_kernel::RingInKernel<T, Small>, GatherProblem<T>>(GetParam(),
                                                                                            gathered());
}
TEST_P(Chapter18, RingAhead) {
  expect_caller_owns_all_matrices<ring_in_kernel::RingAhead<T, tensor_core_gemm::Tile<64, 64, 3>>,
                                  GatherProblem<T>>(GetParam(), gathered());
}

TEST_P(Chapter19, FusedReduceScatter) {
  using fused_reduce_scatter::FusedReduceScatter, fused_reduce_scatter::SixteenBitWire,
      fused_reduce_scatter::F32Wire;
  expect_caller_owns_all_matrices<FusedReduceScatter<T, SixteenBitWire, Small>, ScatterProblem<T>>(
      GetParam(), scattered());
  expect_caller_owns_all_matrices<FusedReduceScatter<T, F32Wire, Small>, ScatterProblem<T>>(GetParam(),
                                                                                            scattered());
}
TEST_P(Chapter19, Block) {
  expect_caller_owns_all_matrices<fused_reduce_scatter::SmallBlock<T>, MlpProblem<T>>(GetParam(), gathered());
}

}  // namespace
}  // namespace overlap
