// Chapter 13 on virtual GPUs: right in any order of events, moving just the bytes of its cost card, and
// faster than the loop of version 2.
#include <gtest/gtest.h>

#include <cstdint>

#include "10_sparse_v2_where/where.cuh"
#include "13_sparse_v5_kernel/tile_search.cuh"

namespace overlap {

template <SparseIndex Index, Floating T>
using Version = TileSearchAllReduce<Index, T>;

}  // namespace overlap

#include "sparse_virtual_suite.hpp"  // for Version

namespace overlap {
namespace {

// One launch, where version 2 has two for each row. (Against version 4 the model has no say: it counts what
// threads do, and not the bytes of the matrix.)
TEST_F(OnVirtualGpus, IsFasterThanVersion2InTheModel) {
  const SparseData data({1000, 8, 60}, 4, RowPattern::kUniform, 0, 1);
  EXPECT_LT(2 * map_ms<TileSearchAllReduce>(data), map_ms<WhereAllReduce>(data));
}

}  // namespace
}  // namespace overlap
