#include "overlap/gpu/timeline.hpp"

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "overlap/gpu/check.hpp"
#include "overlap/program/report.hpp"
#include "overlap/program/timeline_file.hpp"

namespace overlap {
namespace {

using Json = nlohmann::json;

// A kernel of GPU `gpu`.
TimelineEntry kernel(int gpu, double begin_ns, double end_ns, std::vector<std::string> labels = {}) {
  return {.kind = "kernel",
          .name = "overlap::multiply",
          .gpu = gpu,
          .stream_gpu = gpu,
          .stream = 1,
          .begin_ns = begin_ns,
          .end_ns = end_ns,
          .labels = std::move(labels)};
}

TimelineEntry copy(int from, int to, std::uint64_t bytes, double begin_ns, double end_ns) {
  TimelineEntry entry = kernel(from == TimelineEntry::kHost ? to : from, begin_ns, end_ns);
  entry.kind = "copy";
  entry.engine = "copies in";
  entry.bytes = bytes;
  entry.from = from;
  entry.to = to;
  return entry;
}

// The encoding of a TimelineSection's name.
std::string section(const std::string& name) { return '\x1d' + name; }

Json events_of(const Json& json, const char* kind) {
  Json found = Json::array();
  for (const Json& event : json["traceEvents"]) {
    if (event["ph"] == kind) found.push_back(event);
  }
  return found;
}

Json bars_of(const std::vector<TimelineEntry>& entries) {
  return events_of(Json::parse(timeline_json("99_test", entries)), "X");
}

TEST(TimelineJsonTest, OneBar) {
  const Json json = Json::parse(timeline_json("99_test", {kernel(3, 1500, 4250)}));
  const Json bars = events_of(json, "X");
  ASSERT_EQ(bars.size(), 1U);
  const Json& bar = bars[0];
  EXPECT_EQ(bar["name"], "multiply");
  EXPECT_EQ(bar["cat"], "kernel");
  EXPECT_EQ(bar["ts"], 0) << "time begins with the first operation";
  EXPECT_EQ(bar["dur"], 2.75) << "microseconds";
  EXPECT_EQ(bar["args"]["kernel"], "overlap::multiply");
  EXPECT_EQ(bar["args"]["stream"], 1);
  EXPECT_FALSE(bar["args"].contains("bytes"));
  EXPECT_FALSE(bar["args"].contains("scope"));
  std::set<std::string> names;
  for (const Json& event : events_of(json, "M")) {
    EXPECT_EQ(event["pid"], bar["pid"]);
    if (event["name"] == "thread_name") {
      EXPECT_EQ(event["tid"], bar["tid"]);
    }
    if (event["args"].contains("name")) names.insert(event["args"]["name"]);
  }
  EXPECT_EQ(names, (std::set<std::string>{"GPU 3", "stream 1"}));

  const Json& stamp = json["otherData"];
  EXPECT_EQ(stamp["chapter"], "99_test");
  EXPECT_EQ(stamp["backend"], backend::name());
  EXPECT_EQ(stamp["modelled"], backend::modelled_time());
  EXPECT_EQ(stamp["commit"], commit());
  EXPECT_FALSE(stamp["hardware"]["gpu"].get<std::string>().empty());
  EXPECT_EQ(stamp["date"].get<std::string>().size(), 20U);
}

TEST(TimelineJsonTest, NamesOfKernels) {
  const std::pair<const char*, const char*> cases[] = {
      {"overlap::multiply", "multiply"},
      {"multiply", "multiply"},
      {"overlap::{anonymous}::spin [with T = std::pair<int, int>]", "spin"},
      {"overlap::tiled<(int)16, std::array<float, 3ul> >", "tiled"},
      {"product of a library", "product of a library"},
      {"send 4 KiB GPU 0 -> GPU 1", "send 4 KiB GPU 0 -> GPU 1"},
      {"odd<name", "odd<name"},
  };
  for (const auto& [name, text] : cases) {
    TimelineEntry entry = kernel(0, 0, 1);
    entry.name = name;
    EXPECT_EQ(bars_of({entry})[0]["name"], text) << name;
  }
}

TEST(TimelineJsonTest, CopiesSayHowMuchFromWhereToWhere) {
  constexpr int kHost = TimelineEntry::kHost;
  const Json bars =
      bars_of({copy(kHost, 1, 65536, 0, 1), copy(1, 0, 1000, 1, 2), copy(1, kHost, 1536, 2, 3)});
  std::multiset<std::string> names;
  for (const Json& bar : bars) {
    names.insert(bar["name"]);
    EXPECT_EQ(bar["cat"], "copy");
  }
  EXPECT_EQ(names, (std::multiset<std::string>{"copy 64 KiB host -> GPU 1", "copy 1000 B GPU 1 -> GPU 0",
                                               "copy 1.5 KiB GPU 1 -> host"}));
  EXPECT_EQ(bars_of({copy(0, 1, 1000, 0, 1)})[0]["args"]["bytes"], 1000);
}

TEST(TimelineJsonTest, CollectivesHaveAColourOfTheirOwn) {
  TimelineEntry entry = kernel(0, 0, 1);
  entry.name = "ncclDevKernel_AllGather_RING_LL";
  EXPECT_EQ(bars_of({entry})[0]["cat"], "collective");
}

TEST(TimelineJsonTest, TheInnermostScopeNamesTheBar) {
  const Json bars = bars_of({kernel(0, 0, 1, {"outer", "inner"})});
  EXPECT_EQ(bars[0]["name"], "inner");
  EXPECT_EQ(bars[0]["args"]["scope"], "outer / inner");
  EXPECT_EQ(bars[0]["args"]["what"], "multiply");
}

TEST(TimelineJsonTest, SectionsHaveTheirOwnZeroAndKeepTheRestOut) {
  const Json json = Json::parse(timeline_json(
      "99_test", {kernel(0, 0, 1000), kernel(0, 9000, 9500, {section("later"), "x"}),
                  kernel(0, 5000, 6000, {section("first")}), kernel(1, 7000, 8000, {section("first")})}));
  const Json bars = events_of(json, "X");
  ASSERT_EQ(bars.size(), 3U);
  std::vector<std::pair<int, double>> places;
  for (const Json& bar : bars) places.emplace_back(bar["pid"], bar["ts"]);
  EXPECT_EQ(places, (std::vector<std::pair<int, double>>{{100, 0}, {101, 2}, {200, 0}}));
  EXPECT_EQ(bars[2]["name"], "x");
  EXPECT_EQ(bars[0]["name"], "multiply") << "a section is no scope";
  std::vector<std::string> processes;
  for (const Json& event : events_of(json, "M")) {
    if (event["name"] == "process_name") processes.push_back(event["args"]["name"]);
  }
  EXPECT_EQ(processes, (std::vector<std::string>{"first: GPU 0", "first: GPU 1", "later: GPU 0"}));
}

// In any order of the entries: no overlap within a lane, and no entry is lost.
TEST(TimelineJsonTest, OverlappingBarsGetLanesOfTheirOwn) {
  const std::vector<TimelineEntry> entries = {copy(0, 1, 1, 2000, 5000), copy(0, 2, 1, 0, 3000),
                                              copy(0, 3, 1, 2500, 2600), copy(0, 1, 1, 5000 - 1e-7, 6000)};
  const Json json = Json::parse(timeline_json("99_test", entries));
  std::map<int, std::vector<std::pair<double, double>>> lanes;
  for (const Json& bar : events_of(json, "X")) {
    const double begin = bar["ts"];
    lanes[bar["tid"]].emplace_back(begin, begin + bar["dur"].get<double>());
  }
  std::size_t bars = 0;
  for (const auto& [tid, lane] : lanes) {
    bars += lane.size();
    for (std::size_t i = 1; i < lane.size(); ++i) EXPECT_LE(lane[i - 1].second, lane[i].first + 1e-9);
  }
  EXPECT_EQ(bars, entries.size());
  EXPECT_EQ(lanes.size(), 3U) << "no more lanes than bars at a time";
  std::set<std::string> names;
  for (const Json& event : events_of(json, "M")) {
    if (event["name"] == "thread_name") names.insert(event["args"]["name"]);
  }
  EXPECT_EQ(names, (std::set<std::string>{"copies in", "copies in (2)", "copies in (3)"}));
}

TEST(TimelineJsonTest, BarsThatTouchShareALane) {
  const Json bars = bars_of({copy(0, 1, 1, 0, 2500.5), copy(0, 1, 1, 2500.5 - 1e-9, 4000)});
  ASSERT_EQ(bars.size(), 2U);
  EXPECT_EQ(bars[0]["tid"], bars[1]["tid"]);
  EXPECT_NEAR(bars[0]["dur"].get<double>(), bars[1]["ts"].get<double>(), 1e-9);
}

TEST(TimelineJsonTest, StreamsComeBeforeCopyEngines) {
  TimelineEntry second = kernel(0, 0, 1);
  second.stream = 10;
  const Json bars = bars_of({copy(0, 0, 1, 0, 1), second, kernel(0, 0, 1)});
  ASSERT_EQ(bars.size(), 3U);
  EXPECT_EQ(bars[0]["args"]["stream"], 1);
  EXPECT_EQ(bars[0]["cat"], "kernel");
  EXPECT_EQ(bars[1]["args"]["stream"], 10);
  EXPECT_EQ(bars[2]["cat"], "copy");
  EXPECT_LT(bars[0]["tid"], bars[1]["tid"]);
  EXPECT_LT(bars[1]["tid"], bars[2]["tid"]);
}

TEST(TimelineJsonTest, WhatTakesNoTimeHasNoBarAndNothingIsAnError) {
  EXPECT_EQ(bars_of({kernel(0, 5, 5), kernel(0, 5, 6)}).size(), 1U);
  EXPECT_THROW(timeline_json("99_test", {}), std::runtime_error);
  EXPECT_THROW(timeline_json("99_test", {kernel(0, 5, 5)}), std::runtime_error);
}

TEST(TimelineScopeTest, PartsAreTextsAndWholeNumbers) {
  EXPECT_EQ(detail::timeline_text("step "), "step ");
  EXPECT_EQ(detail::timeline_text(std::string("shard")), "shard");
  EXPECT_EQ(detail::timeline_text(-3), "-3");
  EXPECT_EQ(detail::timeline_text(std::size_t{1} << 40), "1099511627776");
}

TEST(TimelineScopeTest, WithoutATimelineItDoesNothing) {
  ASSERT_FALSE(backend::recording_timeline());
  {
    const TimelineSection section("section");
    const TimelineScope scope("step ", 3, ": multiply shard ", std::size_t{5});
  }
  if (backend::modelled_time()) {
    EXPECT_TRUE(backend::timeline().empty());
  }
}

// In a process of its own, because a recording never ends.
TEST(TimelineScopeTest, NamesWhatIsEnqueuedInside) {
  if (!backend::modelled_time()) GTEST_SKIP() << "a process with real GPUs must not be forked";
  const auto record = [] {
    backend::record_timeline();
    void* memory = nullptr;
    CUDA_CHECK(cudaMalloc(&memory, 100));
    const auto enqueue = [memory] { CUDA_CHECK(cudaMemsetAsync(memory, 0, 100, nullptr)); };
    {
      const TimelineSection none("none", false);
      enqueue();
    }
    {
      const TimelineSection all("all", true);
      enqueue();
      const TimelineScope outer("ring");
      const TimelineScope inner("step ", 3, ": clear shard ", std::size_t{5});
      enqueue();
    }
    CUDA_CHECK(cudaDeviceSynchronize());
    const Json bars = bars_of(backend::timeline());
    const bool right = bars.size() == 2 && bars[0]["name"] == "memset 100 B GPU 0" &&
                       !bars[0]["args"].contains("scope") && bars[1]["name"] == "step 3: clear shard 5" &&
                       bars[1]["args"]["scope"] == "ring / step 3: clear shard 5";
    if (!right) std::cerr << bars.dump(1) << std::endl;
    std::_Exit(right ? 42 : 43);
  };
  EXPECT_EXIT(record(), testing::ExitedWithCode(42), "");
}

}  // namespace
}  // namespace overlap
