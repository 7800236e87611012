// Shared by the scenarios. They use only CUDA, so that the same sources run on real and on virtual GPUs, and
// rely only on promises of the CUDA C++ Programming Guide ("Guide") and the CUDA Runtime API reference
// ("API").
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cuda/atomic>
#include <ostream>
#include <stdexcept>
#include <vector>

/// Lets GoogleTest print errors by name.
inline void PrintTo(cudaError_t error, std::ostream* out) { *out << cudaGetErrorName(error); }

#define CUDA_OK(call) ASSERT_EQ(call, cudaSuccess)
/// Expects that the call fails with `code`, and that one cudaGetLastError() after it returns the same.
#define EXPECT_CUDA_ERROR(call, code)    \
  do {                                   \
    EXPECT_EQ(call, code);               \
    EXPECT_EQ(cudaGetLastError(), code); \
  } while (false)

namespace semantics {

/// CUDA_OK for functions that cannot return early.
inline void require(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorName(error));
}

/// Makes a device current until the end of the scope.
class OnDevice {
 public:
  explicit OnDevice(int device) {
    EXPECT_EQ(cudaGetDevice(&previous_), cudaSuccess);
    EXPECT_EQ(cudaSetDevice(device), cudaSuccess);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice() { EXPECT_EQ(cudaSetDevice(previous_), cudaSuccess); }

 private:
  int previous_ = 0;
};
/// What `make` returns, made while that device is current.
template <class Make>
auto made_on(int device, Make make) {
  const OnDevice on(device);
  return make();
}

/// Memory of the device that was current at construction.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count, T value = T{}) : DeviceArray(std::vector<T>(count, value)) {}
  explicit DeviceArray(const std::vector<T>& values) : count_(values.size()) {
    require(cudaMalloc(&data_, count_ * sizeof(T)));
    require(cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice));
    require(cudaDeviceSynchronize());  // a copy from pageable memory may be pending
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { EXPECT_EQ(cudaFree(data_), cudaSuccess); }

  T* data() const { return data_; }
  std::size_t bytes() const { return count_ * sizeof(T); }
  std::vector<T> values() const {
    std::vector<T> values(count_);
    require(cudaMemcpy(values.data(), data_, bytes(), cudaMemcpyDeviceToHost));
    return values;
  }
  T value() const { return values().front(); }

 private:
  std::size_t count_;
  T* data_ = nullptr;
};

/// Page-locked host memory; kernels access it by the same address (Guide, "Unified Virtual Address Space").
template <class T>
class PinnedArray {
 public:
  explicit PinnedArray(std::size_t count, T value = T{}) : count_(count) {
    require(cudaMallocHost(&data_, bytes()));
    std::fill_n(data_, count, value);
  }
  PinnedArray(const PinnedArray&) = delete;
  PinnedArray& operator=(const PinnedArray&) = delete;
  ~PinnedArray() { EXPECT_EQ(cudaFreeHost(data_), cudaSuccess); }

  T* data() const { return data_; }
  std::size_t bytes() const { return count_ * sizeof(T); }
  T& operator[](std::size_t i) { return data_[i]; }

 private:
  std::size_t count_;
  T* data_ = nullptr;
};

/// A handle, which a derived class creates; `destroy` must return its type's first enumerator, success.
template <class Handle, auto destroy>
class Owner {
 public:
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;
  ~Owner() { EXPECT_EQ(destroy(handle_), decltype(destroy(handle_)){}); }
  operator Handle() const { return handle_; }

 protected:
  Owner() = default;
  Handle handle_ = nullptr;
};
class Stream : public Owner<cudaStream_t, &cudaStreamDestroy> {
 public:
  explicit Stream(unsigned int flags = cudaStreamNonBlocking) {
    require(cudaStreamCreateWithFlags(&handle_, flags));
  }
};
class Event : public Owner<cudaEvent_t, &cudaEventDestroy> {
 public:
  explicit Event(unsigned int flags = cudaEventDefault) {
    require(cudaEventCreateWithFlags(&handle_, flags));
  }
};

/// Makes `waiting` wait for all work in `stream`.
inline void order(cudaStream_t waiting, cudaStream_t stream, cudaEvent_t event) {
  require(cudaEventRecord(event, stream));
  require(cudaStreamWaitEvent(waiting, event));
}

