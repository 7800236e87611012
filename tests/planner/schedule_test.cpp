// What overlaps, against times worked out by hand.
#include "schedule.hpp"

#include <gtest/gtest.h>

#include "machines.hpp"

namespace overlap::planner {
namespace {

/// `tiles` tiles of 128 x 256 below each other, k = 1024.
MatmulShape tiles(std::int64_t count) { return {128 * count, 256, 1024}; }

TEST(PlannerSchedule, ProductsTakeWholeWaves) {
  const Machine machine = round_machine();
  EXPECT_DOUBLE_EQ(part_of(machine, {tiles(100), 1}).us, 10);
  EXPECT_DOUBLE_EQ(part_of(machine, {tiles(101), 1}).us, 20);
  EXPECT_DOUBLE_EQ(part_of(machine, {tiles(150), 1}).work_us, 15);
  EXPECT_DOUBLE_EQ(part_of(machine, {tiles(100), 1}, 90).us, 20);  // 10 multiprocessors are somebody else's
  EXPECT_DOUBLE_EQ(part_of(without(machine, Bound::kWaves), {tiles(150), 1}).us, 15);
  EXPECT_DOUBLE_EQ(part_of(machine, {{0, 256, 1024}, 1}).us, 0);
}

TEST(PlannerSchedule, SmallerTilesWhereTheyFillTheGpu) {
  Machine machine = round_machine();
  machine.smaller_tile = 0.8;
  EXPECT_DOUBLE_EQ(part_of(machine, {tiles(50), 1}).us, 5 / 0.8);          // 100 halves
  EXPECT_DOUBLE_EQ(part_of(machine, {tiles(25), 1}).us, 2.5 / 0.8 / 0.8);  // 100 quarters
  EXPECT_DOUBLE_EQ(part_of(machine, {tiles(50), 1, {128, 256}}).us, 10);   // a kernel that has one tile
}

TEST(PlannerSchedule, MemoryIsAFloor) {
  Machine machine = round_machine();
  machine.memory_rate = 1000;
  const double bytes = 2.0 * (128 * 1024 + 1024 * 256 + 128 * 256);
  EXPECT_DOUBLE_EQ(part_of(machine, {tiles(1), 1}).us, bytes / 1000);
}

TEST(PlannerSchedule, SlowerAtTheLimitOfPower) {
  Machine machine = round_machine();
  machine.sustained = 0.8;
  machine.sustained_us = 100;
  EXPECT_NEAR(slow_down(machine, 1), 1, 1e-4);
  EXPECT_DOUBLE_EQ(slow_down(machine, 100), 1.125);  // half of the way to 1.25
  EXPECT_NEAR(slow_down(machine, 1e4), 1.25, 1e-4);
  EXPECT_EQ(slow_down(round_machine(), 1e4), 1);
}

TEST(PlannerSchedule, CollectivesLeaveANodeByAllItsWays) {
  Machine machine = round_machine();
  machine.collective_us = 5;
  machine.message_us = 1;
  machine.network_us = 16;
  EXPECT_DOUBLE_EQ(collective_us(machine, 8, 7, 7000), 5 + 7 + 7);
  EXPECT_DOUBLE_EQ(collective_us(machine, 16, 15, 15000), 5 + 15 * (1 + 2) + 15000 / 800.0);
  EXPECT_DOUBLE_EQ(collective_us(machine, 1, 0, 0), 0);
}

// A ring of 4 ranks whose products take a wave each, 10 us.
const Cut kFourWaves = {tiles(400), 4};

TEST(PlannerSchedule, ARingHidesWhatIsFasterThanAProduct) {
  const Cost fast = {.messages = 3, .bytes_out = 3 * 9000};
  const Cost slow = {.messages = 3, .bytes_out = 3 * 15000};
  for (const bool two_streams : {false, true}) {
    EXPECT_DOUBLE_EQ(copy_ring_us(round_machine(), kFourWaves, fast, two_streams), 40);
    EXPECT_DOUBLE_EQ(copy_ring_us(round_machine(), kFourWaves, slow, two_streams), 45 + 10);
  }
}

TEST(PlannerSchedule, ASignalCostsAStreamOfProductsItsTime) {
  Machine machine = round_machine();
  machine.signal_us = 2;
  const Cost cost = {.messages = 3, .bytes_out = 3 * 5000};
  EXPECT_DOUBLE_EQ(copy_ring_us(machine, kFourWaves, cost, false), 46);
  EXPECT_DOUBLE_EQ(copy_ring_us(machine, kFourWaves, cost, true), 40);
  EXPECT_DOUBLE_EQ(stepwise_us(machine, kFourWaves, {.bytes_out = 3 * 5000}, 4), 46);
  EXPECT_DOUBLE_EQ(persistent_us(machine, kFourWaves, {.bytes_out = 3 * 5000}, 4, false), 40);
}

TEST(PlannerSchedule, TwoStreamsFillPartialWaves) {
  const Cut cut = {tiles(240), 4};  // 60 tiles each
  EXPECT_DOUBLE_EQ(products_us(round_machine(), cut), 40);
  EXPECT_DOUBLE_EQ(products_on_two_streams_us(round_machine(), cut), 30);  // 240 tiles: 3 waves
}

TEST(PlannerSchedule, NcclTakesMultiprocessorsFromAProduct) {
  Machine machine = round_machine();
  machine.nccl_blocks = 10;
  const Cut two = {tiles(200), 2};  // a wave each, or two on 90 multiprocessors
  EXPECT_DOUBLE_EQ(nccl_ring_us(machine, two, {.messages = 1, .bytes_out = 5000}, 2), 20 + 10);
  EXPECT_DOUBLE_EQ(nccl_ring_us(machine, two, {.messages = 1, .bytes_out = 5000}, 16),
                   50 + 10);  // by network
}

TEST(PlannerSchedule, ShardsComeAlongARailAndAreThenPassedOn) {
  Machine machine = round_machine();  // a part is 50 tiles: half a wave, 5 us
  const Cut cut = {tiles(200), 4};
  const Cost rail = {.messages = 1, .bytes_out = 1000};             // 10 us by network, of 100 bytes in a us
  const Cost cost = {.messages = 3, .bytes_out = 1000 + 2 * 1000};  // 1 us inside, of each of two shards
  EXPECT_DOUBLE_EQ(two_level_us(machine, cut, rail, cost, {2, 2}, 0), 20);
  machine.network_rate = 50;  // the third part comes after 20 us, the fourth after 21
  EXPECT_DOUBLE_EQ(two_level_us(machine, cut, rail, cost, {2, 2}, 0), 30);
  machine.link_rate = 100;  // the fourth after 30
  EXPECT_DOUBLE_EQ(two_level_us(machine, cut, rail, cost, {2, 2}, 0), 35);
  machine = round_machine();  // 2.5 waves on 80 multiprocessors
  EXPECT_DOUBLE_EQ(two_level_us(machine, cut, rail, cost, {2, 2}, 20), 30);
}

TEST(PlannerSchedule, TheLastSendIsExposedIfItIsSlow) {
  Machine machine = round_machine();
  const Cost fast = {.messages = 3, .bytes_out = 3 * 9000, .launches = 1};
  EXPECT_DOUBLE_EQ(send_and_sum_us(machine, kFourWaves, fast, 0), 40);
  const Cost slow = {.messages = 3, .bytes_out = 3 * 20000, .launches = 1};
  machine.memory_rate = 1e9;
  EXPECT_NEAR(send_and_sum_us(machine, kFourWaves, slow, 7e9), 10 + 60 + 7, 1e-9);
}

TEST(PlannerSchedule, AnAddWaitsForTheWaveThatRuns) {
  Machine machine = round_machine();
  // Zeros arrive at 4, the first partial at 10: the add could begin at once, but for the second product.
  const Cost cost = {.messages = 2, .bytes_out = 2 * 4000};
  machine.event_us = 1;
  const Cut two = {tiles(200), 2};
  const Rotation rotation = {.zeros = true, .accumulator = 4000, .result = 4000};
  // Begins at 20 instead of 11, 4 on the link, and an event behind it.
  EXPECT_DOUBLE_EQ(rotation_us(machine, two, cost, rotation), 20 + 4 + 1);
}

TEST(PlannerSchedule, AScatterEndsWithTheLink) {
  const Cost cost = {.bytes_out = 90000};
  EXPECT_DOUBLE_EQ(scattered_us(round_machine(), kFourWaves, cost, 0), 10 + 90);
  EXPECT_DOUBLE_EQ(scattered_us(round_machine(), kFourWaves, {.bytes_out = 1000}, 0), 40);
}

}  // namespace
}  // namespace overlap::planner
