// mbarriers: arrivals, phases, bytes.
#include "hopper_test.hpp"

namespace semantics {
namespace {

using MbarrierTest = HopperTest;
constexpr int kArrivers = 128;

/// Every thread writes, arrives, waits, and reads another thread's value.
__global__ void meet_at_barrier(int* to) {
  __shared__ std::uint64_t barrier;
  __shared__ int values[kArrivers];
  start_barrier(&barrier, kArrivers);
  values[threadIdx.x] = static_cast<int>(threadIdx.x);
  ptx::mbarrier_arrive(&barrier);
  await_phase(&barrier, 0);
  to[threadIdx.x] = values[kArrivers - 1 - threadIdx.x];
}

TEST_F(MbarrierTest, APhaseOrdersWhatCameBeforeItsArrivals) {
  const DeviceArray<int> to(kArrivers, -1);
  meet_at_barrier<<<1, kArrivers>>>(to.data());
  std::vector<int> expected = counted<int>(kArrivers);
  std::reverse(expected.begin(), expected.end());
  EXPECT_EQ(to.values(), expected);
}

__global__ void look_at_fresh_barrier(int* seen) {
  __shared__ std::uint64_t barrier;
  ptx::mbarrier_init(&barrier, 1);
  seen[0] = static_cast<int>(ptx::mbarrier_test_wait_parity(&barrier, 0));
  seen[1] = static_cast<int>(ptx::mbarrier_test_wait_parity(&barrier, 1));
  ptx::mbarrier_arrive(&barrier);
  seen[2] = static_cast<int>(ptx::mbarrier_test_wait_parity(&barrier, 0));
  seen[3] = static_cast<int>(ptx::mbarrier_test_wait_parity(&barrier, 1));
}

TEST_F(MbarrierTest, AFreshBarrierIsInPhase0AndThePhaseBeforeItIsComplete) {
  const DeviceArray<int> seen(4, -1);
  look_at_fresh_barrier<<<1, 1>>>(seen.data());
  EXPECT_EQ(seen.values(), (std::vector<int>{0, 1, 1, 0}));
}

__global__ void wait_with_states(int* seen) {
  __shared__ std::uint64_t barrier;
  ptx::mbarrier_init(&barrier, 2);
  const std::uint64_t first = ptx::mbarrier_arrive(&barrier);
  seen[0] = static_cast<int>(ptx::mbarrier_test_wait(&barrier, first));
  const std::uint64_t second =
      ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &barrier);
  seen[1] = static_cast<int>(ptx::mbarrier_test_wait(&barrier, first));
  seen[2] = static_cast<int>(ptx::mbarrier_test_wait(ptx::sem_acquire, ptx::scope_cta, &barrier, second));
  const std::uint64_t third = ptx::mbarrier_arrive(&barrier, 2);  // both arrivals at once
  while (!ptx::mbarrier_try_wait(ptx::sem_acquire, ptx::scope_cta, &barrier, third)) {
  }
  const std::uint64_t fourth = ptx::mbarrier_arrive(&barrier);
  seen[3] = static_cast<int>(ptx::mbarrier_test_wait(&barrier, fourth));
}

TEST_F(MbarrierTest, AStateStandsForThePhaseOfItsArrival) {
  const DeviceArray<int> seen(4, -1);
  wait_with_states<<<1, 1>>>(seen.data());
  EXPECT_EQ(seen.values(), (std::vector<int>{0, 1, 1, 0}));
}

/// A word passes back and forth between two warps; each direction has a barrier.
__global__ void ping_pong(int* result, int rounds) {
  __shared__ std::uint64_t full, empty;
  __shared__ int word;
  start_barrier(&full, 1);
  start_barrier(&empty, 1);
  if (threadIdx.x == 0) {
    for (int i = 0; i < rounds; ++i) {
      await_phase(&empty, i + 1);  // the first wait returns at once
      word = static_cast<int>(i);
      ptx::mbarrier_arrive(&full);
    }
  } else if (threadIdx.x == 32) {
    int sum = 0;
    for (int i = 0; i < rounds; ++i) {
      await_phase(&full, i);
      sum = static_cast<int>(2 * sum + word);
      ptx::mbarrier_arrive(&empty);
    }
    *result = sum;
  }
}

TEST_F(MbarrierTest, PhasesAlternate) {
  const DeviceArray<int> result(1, -1);
  ping_pong<<<1, 64>>>(result.data(), 11);
  int expected = 0;
  for (int i = 0; i < 11; ++i) expected = 2 * expected + i;
  EXPECT_EQ(result.value(), expected);
}

/// A thread polls with test_wait instead of waiting.
__global__ void look_until_complete(int* result) {
  __shared__ std::uint64_t barrier;
  __shared__ int word;
  start_barrier(&barrier, 1);
  if (threadIdx.x == 0) {
    while (!ptx::mbarrier_test_wait_parity(ptx::sem_acquire, ptx::scope_cta, &barrier, 0)) {
    }
    *result = word;
  } else if (threadIdx.x == 32) {
    word = 7;
    ptx::mbarrier_arrive(&barrier);
  }
}

TEST_F(MbarrierTest, LookingIsWaitingToo) {
  const DeviceArray<int> result(1, -1);
  look_until_complete<<<1, 64>>>(result.data());
  EXPECT_EQ(result.value(), 7);
}

/// The phase has all arrivals, but lacks bytes.
__global__ void expect_then_copy(const int* from, int* seen) {
  __shared__ std::uint64_t barrier;
  alignas(16) __shared__ int words[4];
  start_barrier(&barrier, 1);
  expect_bytes(&barrier, sizeof words);
  seen[0] = static_cast<int>(ptx::mbarrier_test_wait_parity(&barrier, 0));
  ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, words, from, sizeof words, &barrier);
  await_phase(&barrier, 0);
  for (int i = 0; i < 4; ++i) seen[1 + i] = words[i];
}

