#include "overlap/bench/timing.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "overlap/gpu/backend.hpp"

namespace overlap {
namespace {

TEST(SummariseTest, OneSample) {
  const Summary summary = summarise({3.5});
  EXPECT_EQ(summary.median, 3.5);
  EXPECT_EQ(summary.p99, 3.5);
  EXPECT_EQ(summary.min, 3.5);
  EXPECT_EQ(summary.max, 3.5);
  EXPECT_EQ(summary.samples, 1);
}

TEST(SummariseTest, OddAndEven) {
  EXPECT_EQ(summarise({9, 1, 5}).median, 5);
  const Summary summary = summarise({9, 1, 5, 7});
  EXPECT_EQ(summary.median, 6);
  EXPECT_EQ(summary.min, 1);
  EXPECT_EQ(summary.max, 9);
  EXPECT_EQ(summary.p99, 9);
  EXPECT_EQ(summary.samples, 4);
}

// Nearest rank: ceil(0.99 count), counted from 1.
TEST(SummariseTest, Percentile99) {
  const auto p99_of = [](int count) {
    std::vector<double> samples;
    for (int i = count; i >= 1; --i) samples.push_back(i);
    return summarise(samples).p99;
  };
  EXPECT_EQ(p99_of(99), 99);
  EXPECT_EQ(p99_of(100), 99);
  EXPECT_EQ(p99_of(101), 100);
  EXPECT_EQ(p99_of(200), 198);
  EXPECT_EQ(p99_of(1000), 990);
}

TEST(SummariseTest, RefusesWhatHasNoOrder) {
  EXPECT_THROW(summarise({}), std::invalid_argument);
  EXPECT_THROW(summarise({1.0, std::nan("")}), std::invalid_argument);
}

TEST(HostTimerTest, NeverRunsBackwards) {
  const double before = backend::host_ms();
  const HostTimer timer;
  const double first = timer.milliseconds();
  const double second = timer.milliseconds();
  EXPECT_GE(first, 0);
  EXPECT_GE(second, first);
  EXPECT_LE(second, backend::host_ms() - before);
}

}  // namespace
}  // namespace overlap
