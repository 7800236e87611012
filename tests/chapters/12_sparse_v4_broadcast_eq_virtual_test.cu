// Chapter 12 on virtual GPUs: right in any order of events, moving just the bytes of its cost card, and
// faster than the loop of version 2.
#include <gtest/gtest.h>

#include <cstdint>

#include "10_sparse_v2_where/where.cuh"
#include "12_sparse_v4_broadcast_eq/broadcast_eq.cuh"
#include "sparse_virtual_tests.hpp"

namespace overlap {
namespace {

class OnVirtualGpus : public testing::Test {
 protected:
  void SetUp() override { vgpu::reset(); }
  void TearDown() override { vgpu::reset(); }
};

TEST_F(OnVirtualGpus, IsRightInTwentySchedules) { expect_right_in_schedules<BroadcastEqAllReduce>(20); }

TEST_F(OnVirtualGpus, SameSeedSameSchedule) {
  EXPECT_EQ(schedule_hash_of<BroadcastEqAllReduce>(17), schedule_hash_of<BroadcastEqAllReduce>(17));
  EXPECT_NE(schedule_hash_of<BroadcastEqAllReduce>(17), schedule_hash_of<BroadcastEqAllReduce>(18));
}

TEST_F(OnVirtualGpus, MovesTheBytesOfItsCostCard) {
  for (const int ranks : {1, 2, 3, 8}) expect_bytes_of_the_card<BroadcastEqAllReduce>(ranks);
}

// Two launches for all rows, where version 2 has two for each.
TEST_F(OnVirtualGpus, IsFasterThanVersion2InTheModel) {
  const SparseData data({1000, 8, 60}, 4, RowPattern::kUniform, 0, 1);
  EXPECT_LT(2 * map_ms<BroadcastEqAllReduce>(data), map_ms<WhereAllReduce>(data));
}

}  // namespace
}  // namespace overlap
