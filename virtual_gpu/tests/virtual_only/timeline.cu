// The timeline recorder: which operations have entries, their begin and end, and that recording changes
// nothing.
#include <algorithm>
#include <string>
#include <vector>

#include "vgpu/timeline.hpp"
#include "virtual_test.hpp"

namespace virtual_only {
namespace {

using vgpu::TimelineEntry;

constexpr std::size_t kBytes = 1 << 16;
constexpr int kRounds = 500;

template <class T>
__global__ void spin(T* sink, int rounds) {
  volatile T sum = 0;
  for (int i = 0; i < rounds; ++i) sum = sum + static_cast<T>(i);
  if (sum < 0) *sink = sum;
}

class TimelineTest : public CopyTest<kBytes> {
 protected:
  void SetUp() override {
    VirtualTest::SetUp();
    vgpu::record_timeline();
    allocate();
  }
  /// The entries of all enqueued work.
  static std::vector<TimelineEntry> finished() {
    int gpus = 0;
    require(cudaGetDeviceCount(&gpus));
    for (int gpu = 0; gpu < gpus; ++gpu) {
      require(cudaSetDevice(gpu));
      require(cudaDeviceSynchronize());
    }
    require(cudaSetDevice(0));
    return vgpu::timeline();
  }
};

void expect_entry(const TimelineEntry& entry, const char* kind, const char* engine, std::uint64_t bytes,
                  int from, int to) {
  EXPECT_EQ(entry.work.kind, kind);
  EXPECT_EQ(entry.engine, engine) << kind;
  EXPECT_EQ(entry.work.bytes, bytes) << kind;
  EXPECT_EQ(entry.work.from, from) << kind;
  EXPECT_EQ(entry.work.to, to) << kind;
  EXPECT_LT(entry.begin, entry.end) << kind;
}

TEST_F(TimelineTest, OneStreamOneAfterTheOther) {
  const cudaEvent_t event = new_event();
  copy_in(0);
  require(cudaEventRecord(event, streams[0]));
  spin<float><<<2, 32, 0, streams[0]>>>(nullptr, kRounds);
  require(cudaMemsetAsync(device, 7, 100, streams[0]));
  require(cudaStreamWaitEvent(streams[0], event, 0));
  copy_out(0);
  const auto entries = finished();
  ASSERT_EQ(entries.size(), 4u) << "records and waits have none";
  expect_entry(entries[0], "copy", "copies in", kBytes, vgpu::kHost, 0);
  expect_entry(entries[1], "kernel", "", 0, vgpu::kHost, vgpu::kHost);
  expect_entry(entries[2], "memset", "copies within", 100, vgpu::kHost, 0);
  expect_entry(entries[3], "copy", "copies out", kBytes, 0, vgpu::kHost);
  EXPECT_EQ(entries[1].work.name, "virtual_only::{anonymous}::spin [with T = float]");
  for (std::size_t i = 0; i < entries.size(); ++i) {
    EXPECT_EQ(entries[i].device, 0) << i;
    EXPECT_EQ(entries[i].stream_device, 0) << i;
    EXPECT_EQ(entries[i].stream, 1) << i;
    EXPECT_TRUE(entries[i].labels.empty()) << i;
    if (i > 0) {
      EXPECT_LE(entries[i - 1].end, entries[i].begin) << i;
    }
  }
}

TEST_F(TimelineTest, NothingUnlessAskedAndOnlyFromThenOn) {
  vgpu::reset();
  EXPECT_FALSE(vgpu::recording_timeline());
  EXPECT_TRUE(vgpu::timeline().empty());
  allocate();
  copy_in(0);
  EXPECT_TRUE(finished().empty());
  vgpu::record_timeline();
  EXPECT_TRUE(vgpu::recording_timeline());
  copy_in(1);
  EXPECT_EQ(finished().size(), 1u);
  vgpu::reset();
  EXPECT_FALSE(vgpu::recording_timeline());
  EXPECT_TRUE(vgpu::timeline().empty());
}

// A waiting operation has not begun: neither if it waits for an engine, ...
TEST_F(TimelineTest, ACopyBeginsWhenItsEngineIsFree) {
  copy_in(0);
  copy_in(1);
  const auto entries = finished();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].stream, 1);
  EXPECT_EQ(entries[1].stream, 2);
  EXPECT_NEAR(entries[1].begin, entries[0].end, 1e-6) << "ns";
  EXPECT_NEAR(entries[1].end - entries[1].begin, entries[0].end - entries[0].begin, 1e-6);
}

// ... nor for space on the SMs, ...
TEST_F(TimelineTest, AKernelBeginsWithItsFirstBlock) {
  constexpr int kShared = 200 * 1024;  // one block per SM; the machine has 8
  require(cudaFuncSetAttribute(spin<float>, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared));
  for (const cudaStream_t stream : streams) spin<float><<<8, 32, kShared, stream>>>(nullptr, kRounds);
  const auto entries = finished();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_GE(entries[1].begin, entries[0].end);
  EXPECT_NEAR(entries[1].end - entries[1].begin, entries[0].end - entries[0].begin, 1e-3);
}

// ... nor for an event.
TEST_F(TimelineTest, AKernelBeginsAfterTheEventItWaitsFor) {
  copy_in(0);
  order(streams[1], streams[0]);
  spin<float><<<1, 32, 0, streams[1]>>>(nullptr, kRounds);
  const auto entries = finished();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[1].work.kind, "kernel");
  EXPECT_GE(entries[1].begin, entries[0].end);
}

TEST_F(TimelineTest, CopyAndKernelOfTwoStreamsOverlap) {
  copy_in(0);
  spin<float><<<8, 128, 0, streams[1]>>>(nullptr, kRounds);
  const auto entries = finished();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_LT(std::max(entries[0].begin, entries[1].begin), std::min(entries[0].end, entries[1].end));
}

