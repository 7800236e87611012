// Chapter 13 on virtual GPUs: right in any order of events, moving just the bytes of its cost card, and
// faster than the version before it.
#include <gtest/gtest.h>

#include <cstdint>

#include "12_sparse_v4_broadcast_eq/broadcast_eq.cuh"
#include "13_sparse_v5_kernel/tile_search.cuh"
#include "sparse_virtual_tests.hpp"

namespace overlap {
namespace {

class OnVirtualGpus : public testing::Test {
 protected:
  void SetUp() override { vgpu::reset(); }
  void TearDown() override { vgpu::reset(); }
};

TEST_F(OnVirtualGpus, IsRightInTwentySchedules) { expect_right_in_schedules<TileSearchAllReduce>(20); }

TEST_F(OnVirtualGpus, SameSeedSameSchedule) {
  EXPECT_EQ(schedule_hash_of<TileSearchAllReduce>(17), schedule_hash_of<TileSearchAllReduce>(17));
  EXPECT_NE(schedule_hash_of<TileSearchAllReduce>(17), schedule_hash_of<TileSearchAllReduce>(18));
}

TEST_F(OnVirtualGpus, MovesTheBytesOfItsCostCard) {
  for (const int ranks : {1, 2, 3, 8}) expect_bytes_of_the_card<TileSearchAllReduce>(ranks);
}

// The same comparisons, and no matrix. With fewer rows than a block has threads both are idle for the most
// part.
TEST_F(OnVirtualGpus, IsFasterThanVersion4InTheModel) {
  for (const std::int64_t rows : {300, 900}) {
    const SparseData data({20 * rows, 8, rows}, 4, RowPattern::kUniform, 0, 1);
    EXPECT_LT(map_ms<TileSearchAllReduce>(data), map_ms<BroadcastEqAllReduce>(data)) << rows << " rows";
  }
}

}  // namespace
}  // namespace overlap
