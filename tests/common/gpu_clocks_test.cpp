#include "overlap/bench/gpu_clocks.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "overlap/gpu/nvml.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/program/report.hpp"

namespace overlap {
namespace {

using backend::GpuState;

GpuState state(double clock, double power, double temperature) {
  GpuState one;
  one.sm_clock_mhz = clock;
  one.power_w = power;
  one.power_limit_w = 700;
  one.temperature_c = temperature;
  return one;
}

std::string json_of(const GpuClocks& clocks) {
  ChapterInfo chapter;
  chapter.name = "99_test";
  Report report(chapter, Options{});
  report.set_clocks(clocks);
  return report.json();
}

TEST(GpuClocksTest, TellsClockPowerAndTemperature) {
  const std::vector<GpuState> before = {state(1980, 120, 40)};
  const std::vector<GpuState> after = {state(1755, 690.4, 64)};
  EXPECT_EQ(clocks_of(before, after).line(), "clock 1980 -> 1755 MHz, power 690 of 700 W, 64 C");
}

TEST(GpuClocksTest, NamesTheLeastAndTheLargestOfSeveralGpus) {
  const std::vector<GpuState> before = {state(1980, 120, 40), state(1980, 130, 41)};
  const std::vector<GpuState> after = {state(1755, 690, 64), state(1800, 650, 60)};
  const GpuClocks clocks = clocks_of(before, after);
  EXPECT_EQ(clocks.line(), "clock 1980 -> 1755 to 1800 MHz, power 650 to 690 of 700 W, 60 to 64 C");
  const nlohmann::json json = nlohmann::json::parse(json_of(clocks))["gpu_clocks"];
  EXPECT_EQ(json["before"]["sm_clock_mhz"], nlohmann::json({{"min", 1980}, {"max", 1980}}));
  EXPECT_EQ(json["before"]["power_w"], nlohmann::json({{"min", 120}, {"max", 130}}));
  EXPECT_EQ(json["after"]["sm_clock_mhz"], nlohmann::json({{"min", 1755}, {"max", 1800}}));
  EXPECT_EQ(json["after"]["temperature_c"], nlohmann::json({{"min", 60}, {"max", 64}}));
  EXPECT_EQ(json["power_limit_w"], 700);
  EXPECT_TRUE(json["slowed_gpus"].empty());
}

TEST(GpuClocksTest, NamesWhatHoldsTheClocksDown) {
  std::vector<GpuState> after(4, state(1500, 700, 85));
  after[0].slowed_by_power = after[2].slowed_by_power = after[2].slowed_by_heat = true;
  std::vector<GpuState> before(4, state(1500, 700, 85));
  for (GpuState& gpu : before) gpu.slowed_by_heat = gpu.slowed_by_hardware = true;  // ended before the run
  const GpuClocks clocks = clocks_of(before, after);
  EXPECT_EQ(clocks.line(),
            "clock 1500 -> 1500 MHz, power 700 of 700 W, 85 C; clocks held down by power on 2 of 4 GPUs; "
            "clocks held down by heat on 1 of 4 GPUs");
  EXPECT_EQ(nlohmann::json::parse(json_of(clocks))["gpu_clocks"]["slowed_gpus"],
            nlohmann::json({{"power", 2}, {"heat", 1}}));
}

TEST(GpuClocksTest, LeavesOutWhatNobodySays) {
  std::vector<GpuState> states(2);
  EXPECT_TRUE(clocks_of(states, states).unknown());
  EXPECT_EQ(clocks_of(states, states).line(), "");
  EXPECT_FALSE(nlohmann::json::parse(json_of(clocks_of(states, states))).contains("gpu_clocks"));
  states[1].temperature_c = 50;
  const GpuClocks clocks = clocks_of(states, states);
  EXPECT_EQ(clocks.line(), "50 C");
  EXPECT_FALSE(nlohmann::json::parse(json_of(clocks))["gpu_clocks"]["after"].contains("power_w"));
}

TEST(GpuClocksTest, VirtualGpusSayNothing) {
  if (!backend::modelled_time()) GTEST_SKIP() << "real GPUs";
  EXPECT_FALSE(backend::gpu_state(0).has_value());
  run_ranks(2, [](Rank& rank) { EXPECT_TRUE(gpu_states(rank).empty()); });
}

// The library of fake_nvml.cpp: GPU 0000:18:00.0 supports everything, 0000:2a:00.0 is an old one.
TEST(NvmlTest, ReadsTheStateOfAGpu) {
  const Nvml nvml(FAKE_NVML);
  EXPECT_EQ(nvml.driver_version(), "580.1");
  EXPECT_EQ(nvml.max_sm_clock_mhz("0000:18:00.0"), 1980);
  const GpuState state = nvml.state("0000:18:00.0");
  EXPECT_EQ(state.sm_clock_mhz, 1755);
  EXPECT_EQ(state.power_w, 690.5);
  EXPECT_EQ(state.power_limit_w, 700);
  EXPECT_EQ(state.temperature_c, 64);
  EXPECT_TRUE(state.slowed_by_power);
  EXPECT_FALSE(state.slowed_by_heat);
  EXPECT_TRUE(state.slowed_by_hardware);
}

// Each bit alone: idle; power cap and power brake; thermal slowdown by software and by hardware; all others.
TEST(NvmlTest, KnowsEachReasonOfSlowClocks) {
  const Nvml nvml(FAKE_NVML);
  std::string power, heat, hardware;
  for (const char gpu : {'0', '1', '2', '3', '4', '5'}) {
    const GpuState state = nvml.state(std::string("0000:a") + gpu + ":00.0");
    if (state.slowed_by_power) power += gpu;
    if (state.slowed_by_heat) heat += gpu;
    if (state.slowed_by_hardware) hardware += gpu;
  }
  EXPECT_EQ(power, "12");
  EXPECT_EQ(heat, "34");
  EXPECT_EQ(hardware, "5");
}

TEST(NvmlTest, TakesTheMeanPowerWhereTheGpuTellsNoOther) {
  const GpuState state = Nvml(FAKE_NVML).state("0000:2a:00.0");
  EXPECT_EQ(state.power_w, 300);
  EXPECT_FALSE(state.slowed_by_power);
  EXPECT_TRUE(state.slowed_by_heat);
}

TEST(NvmlTest, SaysNothingOfAGpuThatIsNotThere) {
  const Nvml nvml(FAKE_NVML);
  const GpuState state = nvml.state("0000:ff:00.0");
  EXPECT_FALSE(state.sm_clock_mhz || state.power_w || state.power_limit_w || state.temperature_c);
  EXPECT_FALSE(nvml.max_sm_clock_mhz("").has_value());
}

TEST(NvmlTest, ALibraryThatIsNotThereThrows) {
  EXPECT_THROW(Nvml("libno-such-library.so"), std::runtime_error);
}

}  // namespace
}  // namespace overlap
