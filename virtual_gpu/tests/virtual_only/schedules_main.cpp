// Runs the scenarios of CUDA's semantics in time order and in 20 random schedules (--gtest_repeat=N: in N -
// 1); all must pass in each.
#include <gtest/gtest.h>

#include "vgpu/control.hpp"

namespace {

class Schedules : public testing::EmptyTestEventListener {
  void OnTestIterationStart(const testing::UnitTest&, int iteration) override { seed_ = iteration; }
  void OnTestStart(const testing::TestInfo&) override {
    vgpu::reset();
    if (seed_ != 0) vgpu::use_schedule(static_cast<std::uint64_t>(seed_));
  }
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (result.failed()) std::printf("with schedule %d (0 is the time order)\n", seed_);
  }
  int seed_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  GTEST_FLAG_SET(repeat, 21);
  GTEST_FLAG_SET(brief, true);
  GTEST_FLAG_SET(filter, "-SixteenBitTest/*:*.FloatsAreRoundedToTheNearest");  // independent of schedules
  testing::InitGoogleTest(&argc, argv);
  testing::UnitTest::GetInstance()->listeners().Append(new Schedules);  // GoogleTest owns it
  return RUN_ALL_TESTS();
}