TEST_F(TimelineTest, EntriesLastAsLongAsEventsSay) {
  const cudaEvent_t start = new_event(), stop = new_event();
  copy_in(0);  // the next copy is enqueued before the event completes
  require(cudaEventRecord(start, streams[0]));
  copy_in(0);
  require(cudaEventRecord(stop, streams[0]));
  const auto entries = finished();
  const float ms = milliseconds(start, stop);
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_GT(ms, 0);
  EXPECT_NEAR(entries[1].end - entries[1].begin, ms * 1e6, 1) << "ns; a float holds 7 digits";
}

TEST_F(TimelineTest, PeerCopiesBelongToTheSourcesEngines) {
  require(cudaSetDevice(1));
  char* there = device_room<char>(kBytes);
  const cudaStream_t pulling = new_stream();
  require(cudaMemcpyPeerAsync(there, 1, device, 0, kBytes, pulling));
  auto entries = finished();
  ASSERT_EQ(entries.size(), 2u) << "without peer access: through the host";
  expect_entry(entries[0], "copy", "copies out", kBytes, 0, 1);
  expect_entry(entries[1], "copy", "copies in", kBytes, 0, 1);
  EXPECT_EQ(entries[0].device, 0);
  EXPECT_EQ(entries[1].device, 1);
  EXPECT_NEAR(entries[0].end, entries[1].begin, 1e-6);

  require(cudaSetDevice(1));
  require(cudaDeviceEnablePeerAccess(0, 0));
  require(cudaMemcpyPeerAsync(there, 1, device, 0, kBytes, pulling));
  entries = finished();
  ASSERT_EQ(entries.size(), 3u);
  expect_entry(entries[2], "copy", "copies to GPUs", kBytes, 0, 1);
  EXPECT_EQ(entries[2].device, 0);
  EXPECT_EQ(entries[2].stream_device, 1);
  EXPECT_EQ(entries[2].stream, 1);
}

TEST_F(TimelineTest, LabelsAreThoseOfTheEnqueue) {
  vgpu::pop_label();  // an extra pop has no effect
  vgpu::push_label("outer");
  copy_in(0);
  vgpu::push_label("inner");
  copy_in(0);
  spin<float><<<1, 32, 0, streams[0]>>>(nullptr, kRounds);
  vgpu::pop_label();
  copy_out(0);
  vgpu::pop_label();
  copy_out(0);
  const auto entries = finished();  // they run only now
  ASSERT_EQ(entries.size(), 5u);
  const std::vector<std::string> outer = {"outer"}, both = {"outer", "inner"};
  EXPECT_EQ(entries[0].labels, outer);
  EXPECT_EQ(entries[1].labels, both);
  EXPECT_EQ(entries[2].labels, both);
  EXPECT_EQ(entries[3].labels, outer);
  EXPECT_TRUE(entries[4].labels.empty());
}

TEST_F(TimelineTest, HostFunctions) {
  int calls = 0;
  require(cudaLaunchHostFunc(
      streams[0], [](void* data) { ++*static_cast<int*>(data); }, &calls));
  const auto entries = finished();
  EXPECT_EQ(calls, 1);
  ASSERT_EQ(entries.size(), 1u);
  expect_entry(entries[0], "host function", "", 0, vgpu::kHost, vgpu::kHost);
}

struct Outcome {
  std::uint64_t hash;
  double host_ms;
  float gpu_ms;
  bool operator==(const Outcome&) const = default;
};

Outcome run_with(std::uint64_t seed, bool record) {
  start_over(seed);
  if (record) vgpu::record_timeline();
  char *host = pinned_room<char>(kBytes), *device = device_room<char>(kBytes);
  const cudaStream_t streams[] = {new_stream(), new_stream()};
  const cudaEvent_t start = new_event(), stop = new_event();
  require(cudaEventRecord(start, streams[0]));
  for (int i = 0; i < 3; ++i) {
    if (record) vgpu::push_label("round");
    require(cudaMemcpyAsync(device, host, kBytes, cudaMemcpyHostToDevice, streams[0]));
    spin<float><<<20, 64, 0, streams[i % 2]>>>(nullptr, 20);
    if (record) vgpu::pop_label();
  }
  require(cudaEventRecord(stop, streams[0]));
  require(cudaDeviceSynchronize());
  const float gpu_ms = milliseconds(start, stop);
  EXPECT_EQ(vgpu::timeline().size(), record ? 6u : 0u);
  return {vgpu::schedule_hash(), vgpu::host_time_ms(), gpu_ms};
}

TEST_F(TimelineTest, RecordingChangesNeitherScheduleNorTimes) {
  for (std::uint64_t seed = 0; seed <= 10; ++seed) {
    EXPECT_EQ(run_with(seed, false), run_with(seed, true)) << "seed " << seed;
  }
}

// In random schedules, too, operations on one engine do not overlap.
TEST_F(TimelineTest, AnEngineDoesOneThingAtATime) {
  for (std::uint64_t seed = 0; seed <= 10; ++seed) {
    vgpu::reset();
    vgpu::record_timeline();
    if (seed != 0) vgpu::use_schedule(seed);
    allocate();
    for (int i = 0; i < 6; ++i) copy_in(i % 2);
    auto entries = finished();
    ASSERT_EQ(entries.size(), 6u);
    std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
    for (std::size_t i = 1; i < entries.size(); ++i)
      EXPECT_LE(entries[i - 1].end, entries[i].begin + 1e-6) << "seed " << seed;
  }
}

}  // namespace
}  // namespace virtual_only
