// Chapters 02 to 08 on any GPUs, and with the race detector: what the caller gives to run() is its own again
// as soon as its stream is past the call, and not before.
#include "ownership.hpp"

#include <gtest/gtest.h>

#include "02_gather_then_multiply/gather_then_multiply.cuh"
#include "03_ring_all_gather/ring_all_gather.cuh"
#include "04_copy_engine/copy_engine_ring.cuh"
#include "05_two_streams/experiments/openings.cuh"
#include "05_two_streams/ring_two_streams.cuh"
#include "06_reduce_scatter/all_to_all_sum.cuh"
#include "06_reduce_scatter/multiply_then_scatter.cuh"
#include "06_reduce_scatter/rotating_accumulators.cuh"
#include "mlp_run.hpp"

namespace overlap {
namespace {

using T = __half;

class OnRanks : public testing::TestWithParam<int> {};
class Chapter02 : public OnRanks {};
class Chapter03 : public OnRanks {};
class Chapter04 : public OnRanks {};
class Chapter05 : public OnRanks {};
class Chapter06 : public OnRanks {};
class Chapter07 : public OnRanks {};

const auto kRanks = testing::Values(1, 2, 3, 4, 8);
INSTANTIATE_TEST_SUITE_P(Ownership, Chapter02, kRanks, testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Ownership, Chapter03, kRanks, testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Ownership, Chapter04, kRanks, testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Ownership, Chapter05, kRanks, testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Ownership, Chapter06, kRanks, testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Ownership, Chapter07, kRanks, testing::PrintToStringParamName());

template <typename Algorithm, typename... More>
void expect_gather(int ranks, More... more) {
  expect_caller_owns_matrices<Algorithm, GatherProblem<T>>(ranks, more...);
}

template <typename Algorithm, typename... More>
void expect_scatter(int ranks, More... more) {
  expect_caller_owns_matrices<Algorithm, ScatterProblem<T>>(ranks, more...);
}

template <typename Block>
void expect_block(int ranks) {
  expect_caller_owns_matrices<Block, typename BlockTraits<Block>::Problem>(ranks);
}

TEST_P(Chapter02, GatherThenMultiply) {
  expect_gather<gather_then_multiply::GatherThenMultiply<T>>(GetParam());
}

TEST_P(Chapter03, RingAllGather) { expect_gather<ring_all_gather::RingAllGatherMatmul<T>>(GetParam()); }

TEST_P(Chapter04, CopyEngineRing) { expect_gather<copy_engine::CopyEngineRing<T>>(GetParam()); }

TEST_P(Chapter05, RingTwoStreams) { expect_gather<two_streams::RingTwoStreams<T>>(GetParam()); }
TEST_P(Chapter05, PullTwoStreams) {
  using two_streams::Opening;
  for (const Opening opening :
       {Opening::kBefore, Opening::kBeside, Opening::kCopyFirst, Opening::kAfter, Opening::kBarrierAfter}) {
    SCOPED_TRACE("opening " + std::to_string(static_cast<int>(opening)));
    expect_gather<two_streams::PullWithOpening<T>>(GetParam(), opening);
  }
}

TEST_P(Chapter06, MultiplyThenScatter) { expect_scatter<reduce_scatter::MultiplyThenScatter<T>>(GetParam()); }
TEST_P(Chapter06, RotatingAccumulators) {
  using reduce_scatter::Pass;
  using reduce_scatter::Start;
  for (const Start start : {Start::kFirstPartial, Start::kZeros}) {
    for (const Pass pass : {Pass::kStore, Pass::kCopy}) {
      SCOPED_TRACE("start " + std::to_string(static_cast<int>(start)) + ", pass " +
                   std::to_string(static_cast<int>(pass)));
      expect_scatter<reduce_scatter::RotatingAccumulators<T>>(GetParam(), start, pass);
    }
  }
}
TEST_P(Chapter06, AllToAllSum) { expect_scatter<reduce_scatter::AllToAllSum<T>>(GetParam()); }

TEST_P(Chapter07, Vanilla) { expect_block<mlp_block::VanillaBlock<T>>(GetParam()); }
TEST_P(Chapter07, SequenceParallel) { expect_block<mlp_block::SequenceParallelBlock<T>>(GetParam()); }
TEST_P(Chapter07, Overlapped) { expect_block<mlp_block::OverlappedBlock<T>>(GetParam()); }

}  // namespace
}  // namespace overlap
