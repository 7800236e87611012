#include "overlap/gpu/backend/handle_pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace overlap {
namespace {

using Pool = HandlePool<std::string, std::unique_ptr<int>>;

void give_back(Pool& pool, const std::string& kind, int handle) {
  pool.give_back(kind, std::make_unique<int>(handle));
}
/// The handle taken from the pool; 0 if there is none.
int take(Pool& pool, const std::string& kind) {
  const auto handle = pool.take(kind);
  return handle ? **handle : 0;
}

TEST(HandlePoolTest, HasNothingAtFirst) {
  Pool pool;
  EXPECT_FALSE(pool.take("stream"));
  EXPECT_EQ(pool.idle("stream"), 0u);
  EXPECT_TRUE(pool.take_all().empty());
}

TEST(HandlePoolTest, GivesEachHandleOnceAndTheLastOneFirst) {
  Pool pool;
  for (const int handle : {1, 2, 3}) give_back(pool, "stream", handle);
  EXPECT_EQ(pool.idle("stream"), 3u);
  EXPECT_EQ(take(pool, "stream"), 3);
  give_back(pool, "stream", 4);
  EXPECT_EQ(take(pool, "stream"), 4);
  EXPECT_EQ(take(pool, "stream"), 2);
  EXPECT_EQ(take(pool, "stream"), 1);
  EXPECT_EQ(take(pool, "stream"), 0);
}

TEST(HandlePoolTest, KindsAreKeptApart) {
  Pool pool;
  give_back(pool, "high", 1);
  give_back(pool, "normal", 2);
  give_back(pool, "high", 3);
  EXPECT_EQ(take(pool, "low"), 0);
  EXPECT_EQ(take(pool, "normal"), 2);
  EXPECT_EQ(take(pool, "normal"), 0);
  EXPECT_EQ(pool.idle("high"), 2u);
  EXPECT_EQ(take(pool, "high"), 3);
  EXPECT_EQ(take(pool, "high"), 1);
}

TEST(HandlePoolTest, TakesWhateverKindIsWanted) {
  Pool pool;
  give_back(pool, "gpu0 high", 1);
  give_back(pool, "gpu1 high", 2);
  give_back(pool, "gpu0 normal", 3);
  const auto on_gpu0 = [](const std::string& kind) { return kind.starts_with("gpu0"); };
  EXPECT_EQ(**pool.take_where(on_gpu0), 3);
  EXPECT_EQ(**pool.take_where(on_gpu0), 1);
  EXPECT_FALSE(pool.take_where(on_gpu0));
  EXPECT_EQ(pool.idle("gpu1 high"), 1u);
}

TEST(HandlePoolTest, AllOfThemAreDroppedAtOnce) {
  Pool pool;
  give_back(pool, "high", 1);
  give_back(pool, "normal", 2);
  EXPECT_EQ(pool.take_all().size(), 2u);
  EXPECT_EQ(pool.idle("high") + pool.idle("normal"), 0u);
}

/// A handle whose destructor reads the pool, as a stream's does to release its slot.
struct Curious {
  HandlePool<int, Curious>* pool;
  std::atomic<int>* destroyed;
  Curious(HandlePool<int, Curious>& from, std::atomic<int>& count) : pool(&from), destroyed(&count) {}
  Curious(Curious&& other) noexcept : pool(std::exchange(other.pool, nullptr)), destroyed(other.destroyed) {}
  Curious& operator=(Curious&& other) noexcept {
    std::swap(pool, other.pool);
    return *this;
  }
  ~Curious() {
    if (pool == nullptr) return;
    EXPECT_LE(pool->idle(7), 2u);
    ++*destroyed;
  }
};

TEST(HandlePoolTest, DropsEachHandleOnceAndNotUnderItsLock) {
  std::atomic<int> destroyed = 0;
  HandlePool<int, Curious> pool;
  for (int i = 0; i < 3; ++i) pool.give_back(7, Curious(pool, destroyed));
  EXPECT_EQ(destroyed, 0);
  pool.take(7);
  EXPECT_EQ(destroyed, 1);
  pool.take_all();
  EXPECT_EQ(destroyed, 3);
}

TEST(HandlePoolTest, ThreadsNeverHaveTheSameHandle) {
  Pool pool;
  constexpr int kHandles = 4, kRounds = 50000;
  std::vector<std::atomic<int>> users(kHandles);
  for (int handle = 0; handle < kHandles; ++handle) give_back(pool, "stream", handle);
  std::atomic<int> shared = 0, taken = 0;
  constexpr int kThreads = 8;
  std::latch start(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      start.arrive_and_wait();
      for (int round = 0; round < kRounds; ++round) {
        auto handle = pool.take("stream");
        if (!handle) continue;
        std::atomic<int>& mine = users[static_cast<std::size_t>(**handle)];
        if (++mine != 1) ++shared;
        ++taken;
        --mine;
        pool.give_back("stream", std::move(*handle));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(shared, 0);
  EXPECT_GE(taken, kRounds);
  EXPECT_EQ(pool.idle("stream"), static_cast<std::size_t>(kHandles));
}

}  // namespace
}  // namespace overlap
