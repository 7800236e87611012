// What the tests share that only virtual GPUs can pass: a fresh machine for each test, and what the runtime
// says.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <ostream>
#include <stdexcept>
#include <string>

#include "vgpu/control.hpp"

/// GoogleTest prints errors by name.
inline void PrintTo(cudaError_t error, std::ostream* out) { *out << cudaGetErrorName(error); }

#define CUDA_OK(call) ASSERT_EQ(call, cudaSuccess) << vgpu::last_error_detail()

namespace virtual_only {

/// Each test starts and ends without virtual GPUs; what it allocates dies with them.
class VirtualTest : public testing::Test {
 protected:
  void SetUp() override { vgpu::reset(); }
  void TearDown() override {
    vgpu::reset();
    std::filesystem::remove(machine_file_);
  }

  /// Writes a machine description; the file is this process's own, and stays until the test ends.
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

/// Device memory of the current GPU, every word `value`. The machine's end frees it.
template <class T = int>
T* device_words(std::size_t count, T value = {}) {
  T* memory = nullptr;
  require(cudaMalloc(&memory, count * sizeof(T)));
  for (std::size_t i = 0; i < count; ++i) {
    require(cudaMemcpy(memory + i, &value, sizeof(T), cudaMemcpyHostToDevice));
  }
  return memory;
}
template <class T>
T word(const T* device_memory) {
  T value{};
  require(cudaMemcpy(&value, device_memory, sizeof(T), cudaMemcpyDeviceToHost));
  return value;
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

inline void expect_parts(const std::string& text, std::initializer_list<const char*> parts) {
  for (const char* part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' in: " << text;
}
/// The call failed with `code`, and the sentence on it says all of `parts`.
inline void expect_failure(cudaError_t got, cudaError_t code, std::initializer_list<const char*> parts) {
  EXPECT_EQ(got, code);
  expect_parts(vgpu::last_error_detail(), parts);
}

/// Room for some 300 stacks of CUDA threads.
constexpr std::size_t kFewStacks = std::size_t{64} << 20;
/// From now on the process gets only so many bytes of address space more. Relative to what it has: libraries
/// reserve some for each processor of the host (OpenBLAS: more than 100 MiB), and if there were none left,
/// anything could fail first. For death tests of the style "threadsafe", whose process no other test has made
/// stacks in.
inline void leave_address_space(std::size_t bytes) {
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t limit = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + bytes;
  const rlimit limits{limit, limit};
  if (pages == 0 || setrlimit(RLIMIT_AS, &limits) != 0) throw std::runtime_error("cannot limit the memory");
}

/// Modelled milliseconds of what `enqueue` puts into the stream.
template <class Enqueue>
float elapsed(cudaStream_t stream, Enqueue enqueue) {
  const cudaEvent_t start = new_event(), stop = new_event();
  require(cudaEventRecord(start, stream));
  enqueue();
  require(cudaEventRecord(stop, stream));
  require(cudaEventSynchronize(stop));
  float milliseconds = 0;
  require(cudaEventElapsedTime(&milliseconds, start, stop));
  return milliseconds;
}

/// Two streams, and for each of them kBytes bytes of pinned and of device memory to copy.
template <std::size_t kSize>
class CopyTest : public VirtualTest {
 protected:
  static constexpr std::size_t kBytes = kSize;
  void SetUp() override {
    VirtualTest::SetUp();
    allocate();
  }
  void allocate() {
    require(cudaMallocHost(&host, 2 * kBytes));
    require(cudaMalloc(&device, 2 * kBytes));
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

/// Takes time in proportion to `rounds`.
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
