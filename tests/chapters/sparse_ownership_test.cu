// Chapters 08 to 15 on any GPUs, and with the race detector: calls at once, some of them without rows on some
// ranks.
#include "sparse_ownership.hpp"

#include <gtest/gtest.h>

#include "08_sparse_baselines/dense_all_reduce.cuh"
#include "08_sparse_baselines/host_all_reduce.cuh"
#include "09_sparse_v1_nonzero/nonzero.cuh"
#include "10_sparse_v2_where/where.cuh"
#include "11_sparse_v3_graph/graph.cuh"
#include "12_sparse_v4_broadcast_eq/broadcast_eq.cuh"
#include "13_sparse_v5_kernel/tile_search.cuh"
#include "14_sparse_v6_tiled/ordered_search.cuh"
#include "14_sparse_v6_tiled/prefetch_search.cuh"
#include "15_sparse_beyond/contributor_owners.cuh"
#include "15_sparse_beyond/fixed_owners.cuh"
#include "15_sparse_beyond/look_up.cuh"
#include "15_sparse_beyond/narrow_owners.cuh"
#include "15_sparse_beyond/planned_all_reduce.cuh"
#include "15_sparse_beyond/range_owners.cuh"

namespace overlap {
namespace {

class Chapter08 : public OnRanks {};
class Chapter09 : public OnRanks {};
class Chapter10 : public OnRanks {};
class Chapter11 : public OnRanks {};
class Chapter12 : public OnRanks {};
class Chapter13 : public OnRanks {};
class Chapter14 : public OnRanks {};
class Chapter15 : public OnRanks {};

const auto kRanks = testing::Values(1, 2, 3, 4, 8);
INSTANTIATE_TEST_SUITE_P(Ownership, Chapter08, kRanks, testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Ownership, Chapter09, kRanks, testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Ownership, Chapter10, kRanks, testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Ownership, Chapter11, kRanks, testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Ownership, Chapter12, kRanks, testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Ownership, Chapter13, kRanks, testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Ownership, Chapter14, kRanks, testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Ownership, Chapter15, kRanks, testing::PrintToStringParamName());

TEST_P(Chapter08, Dense) { expect_caller_owns_gradients<sparse_baselines::DenseAllReduce>(GetParam()); }
TEST_P(Chapter08, Host) { expect_caller_owns_gradients<sparse_baselines::HostAllReduce>(GetParam()); }
TEST_P(Chapter09, Nonzero) { expect_caller_owns_gradients<sparse_nonzero::NonzeroAllReduce>(GetParam()); }
TEST_P(Chapter10, Where) { expect_caller_owns_gradients<sparse_where::WhereAllReduce>(GetParam()); }
TEST_P(Chapter11, Graph) { expect_caller_owns_gradients<sparse_graph::GraphAllReduce>(GetParam()); }
TEST_P(Chapter12, BroadcastEq) {
  expect_caller_owns_gradients<sparse_broadcast_eq::BroadcastEqAllReduce>(GetParam());
}
TEST_P(Chapter13, TileSearch) {
  expect_caller_owns_gradients<sparse_kernel::TileSearchAllReduce>(GetParam());
}
TEST_P(Chapter14, OrderedSearch) {
  expect_caller_owns_gradients<sparse_tiled::OrderedSearchAllReduce>(GetParam());
}
TEST_P(Chapter14, PrefetchSearch) {
  expect_caller_owns_gradients<sparse_tiled::PrefetchSearchAllReduce>(GetParam());
}
TEST_P(Chapter15, Table) { expect_caller_owns_gradients<sparse_beyond::TableAllReduce>(GetParam()); }
TEST_P(Chapter15, BitmapPlan) {
  expect_caller_owns_gradients<sparse_beyond::BitmapPlanAllReduce>(GetParam());
}
TEST_P(Chapter15, RangeOwners) {
  expect_caller_owns_gradients<sparse_beyond::RangeOwnersAllReduce>(GetParam());
}
TEST_P(Chapter15, ContributorOwners) {
  expect_caller_owns_gradients<sparse_beyond::ContributorOwnersAllReduce>(GetParam());
}
TEST_P(Chapter15, NarrowOwners) {
  expect_caller_owns_gradients<sparse_beyond::Bf16OwnersAllReduce>(GetParam());
}
TEST_P(Chapter15, ReduceScatter) { expect_caller_owns_gradients<sparse_beyond::ReduceScatter>(GetParam()); }
TEST_P(Chapter15, ReduceScatterFetch) {
  expect_caller_owns_gradients<sparse_beyond::ReduceScatterFetch>(GetParam());
}

}  // namespace
}  // namespace overlap
