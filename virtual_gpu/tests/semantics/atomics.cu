// Atomic functions, and blocks that synchronise by them. Guide, "Atomic Functions" and "Memory Fence
// Functions".
#include <cuda/atomic>

#include <numeric>

#include "gpu_test.hpp"

namespace semantics {
namespace {

using AtomicsTest = GpuTest;
constexpr int kBlocks = 13, kThreads = 96, kAll = kBlocks * kThreads;

/// All threads of the grid update the same words; no result depends on the order.
template <class T>
__global__ void all_kinds(T* words) {
  const T i = static_cast<T>(blockIdx.x * blockDim.x + threadIdx.x);
  atomicAdd(&words[0], i);
  atomicMin(&words[1], i + 5);
  atomicMax(&words[2], i);
  atomicOr(&words[3], T{1} << (i % 20));
  atomicAnd(&words[4], ~(T{1} << (i % 20)));
  atomicXor(&words[5], i);
  const T seen = atomicExch(&words[6], i);
  atomicAdd(&words[7], seen);                     // each value but the last is seen once
  T old = atomicAdd(&words[8], T{0});             // a plain read would race
  for (T expected = old + 1; expected != old;) {  // add 2 by compare-and-swap
    expected = old;
    old = atomicCAS(&words[8], expected, expected + 2);
  }
}

template <class T>
class AtomicKindsTest : public GpuTest {};
using Integers = testing::Types<int, unsigned int, unsigned long long>;
TYPED_TEST_SUITE(AtomicKindsTest, Integers);

TYPED_TEST(AtomicKindsTest, EveryUpdateCounts) {
  using T = TypeParam;
  const T sum = static_cast<T>(kAll) * (kAll - 1) / 2;
  const T start[9] = {0, 1000000, 0, 0, 0xffffff, 0, 0, 0, 1};
  const DeviceArray<T> words(std::vector<T>(start, start + 9));
  all_kinds<<<kBlocks, kThreads>>>(words.data());
  CUDA_OK(cudaGetLastError());
  const std::vector<T> values = words.values();
  T parity = 0;
  for (T i = 0; i < static_cast<T>(kAll); ++i) parity ^= i;
  EXPECT_EQ(values[0], sum) << "add";
  EXPECT_EQ(values[1], T{5}) << "min";
  EXPECT_EQ(values[2], static_cast<T>(kAll - 1)) << "max";
  EXPECT_EQ(values[3], T{0xfffff}) << "or";
  EXPECT_EQ(values[4], T{0xf00000}) << "and";
  EXPECT_EQ(values[5], parity) << "xor";
  EXPECT_EQ(values[6] + values[7], sum) << "exchange";
  EXPECT_EQ(values[8], static_cast<T>(2 * kAll + 1)) << "compare and swap";
}

/// The return value of each atomic and the new value of the word, in one thread.
__global__ void old_values(unsigned int* out) {
  unsigned int word = 5;
  unsigned int* p = out + 20;  // atomics work on global memory
  *p = word;
  out[0] = atomicAdd(p, 3u);      // 5 -> 8
  out[1] = atomicSub(p, 1u);      // 8 -> 7
  out[2] = atomicInc(p, 7u);      // 7 -> 0: the bound is reached
  out[3] = atomicInc(p, 7u);      // 0 -> 1
  out[4] = atomicDec(p, 7u);      // 1 -> 0
  out[5] = atomicDec(p, 7u);      // 0 -> 7
  out[6] = atomicDec(p, 3u);      // 7 > 3 -> 3
  out[7] = atomicCAS(p, 4u, 9u);  // 3 stays
  out[8] = atomicCAS(p, 3u, 9u);  // 3 -> 9
  out[9] = atomicMin(p, 2u);      // 9 -> 2
  out[10] = atomicMax(p, 12u);    // 2 -> 12
  out[11] = atomicAnd(p, 6u);     // 12 -> 4
  out[12] = atomicOr(p, 3u);      // 4 -> 7
  out[13] = atomicXor(p, 5u);     // 7 -> 2
  out[14] = atomicExch(p, 1u);    // 2 -> 1
  out[15] = *p;
}

TEST_F(AtomicsTest, ReturnTheOldValue) {
  const DeviceArray<unsigned int> out(21, 77);
  old_values<<<1, 1>>>(out.data());
  const std::vector<unsigned int> values = out.values();
  EXPECT_EQ(std::vector<unsigned int>(values.begin(), values.begin() + 16),
            (std::vector<unsigned int>{5, 8, 7, 0, 1, 0, 7, 3, 3, 9, 2, 12, 4, 7, 2, 1}));
}

/// Atomics of other scopes and by compare-and-swap, in one thread.
__global__ void other_scopes(int* words) {
  atomicAdd_block(&words[0], 1);
  atomicMax_block(&words[1], static_cast<int>(threadIdx.x));
  atomicAdd_system(&words[2], 1);
  atomicXor_system(&words[3], 1 << threadIdx.x % 2);
  const int me = static_cast<int>(threadIdx.x);
  while (atomicCAS_block(&words[4], me, me + 1) != me) {
  }
  while (atomicCAS_system(&words[5], me, me + 1) != me) {
  }
}

TEST_F(AtomicsTest, OfBlockAndSystemScope) {
  const DeviceArray<int> words(6, 0);
  other_scopes<<<1, kThreads>>>(words.data());
  EXPECT_EQ(words.values(), (std::vector<int>{kThreads, kThreads - 1, kThreads, 0, kThreads, kThreads}));
}

/// Multiples of 1/4 whose sum is exact in any order.
template <class T>
__global__ void add_quarters(T* sum) {
  atomicAdd(sum, static_cast<T>(threadIdx.x) / 4);
}

TEST_F(AtomicsTest, FloatingPointAddition) {
  const DeviceArray<float> single(1, 0.5f);
  const DeviceArray<double> twice(1, 0.5);
  add_quarters<<<kBlocks, kThreads>>>(single.data());
  add_quarters<<<kBlocks, kThreads>>>(twice.data());
  const double expected = 0.5 + kBlocks * (kThreads * (kThreads - 1) / 2) / 4.0;
  EXPECT_EQ(single.value(), static_cast<float>(expected));
  EXPECT_EQ(twice.value(), expected);
}

template <class T>
__global__ void histogram(const T* values, int count, T* bins) {
  __shared__ T mine[10];
  if (threadIdx.x < 10) mine[threadIdx.x] = 0;
  __syncthreads();
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < count;
       i += gridDim.x * blockDim.x) {
    atomicAdd(&mine[values[i]], 1);
  }
  __syncthreads();
  if (threadIdx.x < 10) atomicAdd(&bins[threadIdx.x], mine[threadIdx.x]);
}

TEST_F(AtomicsTest, HistogramInSharedMemory) {
  std::vector<int> values(10007), expected(10, 0);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<int>(i * i % 10);
    ++expected[values[i]];
  }
  const DeviceArray<int> in(values), bins(10, 0);
  histogram<<<7, 64>>>(in.data(), static_cast<int>(values.size()), bins.data());
  EXPECT_EQ(bins.values(), expected);
}

