// Chapter 13 on any GPUs, and with the race detector: calls enqueued one after the other, in some of
// them some ranks have no rows.
#include "13_sparse_v5_kernel/tile_search.cuh"

#include <gtest/gtest.h>

#include "sparse_ownership.hpp"

namespace overlap::sparse_kernel {
namespace {

class Chapter13 : public OnRanks {};
INSTANTIATE_TEST_SUITE_P(Ownership, Chapter13, testing::Values(1, 2, 3, 4, 8),
                         testing::PrintToStringParamName());

TEST_P(Chapter13, TileSearch) { expect_caller_owns_gradients<TileSearchAllReduce>(GetParam()); }

}  // namespace
}  // namespace overlap::sparse_kernel
