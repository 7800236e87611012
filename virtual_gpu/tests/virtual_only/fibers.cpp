// Fibers: many of them, each with its own stack and registers.
#include "engine/kernel/fiber.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace {

using vgpu::Fiber;
using vgpu::FiberPool;
using vgpu::switch_fiber;

Fiber main_fiber;
Fiber* running = nullptr;
FiberPool* pool = nullptr;
std::vector<long long> results;
std::vector<int> visits;
int next_id = 0;
int rounds = 0;

void resume(Fiber& fiber) {
  running = &fiber;
  switch_fiber(main_fiber, fiber);
}

/// Keeps integers and doubles across `rounds` switches, then releases its fiber.
void count() {
  Fiber& self = *running;
  const int id = next_id++;
  long long sum = id;
  double product = 1.0 + id;
  int a = id * 3, b = id * 5, c = id * 7, d = id * 11, e = id * 13;
  for (int round = 0; round < rounds; ++round) {
    sum += a + b + c + d + e;
    product *= 1.5;
    a = a + 1, b = b ^ 1, c = c - 1, d = d + 2, e = e ^ 3;
    visits.push_back(id);
    switch_fiber(self, main_fiber);
  }
  double expected = 1.0 + id;
  for (int round = 0; round < rounds; ++round) expected *= 1.5;
  results[id] = product == expected ? sum : -1;
  pool->put(self);
  switch_fiber(self, main_fiber);
}

long long expected_sum(int id) {
  long long sum = id, a = id * 3, b = id * 5, c = id * 7, d = id * 11, e = id * 13;
  for (int round = 0; round < rounds; ++round) {
    sum += a + b + c + d + e;
    a = a + 1, b = b ^ 1, c = c - 1, d = d + 2, e = e ^ 3;
  }
  return sum;
}

class FibersTest : public testing::Test {
 protected:
  static constexpr std::size_t kStack = 128 * 1024;
  void SetUp() override { pool = &stacks; }
  void start(int fibers, int switches) {
    results.assign(static_cast<std::size_t>(fibers), -2);
    visits.clear();
    next_id = 0;
    rounds = switches;
  }
  FiberPool stacks{kStack};
};

TEST_F(FibersTest, AThousandOfThemTakeTurns) {
  constexpr int kFibers = 1000;
  start(kFibers, 20);
  std::vector<Fiber*> fibers;
  for (int i = 0; i < kFibers; ++i) fibers.push_back(&stacks.get(&count));
  EXPECT_EQ(std::set<Fiber*>(fibers.begin(), fibers.end()).size(), fibers.size());
  for (int round = 0; round <= rounds; ++round) {
    for (Fiber* fiber : fibers) resume(*fiber);
  }
  ASSERT_EQ(visits.size(), 20u * kFibers);
  for (std::size_t i = 0; i < visits.size(); ++i) ASSERT_EQ(visits[i], static_cast<int>(i % kFibers));
  for (int id = 0; id < kFibers; ++id)
    ASSERT_EQ(results[static_cast<std::size_t>(id)], expected_sum(id)) << id;
}

TEST_F(FibersTest, StacksAreUsedAgain) {
  std::set<Fiber*> used;
  for (int i = 0; i < 100; ++i) {
    start(1, 1);
    Fiber& fiber = stacks.get(&count);
    used.insert(&fiber);
    resume(fiber);
    resume(fiber);
    ASSERT_EQ(results[0], expected_sum(0));
  }
  EXPECT_EQ(used.size(), 1u);
}

/// Writes almost all of its stack.
void fill_stack() {
  Fiber& self = *running;
  const int id = next_id++;
  volatile unsigned char memory[100 * 1024];
  for (std::size_t i = 0; i < sizeof(memory); ++i) memory[i] = static_cast<unsigned char>(i * 7 + id);
  switch_fiber(self, main_fiber);
  bool same = true;
  for (std::size_t i = 0; i < sizeof(memory); ++i) {
    same = same && memory[i] == static_cast<unsigned char>(i * 7 + id);
  }
  results[static_cast<std::size_t>(id)] = same;
  pool->put(self);
  switch_fiber(self, main_fiber);
}

TEST_F(FibersTest, StacksDoNotOverlap) {
  constexpr int kFibers = 50;
  start(kFibers, 0);
  std::vector<Fiber*> fibers;
  for (int i = 0; i < kFibers; ++i) fibers.push_back(&stacks.get(&fill_stack));
  for (Fiber* fiber : fibers) resume(*fiber);
  for (Fiber* fiber : fibers) resume(*fiber);
  EXPECT_EQ(results, std::vector<long long>(kFibers, 1));
}

}  // namespace
