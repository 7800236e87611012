#include "overlap/data/parallel.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace overlap {
namespace {

TEST(ParallelSharesTest, EachIndexOnce) {
  for (const std::int64_t total : {1, 2, 3, 1000}) {
    std::vector<int> visits(static_cast<std::size_t>(total), 0);
    const auto visit = [&](Range share) {
      EXPECT_FALSE(share.empty());
      for (std::int64_t i = share.begin; i < share.end; ++i) ++visits[static_cast<std::size_t>(i)];
    };
    parallel_shares(total, visit, 1);
    EXPECT_EQ(visits, std::vector<int>(static_cast<std::size_t>(total), 1));
  }
}

TEST(ParallelSharesTest, SharesAreNoSmallerThanAskedFor) {
  for (const std::int64_t total : {1, 99, 100, 101, 350}) {
    std::atomic<std::int64_t> covered = 0, smallest = total;
    parallel_shares(
        total,
        [&](Range share) {
          covered += share.size();
          for (std::int64_t seen = smallest;
               share.size() < seen && !smallest.compare_exchange_weak(seen, share.size());) {
          }
        },
        100);
    EXPECT_EQ(covered, total);
    EXPECT_GE(smallest, std::min<std::int64_t>(total, 100));
  }
}

TEST(ParallelSharesTest, LittleWorkStartsNoThread) {
  const auto caller = std::this_thread::get_id();
  int calls = 0;
  const auto count = [&](Range) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    ++calls;
  };
  parallel_shares(150, count, worth_a_thread(1000));
  parallel_shares(3, count, worth_a_thread(0));
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(worth_a_thread(std::int64_t{1} << 40), 1);
}

TEST(ParallelSharesTest, NothingToDo) {
  std::atomic<int> calls = 0;
  const auto count = [&](Range) { ++calls; };
  parallel_shares(0, count, 1);
  EXPECT_EQ(calls, 0);
}

TEST(ParallelSharesTest, ExceptionsReachTheCallerAfterAllHaveEnded) {
  std::atomic<int> ended = 0;
  std::atomic<int> started = 0;
  const auto fail = [&](Range share) {
    ++started;
    ++ended;
    throw std::runtime_error("share from " + std::to_string(share.begin));
  };
  try {
    parallel_shares(1000, fail, 1);
    FAIL() << "no exception";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "share from 0");
  }
  EXPECT_EQ(started, ended);
  // The last share, which has a thread of its own if there are two shares.
  const auto fail_in_the_last = [](Range share) {
    if (share.end == 1000) throw std::runtime_error("last");
  };
  EXPECT_THROW(parallel_shares(1000, fail_in_the_last, 1), std::runtime_error);
}

}  // namespace
}  // namespace overlap
