// Chapter 10 on virtual GPUs: right in any order of events, moving just the bytes of its cost card, faster
// than version 1, and still bound by its launches.
#include <gtest/gtest.h>

#include "10_sparse_v2_where/where.cuh"

namespace overlap {

template <SparseIndex Index, Floating T>
using Version = WhereAllReduce<Index, T>;

}  // namespace overlap

#include "sparse_virtual_suite.hpp"  // for Version

namespace overlap {
namespace {

SparseData uniform(int ranks, std::int64_t entries) {
  return SparseData({17 * entries, 8, entries}, ranks, RowPattern::kUniform, 0, 1);
}

TEST_F(OnVirtualGpus, IsFasterThanVersion1InTheModel) {
  for (const int ranks : {1, 4, 8}) {
    const SparseData data = uniform(ranks, 120);
    EXPECT_LT(map_ms<WhereAllReduce>(data), 0.8 * map_ms<NonzeroAllReduce>(data)) << ranks << " ranks";
  }
}

// Eight ranks have about seven times as many global rows to compare with as one has. If the comparisons took
// the time, it would be seven times as long.
TEST_F(OnVirtualGpus, IsBoundByItsLaunchesInTheModel) {
  const double one = map_ms<WhereAllReduce>(uniform(1, 120));
  EXPECT_LT(map_ms<WhereAllReduce>(uniform(8, 120)), 1.5 * one);
  EXPECT_GT(map_ms<WhereAllReduce>(uniform(1, 240)), 1.9 * one);
}

}  // namespace
}  // namespace overlap
