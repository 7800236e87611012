// Chapter 07 on any GPUs, and with the race detector: the caller may reuse A, B and C in its stream right
// after the call, because later work waits for the call.

#include "mlp_run.hpp"
#include "ownership.hpp"

namespace overlap::mlp_block {
namespace {

template <typename Block>
void expect_caller_owns_block(int ranks) {
  expect_caller_owns_matrices<Block, typename BlockTraits<Block>::Problem>(ranks);
}

const bool kOwnership = test_ownership(
    "Chapter07", {{"Vanilla", expect_caller_owns_block<VanillaBlock<__half>>},
                  {"SequenceParallel", expect_caller_owns_block<SequenceParallelBlock<__half>>},
                  {"Overlapped", expect_caller_owns_block<OverlappedBlock<__half>>}});

}  // namespace
}  // namespace overlap::mlp_block
