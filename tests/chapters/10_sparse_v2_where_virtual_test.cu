// Chapter 10 on virtual GPUs: right in any order of events, moving just the bytes of its cost card, faster
// than version 1, and still bound by its launches.
#include <gtest/gtest.h>

#include "10_sparse_v2_where/where.cuh"
#include "sparse_virtual_tests.hpp"

namespace overlap {
namespace {

TEST_F(OnVirtualGpus, IsRightInTenSchedules) { expect_right_in_schedules<WhereAllReduce>(10); }

TEST_F(OnVirtualGpus, SameSeedSameSchedule) { expect_same_schedule_for_the_same_seed<WhereAllReduce>(); }

TEST_F(OnVirtualGpus, MovesTheBytesOfItsCostCard) {
  expect_traffic_of_the_cost_card<WhereAllReduce, std::int32_t, float>(RowPattern::kUniform, 20);
  expect_traffic_of_the_cost_card<WhereAllReduce, std::int64_t, __half>(RowPattern::kUneven, 13);
}

TEST_F(OnVirtualGpus, IsFasterThanVersion1InTheModel) {
  for (const int ranks : {1, 4, 8}) {
    const ModelledTimes v1 = modelled_times<NonzeroAllReduce>(ranks, 120),
                        v2 = modelled_times<WhereAllReduce>(ranks, 120);
    EXPECT_LT(v2.map, 0.8 * v1.map) << ranks << " ranks";
    EXPECT_LT(v2.call, v1.call) << ranks << " ranks";
  }
}

// Eight ranks have about seven times as many global rows to compare as one has. If comparisons took the time,
// it would be seven times as long.
TEST_F(OnVirtualGpus, IsBoundByItsLaunchesInTheModel) {
  const ModelledTimes one = modelled_times<WhereAllReduce>(1, 120),
                      eight = modelled_times<WhereAllReduce>(8, 120),
                      twice = modelled_times<WhereAllReduce>(1, 240);
  EXPECT_LT(eight.map, 1.5 * one.map);
  EXPECT_GT(twice.map, 1.9 * one.map);
}

}  // namespace
}  // namespace overlap
