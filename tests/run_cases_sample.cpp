// Cases of each kind, for run_cases_test.py.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace {

TEST(Right, IsQuiet) { std::puts("nobody wants to read this"); }
TEST(Right, PrintsNoEndOfLine) { std::printf("half a line"); }
TEST(Skipped, SaysWhy) { GTEST_SKIP() << "no GPU here"; }
TEST(Wrong, Fails) { EXPECT_EQ(1 + 1, 3); }
TEST(Fatal, Crashes) {
  std::puts("about to crash");
  std::fflush(stdout);
  std::abort();
}
TEST(Fatal, ComesAfterTheCrash) {}
TEST(Stuck, Hangs) { std::this_thread::sleep_for(std::chrono::minutes(5)); }
TEST(Ends, TheProcess) { std::_Exit(3); }

class BrokenSuite : public testing::Test {
 protected:
  static void SetUpTestSuite() { ADD_FAILURE() << "no case fails by this"; }
};
TEST_F(BrokenSuite, HasACaseThatPasses) {}

class Numbers : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(All, Numbers, testing::Range(0, 10));
TEST_P(Numbers, AreSmall) { EXPECT_LT(GetParam(), 10); }

}  // namespace
