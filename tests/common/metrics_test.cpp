#include "overlap/bench/metrics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

namespace overlap {
namespace {

TEST(MetricsTest, Products) {
  EXPECT_EQ(flops({4096, 8192, 1024}), 68719476736.0);
  EXPECT_EQ(flops({0, 5, 5}), 0);
  EXPECT_EQ(operand_bytes({3, 5, 7}, 2), 2 * (21 + 35 + 15));
  EXPECT_EQ(operand_bytes({0, 5, 7}, 4), 4 * 35);
  EXPECT_THROW(operand_bytes({3, -5, 7}, 2), std::invalid_argument);
  EXPECT_DOUBLE_EQ(tflops({4096, 8192, 1024}, 0.5), 137.438953472);
  EXPECT_DOUBLE_EQ(percent_of(495, 990), 50);
  EXPECT_DOUBLE_EQ(percent_of(0, 990), 0);
}

TEST(MetricsTest, Communication) {
  EXPECT_DOUBLE_EQ(exposed_ms(1.25, 1), 0.25);
  EXPECT_DOUBLE_EQ(exposed_ms(0.75, 1), -0.25);  // noise is reported unchanged
  EXPECT_DOUBLE_EQ(hidden_percent(1.25, 1, 0.5), 50);
  EXPECT_DOUBLE_EQ(hidden_percent(1, 1, 0.5), 100);
  EXPECT_DOUBLE_EQ(hidden_percent(1.5, 1, 0.5), 0);
}

// The factors of nccl-tests' doc/PERFORMANCE.md: (n - 1) / n, and 2 (n - 1) / n for an all-reduce.
TEST(MetricsTest, BusBandwidth) {
  const std::int64_t bytes = 800'000'000;
  EXPECT_DOUBLE_EQ(algorithm_bandwidth(bytes, 2), 400);
  EXPECT_DOUBLE_EQ(bus_bandwidth_all_gather(bytes, 8, 2), 350);
  EXPECT_DOUBLE_EQ(bus_bandwidth_all_reduce(bytes, 8, 2), 700);
  EXPECT_DOUBLE_EQ(bus_bandwidth_all_reduce(bytes, 2, 2), 400);
  EXPECT_DOUBLE_EQ(bus_bandwidth_all_gather(bytes, 1, 2), 0);
  EXPECT_DOUBLE_EQ(bus_bandwidth_all_gather(0, 4, 2), 0);
}

TEST(MetricsTest, RefuseWhatHasNoRate) {
  for (const double bad : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_THROW(tflops({1, 1, 1}, bad), std::invalid_argument);
    EXPECT_THROW(percent_of(1, bad), std::invalid_argument);
    EXPECT_THROW(exposed_ms(bad, 1), std::invalid_argument);
    EXPECT_THROW(exposed_ms(1, bad), std::invalid_argument);
    EXPECT_THROW(hidden_percent(1, 1, bad), std::invalid_argument);
    EXPECT_THROW(algorithm_bandwidth(1, bad), std::invalid_argument);
  }
  EXPECT_THROW(flops({-1, 1, 1}), std::invalid_argument);
  EXPECT_THROW(algorithm_bandwidth(-1, 1), std::invalid_argument);
  EXPECT_THROW(bus_bandwidth_all_gather(1, 0, 1), std::invalid_argument);
  EXPECT_THROW(bus_bandwidth_all_reduce(1, -1, 1), std::invalid_argument);
}

}  // namespace
}  // namespace overlap
