#include "overlap/gpu/stream.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <new>
#include <numeric>
#include <stdexcept>
#include <type_traits>

#include "overlap/gpu/backend.hpp"

namespace overlap {
namespace {

template <typename T>
constexpr bool kMoveOnly = std::is_nothrow_move_constructible_v<T>&& std::is_nothrow_move_assignable_v<T>&&
                               std::is_nothrow_destructible_v<T> &&
                           !std::is_copy_constructible_v<T> && !std::is_copy_assignable_v<T>;
static_assert(kMoveOnly<Stream>);
static_assert(kMoveOnly<Event>);
static_assert(kMoveOnly<DeviceBuffer<int>>);
static_assert(kMoveOnly<PinnedBuffer<int>>);
static_assert(std::is_convertible_v<Stream, cudaStream_t>);
static_assert(std::is_convertible_v<Event, cudaEvent_t>);

// These make no CUDA call, so they pass without a GPU and for a device that does not exist.
TEST(BufferTest, ZeroElements) {
  const DeviceBuffer<double> device(1000, 0);
  EXPECT_EQ(device.data(), nullptr);
  EXPECT_EQ(device.size(), 0U);
  EXPECT_EQ(device.bytes(), 0U);
  PinnedBuffer<double> pinned(0);
  EXPECT_EQ(pinned.data(), nullptr);
  EXPECT_EQ(pinned.begin(), pinned.end());
}

TEST(BufferTest, TooManyBytes) {
  const std::size_t too_many = std::numeric_limits<std::size_t>::max() / sizeof(double) + 1;
  EXPECT_THROW(DeviceBuffer<double>(1000, too_many), std::length_error);
  EXPECT_THROW(PinnedBuffer<double>{too_many}, std::length_error);
}

class StreamGpuTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!backend::unavailable().empty()) GTEST_SKIP() << backend::unavailable();
    CUDA_CHECK(cudaGetDeviceCount(&devices_));
    CUDA_CHECK(cudaSetDevice(0));
  }
  int last() const { return devices_ - 1; }
  static int current() {
    int device = -1;
    CUDA_CHECK(cudaGetDevice(&device));
    return device;
  }

  int devices_ = 0;
};

TEST_F(StreamGpuTest, GuardRestoresTheDevice) {
  {
    const DeviceGuard guard(last());
    EXPECT_EQ(current(), last());
  }
  EXPECT_EQ(current(), 0);
  EXPECT_THROW(DeviceGuard guard(devices_), CudaError);
  cudaGetLastError();
  EXPECT_EQ(current(), 0);
}

TEST_F(StreamGpuTest, OwnersLeaveTheDeviceAlone) {
  {
    const Stream stream(last());
    const Event event(last());
    const DeviceBuffer<int> buffer(last(), 100);
    EXPECT_EQ(current(), 0);
    EXPECT_EQ(stream.device(), last());
    EXPECT_EQ(event.device(), last());
    EXPECT_EQ(buffer.device(), last());
    CUDA_CHECK(cudaSetDevice(last()));
    CUDA_CHECK(cudaEventRecord(event, stream));
    CUDA_CHECK(cudaEventSynchronize(event));
    CUDA_CHECK(cudaSetDevice(0));
  }
  EXPECT_EQ(current(), 0);
}

TEST_F(StreamGpuTest, DataGoesThereAndBack) {
  const std::size_t count = 1000;
  PinnedBuffer<int> source(count);
  PinnedBuffer<int> result(count);
  std::iota(source.begin(), source.end(), 1);
  std::fill(result.begin(), result.end(), 0);
  const Stream stream(last());
  const DeviceBuffer<int> device(last(), count);
  EXPECT_EQ(device.bytes(), count * sizeof(int));
  CUDA_CHECK(cudaMemcpyAsync(device.data(), source.data(), source.bytes(), cudaMemcpyHostToDevice, stream));
  CUDA_CHECK(cudaMemcpyAsync(result.data(), device.data(), device.bytes(), cudaMemcpyDeviceToHost, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  EXPECT_EQ(result[0], 1);
  EXPECT_EQ(result[count - 1], 1000);
  EXPECT_EQ(std::accumulate(result.begin(), result.end(), 0), 500500);
}

TEST_F(StreamGpuTest, MovingTakesTheHandle) {
  Stream stream(0);
  const cudaStream_t handle = stream;
  ASSERT_NE(handle, nullptr);
  Stream taken(std::move(stream));
  EXPECT_EQ(taken.get(), handle);
  EXPECT_EQ(stream.get(), nullptr);  // NOLINT(bugprone-use-after-move): tests the moved-from state
  stream = std::move(taken);
  EXPECT_EQ(stream.get(), handle);
  CUDA_CHECK(cudaStreamSynchronize(stream));

  DeviceBuffer<int> buffer(0, 10);
  int* const data = buffer.data();
  DeviceBuffer<int> other(last(), 20);
  other = std::move(buffer);  // frees the 20
  EXPECT_EQ(other.data(), data);
  EXPECT_EQ(other.size(), 10U);
  EXPECT_EQ(other.device(), 0);
  EXPECT_EQ(buffer.size(), 0U);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(buffer.data(), nullptr);

  PinnedBuffer<int> pinned(10);
  pinned[9] = 99;
  PinnedBuffer<int> pinned_taken(std::move(pinned));
  EXPECT_EQ(pinned_taken[9], 99);
  EXPECT_EQ(pinned.size(), 0U);  // NOLINT(bugprone-use-after-move)
}

TEST_F(StreamGpuTest, MoreThanThereIs) {
  const std::size_t petabyte = std::size_t{1} << 50;
  try {
    const DeviceBuffer<char> buffer(last(), petabyte);
    FAIL() << "no exception";
  } catch (const CudaError& error) {
    EXPECT_EQ(error.code(), cudaErrorMemoryAllocation);
    EXPECT_EQ(error.device(), last());
  }
  cudaGetLastError();
  EXPECT_THROW(PinnedBuffer<char>{petabyte}, std::bad_alloc);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);  // no error is left for the next check
  EXPECT_EQ(current(), 0);
}

TEST_F(StreamGpuTest, MemoryIsGivenBack) {
  const std::size_t bytes = std::size_t{4} << 20;
  const auto free_bytes = [] {
    std::size_t free = 0;
    std::size_t total = 0;
    CUDA_CHECK(cudaMemGetInfo(&free, &total));
    return static_cast<std::int64_t>(free);
  };
  const std::int64_t before = free_bytes();
  for (int i = 0; i < 30; ++i) {
    DeviceBuffer<char> first(0, bytes);
    DeviceBuffer<char> second(std::move(first));
    second = DeviceBuffer<char>(0, 2 * bytes);
  }
  // A leak of either buffer would be at least 120 MiB. The driver may keep a little memory of its own.
  EXPECT_LT(before - free_bytes(), std::int64_t{32} << 20);
}

TEST(DeviceBufferTest, TooLittleMemorySaysHowMuchIsAskedForAndFree) {
  if (backend::unavailable() != "") GTEST_SKIP() << backend::unavailable();
  try {
    const DeviceBuffer<char> buffer(0, std::size_t{1} << 50);
    FAIL() << "a petabyte fits";
  } catch (const CudaError& error) {
    EXPECT_EQ(error.code(), cudaErrorMemoryAllocation);
    EXPECT_NE(error.detail().find("1073741824 MiB are requested, "), std::string::npos) << error.detail();
    EXPECT_NE(error.detail().find(" MiB are free"), std::string::npos) << error.detail();
  }
  cudaGetLastError();
}

}  // namespace
}  // namespace overlap