/// The Guide's example of __threadfence(): the block that finishes last sums the values of all blocks.
__global__ void sum_by_the_last_block(const int* in, volatile int* partial, unsigned int* finished,
                                      int* out) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    int sum = 0;
    for (unsigned int i = 0; i < blockDim.x; ++i) sum += in[blockIdx.x * blockDim.x + i];
    partial[blockIdx.x] = sum;
    __threadfence();
    last = atomicAdd(finished, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    int sum = 0;
    for (unsigned int i = 0; i < gridDim.x; ++i) sum += partial[i];
    *out = sum;
  }
}

TEST_F(AtomicsTest, TheLastBlockSeesAllPartialSums) {
  std::vector<int> values(kAll);
  std::iota(values.begin(), values.end(), 0);
  const DeviceArray<int> in(values), partial(kBlocks, 0), out(1, 0);
  const DeviceArray<unsigned int> finished(1, 0);
  sum_by_the_last_block<<<kBlocks, kThreads>>>(in.data(), partial.data(), finished.data(), out.data());
  EXPECT_EQ(out.value(), kAll * (kAll - 1) / 2);
}

/// Two resident blocks pass a number back and forth; each adds to it. Every GPU holds two blocks of one
/// thread at once.
__global__ void ping_pong(int* turn, volatile int* number, int rounds, int* gave_up) {
  const int me = static_cast<int>(blockIdx.x);
  const long long start = clock64();
  for (int round = 0; round < rounds; ++round) {
    while (atomicAdd(turn, 0) != me) {
      if (clock64() - start > kCyclesToGiveUp) {
        *gave_up = 1;
        return;
      }
      __nanosleep(100);
    }
    __threadfence();
    *number = *number * 2 + me;
    __threadfence();
    atomicExch(turn, 1 - me);
  }
}

