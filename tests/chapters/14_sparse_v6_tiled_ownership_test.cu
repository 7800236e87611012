// Chapter 14 on any GPUs, and with the race detector: calls enqueued one after the other, in some of
// them some ranks have no rows.
#include "14_sparse_v6_tiled/ordered_search.cuh"
#include "14_sparse_v6_tiled/prefetch_search.cuh"

#include <gtest/gtest.h>

#include "sparse_ownership.hpp"

namespace overlap::sparse_tiled {
namespace {

class Chapter14 : public OnRanks {};
INSTANTIATE_TEST_SUITE_P(Ownership, Chapter14, testing::Values(1, 2, 3, 4, 8),
                         testing::PrintToStringParamName());

TEST_P(Chapter14, OrderedSearch) { expect_caller_owns_gradients<OrderedSearchAllReduce>(GetParam()); }
TEST_P(Chapter14, PrefetchSearch) { expect_caller_owns_gradients<PrefetchSearchAllReduce>(GetParam()); }

}  // namespace
}  // namespace overlap::sparse_tiled
