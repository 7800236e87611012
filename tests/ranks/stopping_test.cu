// A rank that throws stops the run: the others leave every wait, and the caller gets the error. On real and
// virtual GPUs.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <chrono>
#include <exception>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "overlap/gpu/check.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/gpu/kernel_signals.hpp"
#include "overlap/gpu/launch.hpp"
#include "overlap/gpu/peer_buffer.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/signals.hpp"
#include "rank_programs.hpp"

namespace overlap {
namespace {

class StoppingTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sizes, StoppingTest, testing::Values(1, 2, 3, 4, 8));

TEST_P(StoppingTest, FirstErrorIsRethrownWithItsRankAndType) {
  const int last = GetParam() - 1;
  const auto fails_with = [&](const auto& error) {
    return [&, last](Rank& rank) {
      if (rank.id() == last) throw error;
      rank.barrier();
      FAIL() << "the barrier opened";
    };
  };
  const std::string who = "rank " + std::to_string(last) + ": ";
  EXPECT_EQ(failure<Skip>(GetParam(), fails_with(Skip("no luck"))), who + "no luck");
  EXPECT_EQ(failure<WrongResult>(GetParam(), fails_with(WrongResult("3 is 4"))), who + "3 is 4");
  EXPECT_EQ(failure<UsageError>(GetParam(), fails_with(UsageError("--m"))), who + "--m");
  EXPECT_EQ(failure<std::logic_error>(GetParam(), fails_with(std::logic_error("x"))),
            "another type: " + who + "x");
  // A sentence that begins with the rank at fault names no second rank.
  EXPECT_EQ(failure<UsageError>(GetParam(), fails_with(UsageError("rank 0 has a bad index"))),
            "rank 0 has a bad index");
  EXPECT_NE(failure<CudaError>(GetParam(),
                               [last](Rank& rank) {
                                 if (rank.id() == last) CUDA_CHECK(cudaSetDevice(1000));
                                 rank.barrier();
                               })
                .find(who + "stopping_test.cu:"),
            std::string::npos);
}

TEST_P(StoppingTest, RankThatThrowsFreesThoseWhoWaitForItsSignal) {
  const int size = GetParam();
  if (size == 1) GTEST_SKIP() << "nobody waits";
  std::vector<int> stopped(size);
  const std::string said = failure<std::runtime_error>(size, [&](Rank& rank) {
    PeerBuffer<int> data(rank, 1);
    Signals arrived(rank, 2);
    const cudaStream_t stream = rank.stream();
    pass_on<<<1, 1, 0, stream>>>(data.local(), data.local(), 0);  // loaded before any wait
    rank.synchronize(stream);
    arrived.begin_call();
    rank.barrier();
    if (rank.id() == 0) {
      for (int i = 0; i < 100; ++i) {  // until the others wait
        EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      throw std::runtime_error("planted");
    }
    try {
      arrived.await(1, stream);
      pass_on<<<1, 1, 0, stream>>>(data.local(), data.local(), 1);
      rank.synchronize(stream);
    } catch (const RunStopped&) {
      stopped[rank.id()] = 1;
      EXPECT_TRUE(rank.stopping());
      EXPECT_NE(*rank.abort_flag(), 0u);
      throw;
    }
  });
  EXPECT_EQ(said, "rank 0: planted");
  EXPECT_EQ(std::accumulate(stopped.begin(), stopped.end(), 0), size - 1);
  run_ring(size, 3);  // the next run is unaffected
}

/// Writes all of `memory`, behind a signal.
__global__ void write_after_signal(std::uint32_t* signal, unsigned* stop, int* memory, int elements) {
  if (threadIdx.x == 0) await_signal(signal, 1, stop);
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < elements; i += static_cast<int>(blockDim.x)) memory[i] = 1;
}

/// A stop ends the wait, and the kernel continues: the memory of the rank that threw must not be freed before
/// the kernel has ended.
TEST_P(StoppingTest, KernelsMayWriteToTheRankThatThrew) {
  const int size = GetParam(), guilty = size - 1;
  EXPECT_EQ(failure<std::runtime_error>(size,
                                        [&](Rank& rank) {
                                          const PeerBuffer<std::uint32_t> signal(rank, 1);
                                          const PeerBuffer<int> memory(rank, 1 << 20);
                                          const cudaStream_t stream = rank.stream();
                                          CUDA_CHECK(cudaMemsetAsync(signal.local(), 0, 4, stream));
                                          load_kernel(write_after_signal);
                                          rank.synchronize(stream);
                                          rank.barrier();
                                          if (rank.id() == guilty) throw std::runtime_error("planted");
                                          write_after_signal<<<1, 256, 0, stream>>>(
                                              signal.local(), rank.abort_flag(), memory.on(guilty), 1 << 20);
                                          rank.synchronize(stream);
                                        }),
            "rank " + std::to_string(guilty) + ": planted");
  run_ring(size, 3);
}

TEST_P(StoppingTest, RankThatThrowsFreesThoseInAConstructor) {
  const int size = GetParam();
  EXPECT_EQ(failure<std::runtime_error>(size,
                                        [&](Rank& rank) {
                                          const PeerBuffer<int> first(rank, 1);
                                          if (rank.id() == size / 2) throw std::runtime_error("planted");
                                          const Signals second(rank, 1);
                                          const PeerBuffer<int> third(rank, 1);
                                          rank.barrier();
                                        }),
            "rank " + std::to_string(size / 2) + ": planted");
  run_ring(size, 3);
}

TEST_P(StoppingTest, RankThatThrowsFreesThoseInADestructor) {
  const int size = GetParam();
  EXPECT_EQ(failure<std::runtime_error>(size,
                                        [&](Rank& rank) {
                                          const PeerBuffer<int> outer(rank, 1);
                                          {
                                            const PeerBuffer<int> inner(rank, 1);
                                            if (rank.id() == size / 2) throw std::runtime_error("planted");
                                          }
                                          rank.barrier();
                                        }),
            "rank " + std::to_string(size / 2) + ": planted");
  run_ring(size, 3);
}

/// Exceptions are per rank, also if a rank waits inside a catch block or during unwinding.
TEST_P(StoppingTest, RanksWaitWhileExceptionsAreInFlight) {
  struct WaitsWhenUnwound {
    Rank& rank;
    ~WaitsWhenUnwound() {
      EXPECT_EQ(std::uncaught_exceptions(), rank.id() % 2);
      rank.barrier();
      EXPECT_EQ(std::uncaught_exceptions(), rank.id() % 2);
    }
  };
  run_ranks(GetParam(), [&](Rank& rank) {
    int caught = -1;
    try {
      const WaitsWhenUnwound waits{rank};
      if (rank.id() % 2 == 1) throw rank.id();
    } catch (const int id) {
      caught = id;
    }
    EXPECT_EQ(caught, rank.id() % 2 == 1 ? rank.id() : -1);
    try {
      try {
        throw std::runtime_error(std::to_string(rank.id()));
      } catch (const std::exception&) {
        rank.barrier();
        throw;
      }
    } catch (const std::exception& own) {
      EXPECT_EQ(own.what(), std::to_string(rank.id()));
    }
  });
}

}  // namespace
}  // namespace overlap
