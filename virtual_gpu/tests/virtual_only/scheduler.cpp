// The basis of the scheduler's decisions: repeated states, progress.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "engine/kernel/repetition.hpp"
#include "engine/runtime.hpp"

namespace virtual_only {
namespace {

using vgpu::Repetition;

/// The index of the first state after which the sequence repeats itself; -1 if none of the first `count`
/// does.
template <class Sequence>
int repeats_from(Sequence sequence, int count) {
  Repetition repetition;
  for (int i = 0; i < count; ++i) {
    if (repetition.add(static_cast<std::uint64_t>(sequence(i)))) return i;
  }
  return -1;
}

TEST(RepetitionTest, FindsPeriods) {
  EXPECT_EQ(repeats_from([](int) { return 7; }, 10), 1);
  for (const int period : {2, 3, 5, 17, 100, 128}) {
    const int found = repeats_from([period](int i) { return 1 + i % period; }, 1000);
    EXPECT_GE(found, period);
    EXPECT_LE(found, 3 * 128);
  }
}

TEST(RepetitionTest, FindsNoneInASequenceThatGoesOn) {
  EXPECT_EQ(repeats_from([](int i) { return 1 + i; }, 10'000), -1);
  EXPECT_EQ(repeats_from([](int i) { return 1 + i * i; }, 10'000), -1);
}

TEST(RepetitionTest, FindsTheOneBehindABeginning) {
  const int found = repeats_from([](int i) { return 1 + (i < 300 ? i : 300 + i % 4); }, 1000);
  EXPECT_GE(found, 304);
  EXPECT_LE(found, 600);
}

TEST(RepetitionTest, HoldsBetweenRepetitionsAndEnds) {
  Repetition repetition;
  for (int i = 0; i < 20; ++i) repetition.add(1 + i % 3);
  for (int i = 20; i < 30; ++i) EXPECT_TRUE(repetition.add(1 + i % 3));
  for (int i = 0; i < 3; ++i) repetition.add(100 + i);
  EXPECT_FALSE(repetition.add(104));
}

/// Offers a poll that asks for other possible steps; then work, which ends it.
class PollThatLooks final : public vgpu::Operation {
 public:
  explicit PollThatLooks(std::vector<std::uint64_t>& progress) : progress_(progress) {}
  void begin(double) override {}
  void offer(std::vector<vgpu::Step>& steps) override { steps.push_back({0, this, 0, progress_.empty()}); }
  void step(const vgpu::Step&) override {
    progress_.push_back(vgpu::runtime().schedule().progress());
    if (progress_.size() == 2) return finish(0);
    vgpu::runtime().scheduler().work_is_left();
  }
  std::string describe() const override { return "poll"; }

 private:
  std::vector<std::uint64_t>& progress_;  // the scheduler's progress at each step
};

TEST(SchedulerTest, StepMayLookWhatElseCouldHappen) {
  vgpu::reset();
  std::vector<std::uint64_t> progress;
  vgpu::Runtime& runtime = vgpu::runtime();
  vgpu::Stream& stream = runtime.device(0).add_stream(false);
  runtime.queues().enqueue(stream, std::make_unique<PollThatLooks>(progress));
  for (int i = 0; i < 100 && !runtime.waits().observe(stream.last()); ++i) runtime.host().spend(1000);
  ASSERT_EQ(progress.size(), 2u);
  EXPECT_EQ(progress[0], progress[1]) << "a poll is no progress";
  vgpu::reset();
}

}  // namespace
}  // namespace virtual_only
