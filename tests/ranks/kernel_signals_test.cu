// Signals that kernels raise and await, the stop of a run while they wait, and space for all waiting blocks.
// On real and virtual GPUs.
#include "overlap/gpu/kernel_signals.hpp"

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "overlap/gpu/check.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/gpu/host_copy.hpp"
#include "overlap/gpu/launch.hpp"
#include "overlap/gpu/peer_buffer.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/signals.hpp"
#include "overlap/gpu/stream.hpp"
#include "rank_programs.hpp"

namespace overlap {
namespace {

TEST(HasReached, ComparesWordsThatOverflow) {
  EXPECT_TRUE(has_reached(5, 5));
  EXPECT_TRUE(has_reached(6, 5));
  EXPECT_FALSE(has_reached(4, 5));
  EXPECT_FALSE(has_reached(0, 1));
  EXPECT_TRUE(has_reached(2, 0xfffffffe));   // four later
  EXPECT_FALSE(has_reached(0xfffffffe, 2));  // four earlier
  EXPECT_TRUE(has_reached(0x80000001, 0x7fffffff));
  EXPECT_FALSE(has_reached(0x7fffffff, 0x80000001));
  // The value that a stop adds ends every wait.
  EXPECT_TRUE(has_reached(7 + (1U << 30), 7 + 100));
}

constexpr int kThreads = 64;

/// Each rank's kernel sends values to its right neighbour and receives the left neighbour's: writes, raises,
/// awaits, reads. A `round` is one call.
template <typename T>
__global__ void exchange_values(T* to, const T* from, std::uint32_t* raised, std::uint32_t* awaited,
                                unsigned* stop, T* sum, int rank, std::uint32_t round) {
  to[threadIdx.x] = static_cast<T>(1000 * rank + static_cast<int>(round) + static_cast<int>(threadIdx.x));
  __syncthreads();  // all threads have written before one of them raises
  if (threadIdx.x == 0) {
    raise_signal(raised, round);
    await_signal(awaited, round, stop);
  }
  __syncthreads();
  sum[threadIdx.x] += from[threadIdx.x];
}

class KernelSignals : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sizes, KernelSignals, testing::Values(1, 2, 3, 4, 8));

TEST_P(KernelSignals, CarryWhatWasWrittenBefore) {
  constexpr int kCalls = 10;
  try {
    run_ranks(GetParam(), [&](Rank& rank) {
      const PeerBuffer<int> slots(rank, kCalls * kThreads);  // separate slots for each call
      Signals arrived(rank, 1);
      const DeviceBuffer<int> sum(rank.device(), kThreads);
      CUDA_CHECK(cudaMemset(sum.data(), 0, sum.bytes()));
      CUDA_CHECK(cudaDeviceSynchronize());
      require_resident(rank, exchange_values<int>, kThreads, 0, 1);
      rank.barrier();
      for (int call = 0; call < kCalls; ++call) {
        arrived.begin_call();
        exchange_values<<<1, kThreads, 0, rank.stream()>>>(
            slots.on(rank.next()) + call * kThreads, slots.local() + call * kThreads,
            arrived.word(rank.next(), 0), arrived.word(rank.id(), 0), rank.abort_flag(), sum.data(),
            rank.id(), arrived.epoch());
        CUDA_CHECK(cudaGetLastError());
      }
      rank.synchronize(rank.stream());
      rank.barrier();
      std::vector<int> found(kThreads);
      CUDA_CHECK(cudaMemcpy(found.data(), sum.data(), sum.bytes(), cudaMemcpyDeviceToHost));
      for (int i = 0; i < kThreads; ++i)
        EXPECT_EQ(found[static_cast<std::size_t>(i)], kCalls * (1000 * rank.previous() + i) + 55) << i;
    });
  } catch (const Skip& skip) {
    GTEST_SKIP() << skip.what();
  }
}

template <typename T>
__global__ void await_only(std::uint32_t* word, T value, unsigned* stop) {
  await_signal(word, value, stop);
}

// No other GPU takes part.
TEST(AwaitSignal, ReturnsOnceTheStopIsSaid) {
  const DeviceBuffer<std::uint32_t> word(0, 1);  // never raised
  const DeviceBuffer<unsigned> stop(0, 1);
  CUDA_CHECK(cudaMemset(word.data(), 0, word.bytes()));
  CUDA_CHECK(cudaMemset(stop.data(), 1, stop.bytes()));
  await_only<<<1, 1>>>(word.data(), 1U, stop.data());
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

__global__ void await_and_look(std::uint32_t* word, std::uint32_t value, unsigned* stop, const int* came,
                               int* found) {
  await_signal(word, value, stop);
  *found = *came;
}

__global__ void come_and_raise(int* came, std::uint32_t* word, std::uint32_t value) {
  *came = 1;
  raise_signal(word, value);
}

// The calls around 2^31 and 2^32, where words change their sign or overflow.
constexpr std::uint32_t kLastCalls[] = {1, 0, 0x7fffffff, 0x80000000, 0x80000001, 0xffffffff};

TEST(AwaitSignal, WaitsForACallWhereWordsOverflow) {
  load_kernel(await_and_look);
  load_kernel(come_and_raise);
  const DeviceBuffer<std::uint32_t> word(0, 1);
  const DeviceBuffer<unsigned> stop(0, 1);
  const DeviceBuffer<int> came(0, 1), found(0, 1);
  CUDA_CHECK(cudaMemset(stop.data(), 0, stop.bytes()));
  const Stream waiting(0), raising(0);
  for (const std::uint32_t value : kLastCalls) {
    for (const std::uint32_t before : {value - 1, value - 2}) {
      CUDA_CHECK(cudaMemset(came.data(), 0, came.bytes()));
      CUDA_CHECK(cudaMemcpy(word.data(), &before, sizeof before, cudaMemcpyHostToDevice));
      CUDA_CHECK(cudaDeviceSynchronize());
      await_and_look<<<1, 1, 0, waiting>>>(word.data(), value, stop.data(), came.data(), found.data());
      come_and_raise<<<1, 1, 0, raising>>>(came.data(), word.data(), value);
      CUDA_CHECK(cudaDeviceSynchronize());
      EXPECT_EQ(on_host(found.data(), 1), std::vector<int>{1}) << "word " << before << ", call " << value;
    }
  }
}

TEST(AwaitSignal, SeesACallAheadWhereWordsOverflow) {
  const DeviceBuffer<std::uint32_t> word(0, 1);
  const DeviceBuffer<unsigned> stop(0, 1);
  CUDA_CHECK(cudaMemset(stop.data(), 0, stop.bytes()));
  for (const std::uint32_t value : kLastCalls) {
    const std::uint32_t ahead = value + 1;
    CUDA_CHECK(cudaMemcpy(word.data(), &ahead, sizeof ahead, cudaMemcpyHostToDevice));
    await_only<<<1, 1>>>(word.data(), value, stop.data());
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess) << "word " << ahead << ", call " << value;
  }
}

// A stop ends waits for the run's words, and also a wait for another word, which reads the abort flag.
TEST_P(KernelSignals, AStopEndsTheWait) {
  const int size = GetParam();
  if (size == 1) GTEST_SKIP() << "nobody waits";
  const std::string said = failure<std::runtime_error>(size, [&](Rank& rank) {
    const DeviceBuffer<std::uint32_t> word(rank.device(), 1);  // not a signal of the run
    CUDA_CHECK(cudaMemset(word.data(), 0, word.bytes()));
    CUDA_CHECK(cudaDeviceSynchronize());
    await_only<<<1, 1, 0, rank.stream()>>>(word.data(), 0U,
                                           rank.abort_flag());  // loaded before anything waits
    rank.synchronize(rank.stream());
    rank.barrier();
    if (rank.id() == 0) throw std::runtime_error("planted");
    await_only<<<1, 1, 0, rank.stream()>>>(word.data(), 1U, rank.abort_flag());
    CUDA_CHECK(cudaGetLastError());
    EXPECT_THROW(rank.synchronize(rank.stream()), RunStopped);
    throw RunStopped();
  });
  EXPECT_EQ(said, "rank 0: planted");
  run_ring(size, 3);  // the next run is unaffected
}

TEST_P(KernelSignals, BlocksThatWaitMustAllFindRoom) {
  try {
    run_ranks(GetParam(), [](Rank& rank) {
      int multiprocessors = 0, each = 0;
      CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, rank.device()));
      CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, exchange_values<int>, kThreads, 0));
      const int room = multiprocessors * each / (rank.shares_gpu() ? rank.size() : 1);
      EXPECT_NO_THROW(require_resident(rank, exchange_values<int>, kThreads, 0, room));
      try {
        require_resident(rank, exchange_values<int>, kThreads, 0, room + 1);
        ADD_FAILURE() << "not refused";
      } catch (const Skip& skip) {
        const std::string text = skip.what();
        EXPECT_NE(text.find("waits in " + std::to_string(room + 1) + " blocks"), std::string::npos) << text;
        EXPECT_NE(text.find("has room for " + std::to_string(room)), std::string::npos) << text;
      }
    });
  } catch (const Skip& skip) {
    GTEST_SKIP() << skip.what();
  }
}

}  // namespace
}  // namespace overlap
