// The tests on virtual GPUs that every version of the sparse all-reduce has to pass. Included as
// sparse_version_suite.hpp is: after the definition of Version.
#pragma once

#include <gtest/gtest.h>

#include "sparse_virtual_tests.hpp"

namespace overlap {
namespace {

class OnVirtualGpus : public testing::Test {
 protected:
  void SetUp() override { vgpu::reset(); }
  void TearDown() override { vgpu::reset(); }
};

TEST_F(OnVirtualGpus, IsRightInTwentySchedules) { expect_right_in_schedules<Version>(20); }

TEST_F(OnVirtualGpus, SameSeedSameSchedule) {
  EXPECT_EQ(schedule_hash_of<Version>(17), schedule_hash_of<Version>(17));
  EXPECT_NE(schedule_hash_of<Version>(17), schedule_hash_of<Version>(18));
}

TEST_F(OnVirtualGpus, MovesTheBytesOfItsCostCard) {
  for (const int ranks : {1, 2, 3, 8}) expect_bytes_of_the_card<Version>(ranks);
}

}  // namespace
}  // namespace overlap
