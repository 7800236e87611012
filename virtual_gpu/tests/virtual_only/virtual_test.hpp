// Shared by tests of virtual GPUs alone: a fresh machine for each test, and the runtime's messages.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <new>
#include <ostream>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "vgpu/control.hpp"

/// Lets GoogleTest print errors by name.
inline void PrintTo(cudaError_t error, std::ostream* out) { *out << cudaGetErrorName(error); }

#define CUDA_OK(call) ASSERT_EQ(call, cudaSuccess) << vgpu::last_error_detail()

namespace virtual_only {

/// Resets the virtual GPUs before and after each test, which frees all its allocations.
class VirtualTest : public testing::Test {
 protected:
  VirtualTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }  // each in a process of its own
  void SetUp() override { vgpu::reset(); }
  void TearDown() override {
    vgpu::reset();
    std::filesystem::remove(machine_file_);
  }

  /// Writes a machine file, private to this process and removed after the test.
  std::string machine_file(const std::string& text) const {
    std::ofstream(machine_file_) << text;
    return machine_file_.string();
  }

 private:
  const std::filesystem::path machine_file_ =
      std::filesystem::path(testing::TempDir()) / ("machine_" + std::to_string(getpid()) + ".json");
};

inline void require(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(vgpu::last_error_detail());
}

/// A fresh machine; events in time order, or, with a seed, in a random order.
inline void start_over(std::uint64_t seed = 0) {
  vgpu::reset();
  if (seed != 0) vgpu::use_schedule(seed);
}
/// A test in time order, 0, or in the random order of a seed.
template <class Test>
class InSchedules : public Test, public testing::WithParamInterface<int> {
 protected:
  void SetUp() override {
    Test::SetUp();
    if (GetParam() != 0) vgpu::use_schedule(static_cast<std::uint64_t>(GetParam()));
  }
};
/// Calls `test` in time order and in a random order.
template <class Test>
void in_two_orders(Test test) {
  for (const std::uint64_t seed : {0, 3}) {
    start_over(seed);
    test();
  }
}

/// What `run` returns in 40 random orders.
template <class Run>
auto in_random_orders(Run run) {
  std::set<decltype(run())> results;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    start_over(seed);
    results.insert(run());
  }
  return results;
}
/// What `call` returns while GPU `gpu` is current; afterwards GPU 0 is.
template <class Call>
auto on_gpu(int gpu, Call call) {
  require(cudaSetDevice(gpu));
  const auto result = call();
  require(cudaSetDevice(0));
  return result;
}

// Memory of the current GPU, or pinned; freed when the machine is reset.
template <class T = int>
T* device_room(std::size_t count) {
  T* memory = nullptr;
  require(cudaMalloc(&memory, count * sizeof(T)));
  return memory;
}
template <class T = int>
T* pinned_room(std::size_t count) {
  T* memory = nullptr;
  require(cudaMallocHost(&memory, count * sizeof(T)));
  return memory;
}
template <class T = int>
T* pinned_word(T value = {}) {
  return new (pinned_room<T>(1)) T(value);
}
/// Every word is `value`.
template <class T = int>
T* device_words(std::size_t count, T value = {}) {
  const std::vector<T> values(count, value);
  T* memory = device_room<T>(count);
  require(cudaMemcpy(memory, values.data(), count * sizeof(T), cudaMemcpyHostToDevice));
  return memory;
}
template <class T>
std::vector<T> words(const T* device_memory, std::size_t count) {
  std::vector<T> values(count);
  require(cudaMemcpy(values.data(), device_memory, count * sizeof(T), cudaMemcpyDeviceToHost));
  return values;
}
template <class T>
T word(const T* device_memory) {
  return words(device_memory, 1).front();
}
inline cudaStream_t new_stream(unsigned int flags = cudaStreamNonBlocking) {
  cudaStream_t stream = nullptr;
  require(cudaStreamCreateWithFlags(&stream, flags));
  return stream;
}
inline cudaEvent_t new_event() {
  cudaEvent_t event = nullptr;
  require(cudaEventCreate(&event));
  return event;
}

