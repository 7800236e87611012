// State that sparse all-reduces keep between calls: buffers that grow, and a clock for phases.
#include <gtest/gtest.h>

#include "overlap/gpu/backend.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/growing_buffer.hpp"
#include "overlap/gpu/phase_clock.hpp"
#include "overlap/gpu/ranks.hpp"

namespace overlap {
namespace {

TEST(GrowingBufferTest, GrowsAndNeverShrinks) {
  run_ranks(1, [](Rank& rank) {
    GrowingBuffer<int> buffer(rank);
    EXPECT_EQ(buffer.data(), nullptr);
    EXPECT_EQ(buffer.at_least(0, rank.stream()), nullptr);
    int* const first = buffer.at_least(10, rank.stream());
    ASSERT_NE(first, nullptr);
    EXPECT_EQ(buffer.at_least(3, rank.stream()), first);
    EXPECT_EQ(buffer.size(), 10U);
    EXPECT_EQ(buffer.bytes(), 10 * sizeof(int));
    CUDA_CHECK(cudaMemset(buffer.at_least(1000, rank.stream()), 0, 1000 * sizeof(int)));
    EXPECT_EQ(buffer.size(), 1000U);
  });
}

// Growing waits for work that still uses the old memory.
TEST(GrowingBufferTest, WaitsForTheStreamBeforeItGrows) {
  run_ranks(1, [](Rank& rank) {
    GrowingBuffer<char> buffer(rank);
    constexpr std::size_t kBytes = 1 << 20;
    CUDA_CHECK(cudaMemsetAsync(buffer.at_least(kBytes, rank.stream()), 1, kBytes, rank.stream()));
    buffer.at_least(2 * kBytes, rank.stream());
    EXPECT_EQ(cudaStreamQuery(rank.stream()), cudaSuccess);
  });
}

TEST(GrowingBufferTest, SaysWhenThereIsTooLittleMemoryAndGoesOn) {
  run_ranks(1, [](Rank& rank) {
    GrowingBuffer<char> buffer(rank);
    EXPECT_THROW(buffer.at_least(std::size_t{1} << 45, rank.stream()), CudaError);
    EXPECT_EQ(buffer.size(), 0U);
    EXPECT_NE(buffer.at_least(10, rank.stream()), nullptr);
  });
}

TEST(GrowingPinnedBufferTest, GrowsAndNeverShrinks) {
  GrowingPinnedBuffer<int> buffer;
  EXPECT_EQ(buffer.data(), nullptr);
  int* const first = buffer.at_least(10);
  first[9] = 4;
  EXPECT_EQ(buffer.at_least(3), first);
  EXPECT_EQ(buffer.size(), 10U);
  buffer.at_least(100)[99] = 5;
  EXPECT_EQ(buffer.size(), 100U);
}

TEST(PhaseClockTest, NamesPhasesInOrderAndAddsUpThoseOfOneName) {
  run_ranks(1, [](Rank& rank) {
    const DeviceBuffer<char> memory(rank.device(), 1 << 24);
    const auto work = [&] { CUDA_CHECK(cudaMemsetAsync(memory.data(), 0, memory.bytes(), rank.stream())); };
    PhaseClock clock(rank.device());
    EXPECT_TRUE(clock.read().empty());
    for (int call = 0; call < 2; ++call) {  // the second call reports nothing of the first
      clock.start(rank.stream(), "one");
      work();
      clock.next(rank.stream(), "two");
      for (int i = 0; i < 4; ++i) work();
      clock.next(rank.stream(), "one");
      work();
      clock.next(rank.stream(), "nothing");
      clock.stop(rank.stream());
      rank.synchronize(rank.stream());
      const std::vector<Phase> phases = clock.read();
      ASSERT_EQ(phases.size(), 3U);
      EXPECT_EQ(phases[0].name, "one");
      EXPECT_EQ(phases[1].name, "two");
      EXPECT_EQ(phases[2].name, "nothing");
      EXPECT_GT(phases[0].ms, phases[2].ms);
      if (backend::modelled_time()) {
        EXPECT_GT(phases[1].ms,
                  1.5 * phases[0].ms);  // four pieces of work against two (both phases named "one")
        EXPECT_LT(phases[1].ms, 3 * phases[0].ms);
      }
    }
  });
}

}  // namespace
}  // namespace overlap
