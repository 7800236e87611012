// Chapter 12 on virtual GPUs: right in any order of events, moving just the bytes of its cost card, and
// faster than the loop of version 2.
#include <gtest/gtest.h>

#include <cstdint>

#include "10_sparse_v2_where/where.cuh"
#include "12_sparse_v4_broadcast_eq/broadcast_eq.cuh"

namespace overlap {

template <SparseIndex Index, Floating T>
using Version = BroadcastEqAllReduce<Index, T>;

}  // namespace overlap

#include "sparse_virtual_suite.hpp"  // for Version

namespace overlap {
namespace {

// Two launches for all rows, where version 2 has two for each.
TEST_F(OnVirtualGpus, IsFasterThanVersion2InTheModel) {
  const SparseData data({1000, 8, 60}, 4, RowPattern::kUniform, 0, 1);
  EXPECT_LT(2 * map_ms<BroadcastEqAllReduce>(data), map_ms<WhereAllReduce>(data));
}

}  // namespace
}  // namespace overlap
