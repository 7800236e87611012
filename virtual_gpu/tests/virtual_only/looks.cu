// A thread that reads a word occasionally does not wait: its block ends before the next one needs its stacks.
// A thread that only polls waits, and yields to the word's writer.
#include <cuda/atomic>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "virtual_test.hpp"

namespace virtual_only {
namespace {

using LooksTest = VirtualTest;
using Word = cuda::atomic_ref<int, cuda::thread_scope_device>;
constexpr int kThreads = 256;

/// Each thread reads `looks` times and sums the values.
__global__ void look_now_and_then(int* word, int* sums, int looks, bool meet) {
  int sum = 0;
  for (int i = 0; i < looks; ++i) {
    sum += Word(*word).load(cuda::memory_order_relaxed);
    if (meet) __syncthreads();
  }
  sums[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

/// Launches `blocks` blocks of threads that read a word of constant value 3, and checks the sums.
void expect_looks(int blocks, int looks, bool meet) {
  int* word = device_words(1, 3);
  const std::size_t threads = static_cast<std::size_t>(blocks) * kThreads;
  int* sums = device_room(threads);
  look_now_and_then<<<blocks, kThreads>>>(word, sums, looks, meet);
  require(cudaDeviceSynchronize());
  EXPECT_EQ(words(sums, threads), std::vector<int>(threads, 3 * looks));
}

/// 200 blocks, 64 of which are resident at once, with stacks for little more than one block.
void look_with_few_stacks(bool meet) {
  vgpu::reset();
  require(cudaSetDevice(0));
  leave_address_space(kFewStacks);
  expect_looks(200, 100, meet);
  _exit(testing::Test::HasFailure() ? 1 : 0);
}

TEST_F(LooksTest, MoreBlocksThanStacksLookBetweenBarriers) {
  EXPECT_EXIT(look_with_few_stacks(true), testing::ExitedWithCode(0), "");
}

TEST_F(LooksTest, MoreBlocksThanStacksLookInALoop) {
  EXPECT_EXIT(look_with_few_stacks(false), testing::ExitedWithCode(0), "");
}

// A large GPU holds 1,056 of these blocks at once: 270,336 threads, far more than a process has stacks for.
// With a seed too, although some blocks then yield between their reads.
TEST_F(LooksTest, MoreBlocksThanAnyProcessHasStacksFor) {
  for (const std::uint64_t seed : {0, 1, 2}) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    vgpu::reset();
    vgpu::use_machine("h100-nvlink");
    if (seed != 0) vgpu::use_schedule(seed);
    expect_looks(2000, 4, seed == 1);
  }
}

/// How the threads of a block wait for a word of another block.
enum class Wait { kEach, kOneForAll, kAllTogether, kCompareAndSwap };

template <Wait wait, class T>
__device__ void await_word(T* word) {
  if constexpr (wait == Wait::kEach) {
    while (Word(*word).load(cuda::memory_order_acquire) == 0) {
    }
  } else if constexpr (wait == Wait::kCompareAndSwap) {
    while (atomicCAS(word, 1, 1) == 0) {
    }
  } else {
    __shared__ T seen;
    do {  // a barrier is no progress
      if (wait == Wait::kAllTogether || threadIdx.x == 0) {
        const T value = Word(*word).load(cuda::memory_order_acquire);
        if (threadIdx.x == 0) seen = value;
      }
      __syncthreads();
      if (seen != 0) break;
      __syncthreads();
    } while (true);
  }
}

/// Each block but the last waits for the next one.
template <Wait wait, class T>
__global__ void chain(T* words) {
  if (blockIdx.x + 1 < gridDim.x) await_word<wait>(&words[blockIdx.x + 1]);
  __syncthreads();
  if (threadIdx.x == 0) Word(words[blockIdx.x]).store(1, cuda::memory_order_release);
}

template <Wait wait>
void expect_chain_ends() {
  for (std::uint64_t seed = 0; seed <= 5; ++seed) {
    SCOPED_TRACE("wait " + std::to_string(static_cast<int>(wait)) + ", seed " + std::to_string(seed));
    start_over(seed);
    int* words = device_words(6, 0);
    chain<wait><<<6, 32>>>(words);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess) << vgpu::last_error_detail();
    EXPECT_EQ(word(words), 1);
  }
}

TEST_F(LooksTest, ABlockThatWaitsLetsTheOneItWaitsForBegin) {
  expect_chain_ends<Wait::kEach>();
  expect_chain_ends<Wait::kOneForAll>();
  expect_chain_ends<Wait::kAllTogether>();
  expect_chain_ends<Wait::kCompareAndSwap>();
}

/// All blocks wait for a word that is never set.
template <Wait wait, class T>
__global__ void await_for_ever(T* word) {
  await_word<wait>(word);
}

template <Wait wait>
void expect_deadlock() {
  for (const std::uint64_t seed : {0, 5}) {
    SCOPED_TRACE("wait " + std::to_string(static_cast<int>(wait)) + ", seed " + std::to_string(seed));
    start_over(seed);
    int* word = device_words(1, 0);
    await_for_ever<wait><<<6, 32>>>(word);
    expect_parts(deadlock_of(cudaDeviceSynchronize),
                 {"deadlock", "await_for_ever", "0 of 6 blocks done", "6 resident", "polling"});
  }
}

TEST_F(LooksTest, WaitsWithoutEndAreDeadlocks) {
  expect_deadlock<Wait::kEach>();
  expect_deadlock<Wait::kCompareAndSwap>();
}

/// Block 1 changes the word that block 0 reads three times. `seen`: the values that block 0 read, as digits.
__global__ void look_while_it_changes(int* word, int* seen) {
  const Word shared(*word);
  if (blockIdx.x == 1) return shared.store(1, cuda::memory_order_relaxed);
  for (int i = 0; i < 3; ++i) *seen = *seen * 10 + shared.load(cuda::memory_order_relaxed);
}

struct Looked {
  int digits;
  std::uint64_t hash;
  auto operator<=>(const Looked&) const = default;
};
Looked look_with_seed(std::uint64_t seed) {
  start_over(seed);
  int* word = device_words(1, 0);
  int* seen = device_words(1, 0);
  look_while_it_changes<<<2, 1>>>(word, seen);
  return {virtual_only::word(seen), vgpu::schedule_hash()};
}

// Another block may run between two reads that are no wait: some seeds show it, reproducibly.
TEST_F(LooksTest, SeedsLetOtherBlocksComeBetweenLooks) {
  std::set<int> outcomes;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const Looked first = look_with_seed(seed);
    EXPECT_EQ(look_with_seed(seed), first) << "seed " << seed;
    outcomes.insert(first.digits);
  }
  EXPECT_EQ(outcomes, (std::set<int>{0, 1, 111})) << "before, in between and after";
}

/// Modelled us of 2 x 256 threads that read `looks` times.
double time_of_looks(int looks) {
  int* word = device_words(1, 3);
  int* sums = device_words(2 * kThreads, 0);
  const cudaStream_t stream = new_stream();
  return 1000 *
         elapsed(stream, [&] { look_now_and_then<<<2, kThreads, 0, stream>>>(word, sums, looks, false); });
}

// A read costs its instructions. Each poll of a wait costs 0.3 us on this machine, so 100 polls would cost
// 30.
TEST_F(LooksTest, LooksCostNoPollsInTheModel) { EXPECT_LT(time_of_looks(110) - time_of_looks(10), 15); }

// A waiting thread pays for polls, not for all its reads: it ends soon after the word has changed.
TEST_F(LooksTest, AWaitEndsSoonAfterItsWordHasChangedInTheModel) {
  for (const int microseconds : {5, 50}) {
    vgpu::reset();
    int* flag = device_words(1, 0);
    int* sink = device_words(1, 0);
    const cudaStream_t first = new_stream(), second = new_stream();
    const cudaEvent_t start = new_event(), set_at = new_event(), seen_at = new_event();
    require(cudaEventRecord(start, first));
    require(cudaStreamWaitEvent(second, start));
    await_for_ever<Wait::kEach><<<1, kThreads, 0, second>>>(flag);
    require(cudaEventRecord(seen_at, second));
    work<<<1, 1, 0, first>>>(sink, 2000 * microseconds);
    set<int><<<1, 1, 0, first>>>(flag, 1);
    require(cudaEventRecord(set_at, first));
    require(cudaDeviceSynchronize());
    const float late = milliseconds(set_at, seen_at);
    EXPECT_GT(1000 * late, -1) << microseconds;
    EXPECT_LT(1000 * late, 3) << microseconds;
  }
}

/// Gives up after `looks` looks, or `clocks` clocks. `result`: the number of looks, and the clocks.
__global__ void await_or_give_up(int* flag, int looks, long long clocks, long long* result) {
  const long long begin = clock64();
  int count = 0;
  for (; Word(*flag).load(cuda::memory_order_acquire) == 0 && count < looks; ++count) {
    if (clocks > 0 && clock64() - begin > clocks) break;
  }
  result[0] = count;
  result[1] = clock64() - begin;
}
/// The same, and reads no clock.
__global__ void await_some_looks(int* flag, int looks, long long* result) {
  while (Word(*flag).load(cuda::memory_order_acquire) == 0 && *result < looks) ++*result;
}

// While nothing changes, most looks of a wait are left out. One that counts its looks still comes to its end,
// and one that reads the clock is as exact as before.
TEST_F(LooksTest, AWaitThatGivesUpEnds) {
  int* flag = device_words(1, 0);
  long long* result = pinned_room<long long>(2);
  result[0] = 0;
  const cudaStream_t stream = new_stream();
  // The last 500 looks are polls of 0.3 us, one in sixteen of which is made.
  EXPECT_LT(elapsed(stream, [&] { await_some_looks<<<1, 1, 0, stream>>>(flag, 1500, result); }), 2.8);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess) << vgpu::last_error_detail();
  EXPECT_EQ(result[0], 1500);
  constexpr long long kClocks = 100'000;
  await_or_give_up<<<1, 1>>>(flag, 1'000'000, kClocks, result);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess) << vgpu::last_error_detail();
  EXPECT_LT(result[0], 1'000'000);
  EXPECT_GT(result[1], kClocks);
  EXPECT_LT(result[1], kClocks + 2000);
}

}  // namespace
}  // namespace virtual_only
