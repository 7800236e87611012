// Chapter 09 on virtual GPUs: right in any order of events, moving just the bytes of its cost card, and with
// nearly all of its time in the search.
#include <gtest/gtest.h>

#include "09_sparse_v1_nonzero/nonzero.cuh"
#include "sparse_virtual_tests.hpp"

namespace overlap {
namespace {

TEST_F(OnVirtualGpus, IsRightInTenSchedules) { expect_right_in_schedules<NonzeroAllReduce>(10); }

TEST_F(OnVirtualGpus, SameSeedSameSchedule) { expect_same_schedule_for_the_same_seed<NonzeroAllReduce>(); }

TEST_F(OnVirtualGpus, MovesTheBytesOfItsCostCard) {
  expect_traffic_of_the_cost_card<NonzeroAllReduce, std::int32_t, float>(RowPattern::kUniform, 20);
  expect_traffic_of_the_cost_card<NonzeroAllReduce, std::int64_t, __half>(RowPattern::kUneven, 13);
  expect_traffic_of_the_cost_card<NonzeroAllReduce, std::int32_t, float>(RowPattern::kUniform, 0);
}

TEST_F(OnVirtualGpus, NearlyAllOfTheModelledTimeGoesIntoTheSearch) {
  const ModelledTimes few = modelled_times<NonzeroAllReduce>(4, 60),
                      more = modelled_times<NonzeroAllReduce>(4, 240);
  EXPECT_GT(more.map, 0.9 * more.call);
  // A wait for each row: four times the rows take four times as long.
  EXPECT_GT(more.map, 3.8 * few.map);
}

}  // namespace
}  // namespace overlap
