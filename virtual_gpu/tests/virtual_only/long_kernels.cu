// Long kernels that compute, sleep or read the clock are not reported as deadlocks.
#include <cuda/atomic>

#include "virtual_test.hpp"

namespace virtual_only {
namespace {

/// In time order and in a random order.
class LongKernelsTest : public InSchedules<VirtualTest> {};
INSTANTIATE_TEST_SUITE_P(Schedules, LongKernelsTest, testing::Values(0, 5));

/// A value that depends on every round.
__device__ unsigned int compute(unsigned int rounds) {
  unsigned int x = 1;
  for (unsigned int i = 0; i < rounds; ++i) {
    x = x * 1664525u + 1013904223u;
    if ((x & 1) != 0) x ^= 0x55;
  }
  return x;
}

/// Block 0 computes, all other blocks wait for it.
__global__ void compute_for_others(unsigned int* word, unsigned int rounds) {
  if (blockIdx.x == 0) {
    atomicExch(word, compute(rounds) | 1);
  } else {
    while (atomicAdd(word, 0u) == 0) __nanosleep(20);
  }
}

TEST_P(LongKernelsTest, BlockComputesWhileOthersPoll) {
  unsigned int* word = device_words(1, 0u);
  compute_for_others<<<16, 1>>>(word, 5'000'000u);
  CUDA_OK(cudaDeviceSynchronize());
  EXPECT_FALSE(vgpu::failure_reported());
}

__global__ void nap(int count, unsigned int nanoseconds) {
  for (int i = 0; i < count; ++i) __nanosleep(nanoseconds);
}

TEST_P(LongKernelsTest, ManyNaps) {
  nap<<<1, 1>>>(30'000, 1000);
  CUDA_OK(cudaDeviceSynchronize());
}

TEST_P(LongKernelsTest, NapsWhileTheHostAsks) {
  nap<<<1, 1>>>(30, 1'000'000);
  cudaError_t state = cudaErrorNotReady;
  while (state == cudaErrorNotReady) state = cudaStreamQuery(nullptr);
  EXPECT_EQ(state, cudaSuccess);
}

/// A wait with a time limit.
__global__ void await_until(int* word, int* gave_up, long long cycles) {
  const long long start = clock64();
  while (atomicAdd(word, 0) == 0) {
    if (clock64() - start > cycles) {
      *gave_up = 1;
      return;
    }
    __nanosleep(1000);
  }
}

// The machine's clock is 1 GHz: a sleep of 1 us is 1,000 cycles.
TEST_P(LongKernelsTest, WaitGivesUpByTheClock) {
  int* words = device_words(2, 0);
  const float milliseconds =
      elapsed(nullptr, [&] { await_until<<<1, 1>>>(words, words + 1, 1'500'000'000); });
  EXPECT_EQ(word(words + 1), 1);
  EXPECT_NEAR(milliseconds, 1500, 50);
}

/// The same with a limit on the number of polls.
__global__ void await_and_count(int* word, int limit) {
  for (int i = 0; i < limit && atomicAdd(word, 0) == 0; ++i) __nanosleep(100);
}

TEST_P(LongKernelsTest, WaitThatCountsItsLooksIsADeadlockAtLast) {
  await_and_count<<<1, 1>>>(device_words(1, 0), 1'000'000'000);
  expect_parts(deadlock_of(cudaDeviceSynchronize), {"deadlock", "await_and_count", "1 polling"});
}

/// All threads of all blocks poll, each with its own growing sleep.
__global__ void await_patiently(int* word) {
  unsigned int pause = 8 + threadIdx.x;
  cuda::atomic_ref<int, cuda::thread_scope_device> flag(*word);
  while (flag.load(cuda::memory_order_acquire) == 0) {
    __nanosleep(pause);
    if (pause < 1000) pause *= 2;
  }
}

// Reported as soon as without growing sleeps, because their last length repeats.
TEST_P(LongKernelsTest, BlocksThatWaitForEverAreADeadlockSoon) {
  await_patiently<<<16, 32>>>(device_words(1, 0));
  expect_parts(deadlock_of(cudaDeviceSynchronize), {"16 resident", "32 polling"});
}

}  // namespace
}  // namespace virtual_only
