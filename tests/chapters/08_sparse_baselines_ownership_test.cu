// Chapter 08 on any GPUs, and with the race detector: calls enqueued one after the other, in some of
// them some ranks have no rows.
#include "08_sparse_baselines/dense_all_reduce.cuh"
#include "08_sparse_baselines/host_all_reduce.cuh"

#include <gtest/gtest.h>

#include "sparse_ownership.hpp"

namespace overlap::sparse_baselines {
namespace {

class Chapter08 : public OnRanks {};
INSTANTIATE_TEST_SUITE_P(Ownership, Chapter08, testing::Values(1, 2, 3, 4, 8),
                         testing::PrintToStringParamName());

TEST_P(Chapter08, Dense) { expect_caller_owns_gradients<DenseAllReduce>(GetParam()); }
TEST_P(Chapter08, Host) { expect_caller_owns_gradients<HostAllReduce>(GetParam()); }

}  // namespace
}  // namespace overlap::sparse_baselines