template <class T>
__global__ void set(T* where, T value) {
  *where = value;
}
template <class T>
__global__ void copy_one(T* to, const T* from) {
  *to = *from;
}
/// Appends a decimal digit: the digits show the order in which the kernels ran.
template <class T>
__global__ void append(T* where, T digit) {
  *where = *where * 10 + digit;
}

inline constexpr long long kCyclesToGiveUp = 4'000'000'000;  // about 2 s: a broken test ends
inline constexpr long long kCyclesOfLateness = 1'000'000;

__device__ inline void spin() {
  const long long start = clock64();
  while (clock64() - start < kCyclesOfLateness) {
  }
}
/// Spins, then sets: a reader that does not wait for it sees the old value.
template <class T>
__global__ void set_late(T* where, T value) {
  spin();
  *where = value;
}
/// A flag that one kernel raises and another awaits; a reader that sees it raised sees all earlier writes.
template <class Word>
using Flag = cuda::atomic_ref<Word, cuda::thread_scope_system>;

/// Returns when `flag` is not zero, or after kCyclesToGiveUp.
template <class Word>
__device__ bool await(Word* flag) {
  const long long start = clock64();
  while (Flag<Word>(*flag).load(cuda::memory_order_acquire) == 0) {
    if (clock64() - start > kCyclesToGiveUp) return false;
    __nanosleep(500);
  }
  return true;
}
template <class Word>
__global__ void hold(Word* open, Word* gave_up) {
  if (!await(open)) *gave_up = 1;
}

/// Blocks a stream: work enqueued after close() waits until the host calls open(). Allocate memory, streams
/// and events first, because allocating page-locked or device memory may wait for the stream (Guide,
/// "Implicit Synchronization").
class Gate {
 public:
  Gate() = default;
  explicit Gate(cudaStream_t stream) { close(stream); }
  ~Gate() {
    if (device_ < 0) return;
    open();
    const OnDevice on(device_);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(flags_[1], 0) << "the gate was never opened: somebody waited for a stream that was held back";
  }
  void close(cudaStream_t stream) {
    require(cudaGetDevice(&device_));
    hold<int><<<1, 1, 0, stream>>>(flags_.data(), flags_.data() + 1);
    require(cudaGetLastError());
  }
  void open() { Flag<int>(flags_[0]).store(1, cuda::memory_order_release); }
  /// Opens the gate and waits for all work in `stream`.
  void drain(cudaStream_t stream) {
    open();
    require(cudaStreamSynchronize(stream));
  }

 private:
  PinnedArray<int> flags_{2, 0};
  int device_ = -1;
};

/// Skips without a GPU. A test must clear the errors that it provokes and leave device 0 current.
class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    devices_ = device_count();
    if (devices_ == 0) GTEST_SKIP() << "needs a GPU";
    require(cudaSetDevice(0));
  }
  void TearDown() override {
    if (devices_ == 0) return;
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  }
  int devices_ = 0;

 private:
  /// Queried once: if a kernel of an earlier test broke the device, later tests must fail, not skip.
  static int device_count() {
    static const int devices = [] {
      int count = 0;
      const bool answered = cudaGetDeviceCount(&count) == cudaSuccess;
      cudaGetLastError();
      return answered ? count : 0;
    }();
    return devices;
  }
};

/// Skips below compute capability 9.0.
class HopperTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    require(cudaDeviceGetAttribute(&major_, cudaDevAttrComputeCapabilityMajor, 0));
    require(cudaDeviceGetAttribute(&minor_, cudaDevAttrComputeCapabilityMinor, 0));
    if (major_ < 9) GTEST_SKIP() << "needs compute capability 9.0";
  }
  int major_ = 0, minor_ = 0;
};

class TwoGpusTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (!IsSkipped() && devices_ < 2) GTEST_SKIP() << "needs 2 GPUs";
  }
  void TearDown() override {
    if (devices_ > 1) {
      require(cudaSetDevice(1));
      EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    }
    if (devices_ > 0) require(cudaSetDevice(0));
    GpuTest::TearDown();
  }
};

}  // namespace semantics