/// Makes `waiting` wait for all work in `stream`.
inline void order(cudaStream_t waiting, cudaStream_t stream) {
  const cudaEvent_t event = new_event();
  require(cudaEventRecord(event, stream));
  require(cudaStreamWaitEvent(waiting, event));
}

inline void expect_parts(const std::string& text, std::initializer_list<const char*> parts) {
  for (const char* part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' in: " << text;
}
/// Expects that the call failed with `code`, and that its message has all of `parts`.
inline void expect_failure(cudaError_t got, cudaError_t code, std::initializer_list<const char*> parts) {
  EXPECT_EQ(got, code);
  expect_parts(vgpu::last_error_detail(), parts);
}

/// Expects that `call` ends in a deadlock; returns the report on standard error.
template <std::invocable Call>
std::string deadlock_of(Call call) {
  testing::internal::CaptureStderr();
  const cudaError_t code = call();
  const std::string report = testing::internal::GetCapturedStderr();
  EXPECT_EQ(code, cudaErrorLaunchTimeout) << report;
  EXPECT_TRUE(vgpu::failure_reported());
  return report;
}
inline std::string deadlock_of(cudaStream_t stream) {
  return deadlock_of([&] { return cudaStreamSynchronize(stream); });
}

/// Space for some 300 stacks of CUDA threads.
constexpr std::size_t kFewStacks = std::size_t{64} << 20;
/// Limits the address space to `bytes` more than now; relative, because libraries reserve some for each
/// processor (OpenBLAS: more than 100 MiB). For death tests of the style "threadsafe", whose process has no
/// stacks yet.
inline void leave_address_space(std::size_t bytes) {
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t limit = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + bytes;
  const rlimit limits{limit, limit};
  if (pages == 0 || setrlimit(RLIMIT_AS, &limits) != 0) throw std::runtime_error("cannot limit the memory");
}

/// Modelled milliseconds between two events.
inline float milliseconds(cudaEvent_t start, cudaEvent_t stop) {
  float milliseconds = 0;
  require(cudaEventSynchronize(stop));
  require(cudaEventElapsedTime(&milliseconds, start, stop));
  return milliseconds;
}
/// Modelled milliseconds of the work that `enqueue` puts into the stream.
template <class Enqueue>
float elapsed(cudaStream_t stream, Enqueue enqueue) {
  const cudaEvent_t start = new_event(), stop = new_event();
  require(cudaEventRecord(start, stream));
  enqueue();
  require(cudaEventRecord(stop, stream));
  return milliseconds(start, stop);
}

/// Two streams, each with kBytes bytes of pinned and of device memory to copy.
template <std::size_t kSize>
class CopyTest : public VirtualTest {
 protected:
  static constexpr std::size_t kBytes = kSize;
  void SetUp() override {
    VirtualTest::SetUp();
    allocate();
  }
  void allocate() {
    host = pinned_room<char>(2 * kBytes);
    device = device_room<char>(2 * kBytes);
    for (cudaStream_t& stream : streams) stream = new_stream();
  }
  void copy_in(int i) {
    require(
        cudaMemcpyAsync(device + i * kBytes, host + i * kBytes, kBytes, cudaMemcpyHostToDevice, streams[i]));
  }
  void copy_out(int i) {
    require(
        cudaMemcpyAsync(host + i * kBytes, device + i * kBytes, kBytes, cudaMemcpyDeviceToHost, streams[i]));
  }
  char *host = nullptr, *device = nullptr;
  cudaStream_t streams[2];
};

/// Runs for a time in proportion to `rounds`.
template <class T>
__global__ void work(T* sink, int rounds) {
  volatile T sum = 0;
  for (int i = 0; i < rounds; ++i) sum = sum + static_cast<T>(i);
  if (sum < 0) *sink = sum;
}
template <class T>
__global__ void set(T* where, T value) {
  *where = value;
}
/// Polls until `flag` is set.
template <class T>
__global__ void await(const volatile T* flag) {
  while (*flag == 0) __nanosleep(100);
}

}  // namespace virtual_only
