#include "overlap/gpu/backend.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "overlap/gpu/error.hpp"

namespace overlap {
namespace {

TEST(BackendTest, NamesItself) {
  EXPECT_STREQ(backend::name(), backend::modelled_time() ? "virtual" : "cuda");
}

TEST(BackendTest, VirtualGpusAreAlwaysThere) {
  if (!backend::modelled_time()) GTEST_SKIP() << "real GPUs";
  EXPECT_EQ(backend::unavailable(), "");
}

TEST(BackendTest, TheStampNamesEachFactOnce) {
  std::set<std::string> names;
  for (const auto& [name, value] : backend::hardware()) {
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_FALSE(value.empty()) << name;
  }
  EXPECT_TRUE(names.contains("gpu"));
  EXPECT_TRUE(names.contains("gpus"));
  if (!backend::modelled_time()) {
    for (const char* fact : {"driver", "toolkit", "max_sm_clock", "power_limit"})
      EXPECT_TRUE(names.contains(fact));
  }
}

TEST(BackendTest, HostWorkTakesModelledTime) {
  const double before = backend::host_ms();
  backend::host_work(30'000'000);
  const double passed = backend::host_ms() - before;
  if (backend::modelled_time()) {
    EXPECT_NEAR(passed, 10, 1e-6);  // at 3 GB/s (machines/small.json)
  } else {
    EXPECT_LT(passed, 10);
  }
}

TEST(BackendTest, APlaceIsToldOrUnknown) {
  const backend::GpuPlace place = backend::place_of(0);
  if (backend::modelled_time()) {
    EXPECT_EQ(place.bus_id, "unknown");
    EXPECT_EQ(place.numa_node, "unknown");
  } else {
    EXPECT_EQ(std::count(place.bus_id.begin(), place.bus_id.end(), ':'), 2) << place.bus_id;
    EXPECT_FALSE(place.numa_node.empty());
  }
  EXPECT_EQ(backend::place_of(99).bus_id, "unknown");
}

TEST(BackendTest, NothingHasFailed) {
  EXPECT_EQ(backend::failure_exit_code(), kExitFailed);
  EXPECT_EQ(backend::failure_context(), "");
}

TEST(BackendTest, RealGpusRefuseWhatOnlyVirtualOnesCan) {
  if (backend::modelled_time()) GTEST_SKIP() << "virtual GPUs";
  EXPECT_NO_THROW(backend::configure({}));
  EXPECT_THROW(backend::configure({.schedule = 1, .machine = ""}), UsageError);
  EXPECT_THROW(backend::configure({.schedule = {}, .machine = "small"}), UsageError);
}

TEST(BackendTest, PrepareKeepsWhatTheUserHasSet) {
  if (backend::modelled_time()) GTEST_SKIP() << "virtual GPUs read no environment";
  const char* const kName = "CUDA_DEVICE_MAX_CONNECTIONS";
  ASSERT_EQ(setenv(kName, "4", 1), 0);
  backend::prepare();
  EXPECT_STREQ(std::getenv(kName), "4");
  EXPECT_EQ(backend::hardware_queues(), 4);
  ASSERT_EQ(unsetenv(kName), 0);
  EXPECT_EQ(backend::hardware_queues(), 8);
  backend::prepare();
  EXPECT_STREQ(std::getenv(kName), "32");
  EXPECT_EQ(backend::hardware_queues(), 32);
}

}  // namespace
}  // namespace overlap
