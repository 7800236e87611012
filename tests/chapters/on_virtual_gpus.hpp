// What the chapters' tests on virtual GPUs share.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "vgpu/control.hpp"

namespace overlap {

/// Each test begins with virtual GPUs as they were at the start of the program: nothing counted, time order.
class OnVirtualGpus : public testing::Test {
 protected:
  void SetUp() override { vgpu::reset(); }
  void TearDown() override { vgpu::reset(); }
};

/// Calls `test(seed)` in so many random orders of events, each on fresh virtual GPUs.
template <typename Test>
void in_random_schedules(std::uint64_t count, const Test& test) {
  for (std::uint64_t seed = 1; seed <= count; ++seed) {
    SCOPED_TRACE("schedule " + std::to_string(seed));
    vgpu::reset();
    vgpu::use_schedule(seed);
    test(seed);
  }
}

/// `run` takes the same order of events twice from one seed, and another order from another seed.
template <typename Run>
void expect_same_seed_same_schedule(const Run& run) {
  const auto hash = [&run](std::uint64_t seed) {
    vgpu::reset();
    vgpu::use_schedule(seed);
    run();
    return vgpu::schedule_hash();
  };
  EXPECT_EQ(hash(17), hash(17));
  EXPECT_NE(hash(17), hash(18));
}

}  // namespace overlap
