// Asynchronous copies of single threads: libcu++'s documentation of cuda::pipeline with thread scope and of
// cuda::memcpy_async, and the Guide's of __pipeline_memcpy_async ("Pipeline Primitives Interface").
#include <cuda_pipeline.h>

#include <cuda/pipeline>
#include <numeric>

#include "gpu_test.hpp"

namespace semantics {
namespace {

constexpr int kTileThreads = 64, kTiles = 9, kCount = kTileThreads * kTiles - 5;  // the last tile is partial

using PipelineTest = GpuTest;

std::vector<int> numbers(int count) {
  std::vector<int> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), 100);
  return values;
}

/// Each thread prefetches its item of the next tile while it computes the current one.
template <class Size>
__global__ void two_stages(const int* from, int* to, int count) {
  __shared__ int slots[2][kTileThreads];
  auto pipeline = cuda::make_pipeline();
  const int thread = static_cast<int>(threadIdx.x);
  const auto fetch = [&](int tile) {
    const int item = tile * kTileThreads + thread;
    pipeline.producer_acquire();
    if (item < count) cuda::memcpy_async(&slots[tile % 2][thread], from + item, Size(sizeof(int)), pipeline);
    pipeline.producer_commit();
  };
  const int tiles = (count + kTileThreads - 1) / kTileThreads;
  fetch(0);
  for (int tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles) fetch(tile + 1);
    pipeline.consumer_wait();
    const int item = tile * kTileThreads + thread;
    if (item < count) to[item] = 2 * slots[tile % 2][thread];
    pipeline.consumer_release();
  }
}

/// The same with the C primitives.
__global__ void two_stages_in_c(const int* from, int* to, int count) {
  __shared__ int slots[2][kTileThreads];
  const int thread = static_cast<int>(threadIdx.x);
  const auto fetch = [&](int tile) {
    const int item = tile * kTileThreads + thread;
    if (item < count) __pipeline_memcpy_async(&slots[tile % 2][thread], from + item, sizeof(int));
    __pipeline_commit();
  };
  fetch(0);
  for (int tile = 0; tile * kTileThreads < count; ++tile) {
    fetch(tile + 1);  // past the end, an empty group
    __pipeline_wait_prior(1);
    const int item = tile * kTileThreads + thread;
    if (item < count) to[item] = 2 * slots[tile % 2][thread];
  }
}

template <class Kernel>
void expect_doubled(Kernel kernel) {
  std::vector<int> expected = numbers(kCount);
  const DeviceArray<int> from(expected), to(kCount);
  kernel<<<1, kTileThreads>>>(from.data(), to.data(), kCount);
  CUDA_OK(cudaGetLastError());
  for (int& value : expected) value *= 2;
  EXPECT_EQ(to.values(), expected);
}

TEST_F(PipelineTest, FetchesAhead) {
  expect_doubled(two_stages<std::size_t>);
  expect_doubled(two_stages<cuda::aligned_size_t<sizeof(int)>>);
  expect_doubled(two_stages_in_c);
}

/// Threads read their neighbours' items: each wait covers only the thread's own copies, so a barrier follows.
__global__ void through_neighbours(const int* from, int* to) {
  __shared__ int slots[kTileThreads];
  auto pipeline = cuda::make_pipeline();
  const int thread = static_cast<int>(threadIdx.x);
  for (int tile = 0; tile < kTiles; ++tile) {
    pipeline.producer_acquire();
    cuda::memcpy_async(&slots[thread], from + tile * kTileThreads + thread, sizeof(int), pipeline);
    pipeline.producer_commit();
    pipeline.consumer_wait();
    __syncthreads();
    to[tile * kTileThreads + thread] = slots[kTileThreads - 1 - thread];
    __syncthreads();
    pipeline.consumer_release();
  }
}

TEST_F(PipelineTest, ABarrierShowsTheCopiesOfOthers) {
  const std::vector<int> values = numbers(kTileThreads * kTiles);
  const DeviceArray<int> from(values), to(values.size());
  through_neighbours<<<1, kTileThreads>>>(from.data(), to.data());
  std::vector<int> expected = values;
  for (int tile = 0; tile < kTiles; ++tile)
    std::reverse(expected.begin() + tile * kTileThreads, expected.begin() + (tile + 1) * kTileThreads);
  EXPECT_EQ(to.values(), expected);
}

/// Three stages; waits for all but the last, then for the last.
__global__ void wait_for_the_oldest(const int* from, int* to) {
  __shared__ int slots[3];
  auto pipeline = cuda::make_pipeline();
  for (int stage = 0; stage < 3; ++stage) {
    pipeline.producer_acquire();
    cuda::memcpy_async(slots + stage, from + stage, sizeof(int), pipeline);
    pipeline.producer_commit();
  }
  cuda::pipeline_consumer_wait_prior<1>(pipeline);
  to[0] = slots[0];
  to[1] = slots[1];
  pipeline.consumer_wait();
  to[2] = slots[2];
  pipeline.quit();
}

TEST_F(PipelineTest, WaitsForAllButTheLastStages) {
  const std::vector<int> values = numbers(3);
  const DeviceArray<int> from(values), to(3);
  wait_for_the_oldest<<<1, 1>>>(from.data(), to.data());
  EXPECT_EQ(to.values(), values);
}

struct alignas(16) Four {
  int item[4];
};

/// One wide copy, and one whose second half is zero-filled.
__global__ void copy_wide(const Four* from, Four* to) {
  __shared__ Four slots[2];
  __pipeline_memcpy_async(slots, from, 16);
  __pipeline_memcpy_async(slots + 1, from, 16, 8);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  to[0] = slots[0];
  to[1] = slots[1];
}

TEST_F(PipelineTest, WideCopiesAndZeros) {
  const DeviceArray<int> from(std::vector<int>{1, 2, 3, 4}), to(8, -1);
  copy_wide<<<1, 1>>>(reinterpret_cast<const Four*>(from.data()), reinterpret_cast<Four*>(to.data()));
  EXPECT_EQ(to.values(), (std::vector<int>{1, 2, 3, 4, 1, 2, 0, 0}));
}

/// Exits with a pending stage.
__global__ void leave_early(const int* from, int* to) {
  __shared__ int slots[2][kTileThreads];
  auto pipeline = cuda::make_pipeline();
  for (int stage = 0; stage < 2; ++stage) {
    pipeline.producer_acquire();
    cuda::memcpy_async(&slots[stage][threadIdx.x], from + threadIdx.x, sizeof(int), pipeline);
    pipeline.producer_commit();
  }
  pipeline.consumer_wait();
  to[blockIdx.x * kTileThreads + threadIdx.x] = slots[0][threadIdx.x];
}

TEST_F(PipelineTest, AThreadMayLeaveWithAStageOnItsWay) {
  const std::vector<int> values = numbers(kTileThreads);
  const DeviceArray<int> from(values), to(2 * kTileThreads);
  leave_early<<<2, kTileThreads>>>(from.data(), to.data());
  std::vector<int> twice = values;
  twice.insert(twice.end(), values.begin(), values.end());
  EXPECT_EQ(to.values(), twice);
}

}  // namespace
}  // namespace semantics