TEST_F(AtomicsTest, TwoResidentBlocksTakeTurns) {
  const DeviceArray<int> turn(1, 0), number(1, 1), gave_up(1, 0);
  ping_pong<<<2, 1>>>(turn.data(), number.data(), 10, gave_up.data());
  EXPECT_EQ(number.value(), (1 << 20) + 0x55555);
  EXPECT_EQ(gave_up.value(), 0);
}

/// A loop that reads a word once a round without waiting: `left` counts down. Each thread counts the rounds
/// in which `left` was not 0.
__global__ void rounds_while_something_is_left(int* left, int rounds, int* counts) {
  const cuda::atomic_ref<int, cuda::thread_scope_device> word(*left);
  int count = 0;
  for (int round = 0; round < rounds; ++round) {
    if (word.load(cuda::memory_order_relaxed) > 0) ++count;
    __syncthreads();
  }
  counts[blockIdx.x * blockDim.x + threadIdx.x] = count;
}

TEST_F(AtomicsTest, ManyBlocksLookAtAWordThatStaysAsItIs) {
  constexpr int kMany = 300, kRounds = 20;
  const DeviceArray<int> left(1, 1), counts(std::size_t{kMany} * kThreads, 0);
  rounds_while_something_is_left<<<kMany, kThreads>>>(left.data(), kRounds, counts.data());
  EXPECT_EQ(counts.values(), std::vector<int>(std::size_t{kMany} * kThreads, kRounds));
}

/// Block `waits` polls a word until the other block sets it. Every GPU holds two blocks of a warp at once.
__global__ void wait_by_looking(int* flag, unsigned int waits, int* seen, int* gave_up) {
  const cuda::atomic_ref<int, cuda::thread_scope_device> word(*flag);
  if (blockIdx.x != waits) {
    if (threadIdx.x == 0) word.store(7, cuda::memory_order_release);
    return;
  }
  const long long start = clock64();
  while (word.load(cuda::memory_order_acquire) == 0) {
    if (clock64() - start > kCyclesToGiveUp) {
      atomicExch(gave_up, 1);
      return;
    }
  }
  seen[threadIdx.x] = word.load(cuda::memory_order_relaxed);
}

TEST_F(AtomicsTest, ABlockWaitsByLookingForAnEarlierOrALaterOne) {
  for (const unsigned int waits : {0u, 1u}) {
    const DeviceArray<int> flag(1, 0), seen(32, 0), gave_up(1, 0);
    wait_by_looking<<<2, 32>>>(flag.data(), waits, seen.data(), gave_up.data());
    EXPECT_EQ(seen.values(), std::vector<int>(32, 7)) << "block " << waits;
    EXPECT_EQ(gave_up.value(), 0) << "block " << waits;
  }
}

/// A lock: without mutual exclusion the plain addition would lose blocks.
__global__ void add_under_a_lock(int* lock, volatile int* count) {
  while (atomicCAS(lock, 0, 1) != 0) __nanosleep(100);
  __threadfence();
  const int seen = *count;
  __nanosleep(200);  // gives other blocks time to interfere
  *count = seen + 1;
  __threadfence();
  atomicExch(lock, 0);
}

TEST_F(AtomicsTest, LockExcludesOtherBlocks) {
  const DeviceArray<int> lock(1, 0), count(1, 0);
  add_under_a_lock<<<50, 1>>>(lock.data(), count.data());
  EXPECT_EQ(count.value(), 50);
}

}  // namespace
}  // namespace semantics