TEST_F(MbarrierTest, BytesHoldAPhaseBack) {
  const DeviceArray<int> from(counted<int>(4, 5)), seen(5, -1);
  expect_then_copy<<<1, 1>>>(from.data(), seen.data());
  EXPECT_EQ(seen.values(), (std::vector<int>{0, 5, 6, 7, 8}));
}

/// The bytes may arrive before they are expected: one arrival is missing until then.
__global__ void copy_then_expect(const int* from, int* seen) {
  __shared__ std::uint64_t barrier;
  alignas(16) __shared__ int words[4];
  start_barrier(&barrier, 1);
  ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, words, from, sizeof words, &barrier);
  spin();
  seen[0] = static_cast<int>(ptx::mbarrier_test_wait_parity(&barrier, 0));
  expect_bytes(&barrier, sizeof words);
  await_phase(&barrier, 0);
  seen[1] = words[3];
}

TEST_F(MbarrierTest, BytesMayComeBeforeTheyAreExpected) {
  const DeviceArray<int> from(counted<int>(4, 5)), seen(2, -1);
  copy_then_expect<<<1, 1>>>(from.data(), seen.data());
  EXPECT_EQ(seen.values(), (std::vector<int>{0, 8}));
}

/// Two copies, each with its own arrival, complete one phase.
__global__ void two_producers(const int* from, int* to) {
  __shared__ std::uint64_t barrier;
  alignas(16) __shared__ int words[2][4];
  start_barrier(&barrier, 2);
  if (threadIdx.x % 32 == 0) {
    int* mine = words[threadIdx.x / 32];
    expect_bytes(&barrier, sizeof words[0]);
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, mine, from + 4 * (threadIdx.x / 32),
                       sizeof words[0], &barrier);
  }
  await_phase(&barrier, 0);
  if (threadIdx.x < 8) to[threadIdx.x] = words[threadIdx.x / 4][threadIdx.x % 4];
}

TEST_F(MbarrierTest, SeveralCopiesMayCompleteOnePhase) {
  const DeviceArray<int> from(counted<int>(8, 3)), to(8, -1);
  two_producers<<<1, 64>>>(from.data(), to.data());
  EXPECT_EQ(to.values(), counted<int>(8, 3));
}

__global__ void shared_addresses(int* seen) {
  alignas(1024) __shared__ int words[64];
  seen[0] = static_cast<int>(__cvta_generic_to_shared(words) % 1024);
  seen[1] = static_cast<int>(__cvta_generic_to_shared(words + 3) - __cvta_generic_to_shared(words));
  seen[2] = static_cast<int>(__cvta_generic_to_shared(words) < 256 * 1024);
}

TEST_F(MbarrierTest, SharedMemoryHasAddressesOfItsOwn) {
  const DeviceArray<int> seen(3, -1);
  shared_addresses<<<1, 1>>>(seen.data());
  EXPECT_EQ(seen.values(), (std::vector<int>{0, 12, 1}));
}

}  // namespace
}  // namespace semantics
