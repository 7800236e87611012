// Chapter 15 on any GPUs, and with the race detector: calls enqueued one after the other, in some of
// them some ranks have no rows.
#include "15_sparse_beyond/contributor_owners.cuh"
#include "15_sparse_beyond/fixed_owners.cuh"
#include "15_sparse_beyond/look_up.cuh"
#include "15_sparse_beyond/narrow_owners.cuh"
#include "15_sparse_beyond/planned_all_reduce.cuh"
#include "15_sparse_beyond/range_owners.cuh"

#include <gtest/gtest.h>

#include "sparse_ownership.hpp"

namespace overlap::sparse_beyond {
namespace {

class Chapter15 : public OnRanks {};
INSTANTIATE_TEST_SUITE_P(Ownership, Chapter15, testing::Values(1, 2, 3, 4, 8),
                         testing::PrintToStringParamName());

TEST_P(Chapter15, Table) { expect_caller_owns_gradients<TableAllReduce>(GetParam()); }
TEST_P(Chapter15, BitmapPlan) { expect_caller_owns_gradients<BitmapPlanAllReduce>(GetParam()); }
TEST_P(Chapter15, RangeOwners) { expect_caller_owns_gradients<RangeOwnersAllReduce>(GetParam()); }
TEST_P(Chapter15, ContributorOwners) { expect_caller_owns_gradients<ContributorOwnersAllReduce>(GetParam()); }
TEST_P(Chapter15, NarrowOwners) { expect_caller_owns_gradients<Bf16OwnersAllReduce>(GetParam()); }
TEST_P(Chapter15, ReduceScatter) { expect_caller_owns_gradients<ReduceScatter>(GetParam()); }
TEST_P(Chapter15, ReduceScatterFetch) { expect_caller_owns_gradients<ReduceScatterFetch>(GetParam()); }

}  // namespace
}  // namespace overlap::sparse_beyond
