// Ranks, memory that all of them reach, and signals. The same tests on real GPUs, where ranks share a GPU if
// there are too few.
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <gtest/gtest.h>
#include <nccl.h>

#include <chrono>
#include <exception>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "overlap/backend.hpp"
#include "overlap/check_cublas.hpp"
#include "overlap/check_nccl.hpp"
#include "overlap/error.hpp"
#include "overlap/peer_buffer.hpp"
#include "overlap/ranks.hpp"
#include "overlap/signals.hpp"

namespace overlap {
namespace {

constexpr int kSizes[] = {1, 2, 3, 4, 8};

class RanksTest : public testing::TestWithParam<int> {
 protected:
  static void SetUpTestSuite() { backend::prepare(); }
};
INSTANTIATE_TEST_SUITE_P(Sizes, RanksTest, testing::ValuesIn(kSizes));

TEST_P(RanksTest, EachRankRunsOnceAndKnowsItsNeighbours) {
  const int size = GetParam();
  int gpus = 0;
  CUDA_CHECK(cudaGetDeviceCount(&gpus));
  std::vector<int> runs(size), devices(size), current(size), next(size), previous(size), shares(size);
  run_ranks(size, [&](Rank& rank) {
    ++runs[rank.id()];
    devices[rank.id()] = rank.device();
    CUDA_CHECK(cudaGetDevice(&current[rank.id()]));
    next[rank.id()] = rank.next();
    previous[rank.id()] = rank.previous();
    shares[rank.id()] = rank.shares_gpu();
    EXPECT_EQ(rank.size(), size);
  });
  for (int id = 0; id < size; ++id) {
    EXPECT_EQ(runs[id], 1);
    EXPECT_EQ(devices[id], size > gpus ? 0 : id);
    EXPECT_EQ(current[id], size > gpus ? 0 : id);
    EXPECT_EQ(next[id], (id + 1) % size);
    EXPECT_EQ(previous[id], (id + size - 1) % size);
    EXPECT_EQ(shares[id], size > gpus);
  }
}

TEST_P(RanksTest, WhoCatchesWhatHasStoppedTheRunIsNamed) {
  const auto catches_too_late = [](Rank& rank) {
    try {
      const DeviceBuffer<int> owner(rank.device(), 1);
      throw std::runtime_error("passes an owner");
    } catch (const std::runtime_error&) {
    }
  };
  try {
    run_ranks(GetParam(), catches_too_late);
    FAIL() << "nothing was thrown";
  } catch (const std::logic_error& error) {
    EXPECT_NE(std::string(error.what()).find("caught an exception"), std::string::npos) << error.what();
  }
}

TEST_P(RanksTest, EverybodyIsAtTheBarrierBeforeAnybodyPassesIt) {
  const int size = GetParam();
  std::vector<int> steps(size);  // each rank writes its own; the barriers order reading and writing
  run_ranks(size, [&](Rank& rank) {
    for (int step = 1; step <= 50; ++step) {
      steps[rank.id()] = step;
      rank.barrier();
      for (int other = 0; other < size; ++other) EXPECT_EQ(steps[other], step);
      rank.barrier();
    }
  });
}

TEST_P(RanksTest, ExchangeBringsEveryRanksValue) {
  struct Value {
    int rank;
    double third;
  };
  run_ranks(GetParam(), [&](Rank& rank) {
    for (int round = 0; round < 3; ++round) {
      const auto all = rank.exchange(Value{rank.id() * 10 + round, rank.id() / 3.0});
      ASSERT_EQ(all.size(), static_cast<std::size_t>(rank.size()));
      for (int other = 0; other < rank.size(); ++other) {
        EXPECT_EQ(all[other].rank, other * 10 + round);
        EXPECT_EQ(all[other].third, other / 3.0);
      }
    }
  });
}

template <class T>
__global__ void fill(T* where, std::size_t count, T value) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) where[i] = value;
}

TEST_P(RanksTest, EveryRankWritesIntoEveryOthersBuffer) {
  constexpr std::size_t kCount = 1000;
  run_ranks(GetParam(), [&](Rank& rank) {
    PeerBuffer<int> slots(rank, kCount * rank.size());
    for (int peer = 0; peer < rank.size(); ++peer) {
      fill<<<(kCount + 255) / 256, 256, 0, rank.stream()>>>(slots.on(peer) + rank.id() * kCount, kCount,
                                                            rank.id() * 100 + peer);
      CUDA_CHECK(cudaGetLastError());
    }
    rank.synchronize(rank.stream());
    rank.barrier();
    std::vector<int> found(slots.size());
    CUDA_CHECK(cudaMemcpy(found.data(), slots.local(), slots.bytes(), cudaMemcpyDeviceToHost));
    for (std::size_t i = 0; i < found.size(); ++i)
      ASSERT_EQ(found[i], static_cast<int>(i / kCount) * 100 + rank.id()) << i;
  });
}

TEST_P(RanksTest, PeerBufferMayBeEmpty) {
  run_ranks(GetParam(), [&](Rank& rank) {
    const PeerBuffer<int> none(rank, 0);
    EXPECT_EQ(none.size(), 0u);
    EXPECT_EQ(none.local(), nullptr);
  });
}

template <class T>
__global__ void pass_on(const T* own, T* next, T add) {
  *next = *own + add;
}

/// A number runs round the ring, one rank after the other adds 1, for that many rounds.
void run_ring(int size, int epochs) {
  std::vector<int> last(size);
  run_ranks(size, [&](Rank& rank) {
    PeerBuffer<int> number(rank, 1);
    Signals arrived(rank, 1);
    const cudaStream_t stream = rank.stream();
    CUDA_CHECK(cudaMemsetAsync(number.local(), 0, sizeof(int), stream));
    pass_on<<<1, 1, 0, stream>>>(number.local(), number.local(), 0);  // loaded before anything waits
    rank.synchronize(stream);
    rank.barrier();
    for (int epoch = 1; epoch <= epochs; ++epoch) {
      arrived.begin_call();
      // Rank 0 begins each round, the others wait for it; rank 0 waits for its end.
      if (rank.id() != 0) arrived.await(0, stream);
      pass_on<<<1, 1, 0, stream>>>(number.local(), number.on(rank.next()), 1);
      CUDA_CHECK(cudaGetLastError());
      arrived.raise(rank.next(), 0, stream);
      if (rank.id() == 0) arrived.await(0, stream);
      if (epoch % 100 == 0) rank.synchronize(stream);
    }
    rank.synchronize(stream);
    rank.barrier();
    CUDA_CHECK(cudaMemcpy(&last[rank.id()], number.local(), sizeof(int), cudaMemcpyDeviceToHost));
  });
  EXPECT_EQ(last[0], size * epochs);
  for (int id = 1; id < size; ++id) EXPECT_EQ(last[id], size * (epochs - 1) + id) << "rank " << id;
}

TEST_P(RanksTest, RingOfSignals) { run_ring(GetParam(), backend::race_detector() ? 50 : 1000); }

TEST_P(RanksTest, SeveralStreamsMayAwaitOneSignal) {
  run_ranks(GetParam(), [&](Rank& rank) {
    PeerBuffer<int> data(rank, 3);
    Signals arrived(rank, 1);
    const Stream first(rank.device()), second(rank.device());
    fill<<<1, 32, 0, first>>>(data.local(), 3, 0);
    pass_on<<<1, 1, 0, first>>>(data.local(), data.local(), 0);
    rank.synchronize(first);
    rank.barrier();
    arrived.begin_call();
    arrived.await(0, first);
    pass_on<<<1, 1, 0, first>>>(data.local(), data.local() + 1, 1);
    arrived.await(0, second);
    pass_on<<<1, 1, 0, second>>>(data.local(), data.local() + 2, 2);
    fill<<<1, 1, 0, rank.stream()>>>(data.on(rank.next()), 1, 40);
    arrived.raise(rank.next(), 0, rank.stream());
    rank.synchronize(first);
    rank.synchronize(second);
    std::vector<int> found(3);
    CUDA_CHECK(cudaMemcpy(found.data(), data.local(), data.bytes(), cudaMemcpyDeviceToHost));
    EXPECT_EQ(found, (std::vector<int>{40, 41, 42}));
  });
}

TEST_P(RanksTest, EachHasItsCommunicatorAndItsCublasHandle) {
  int gpus = 0;
  CUDA_CHECK(cudaGetDeviceCount(&gpus));
  run_ranks(GetParam(), [&](Rank& rank) {
    const cudaStream_t stream = rank.stream();
    EXPECT_EQ(rank.stream(), stream) << "made once";
    EXPECT_EQ(rank.cublas(), rank.cublas());
    // 2 x 2 from 2 x 1 and 1 x 2, column-major; then the sum over all ranks.
    DeviceBuffer<float> a(rank.device(), 2), c(rank.device(), 4);
    const float one = 1, zero = 0, host_a[] = {1.0f + rank.id(), 2};
    CUDA_CHECK(cudaMemcpy(a.data(), host_a, a.bytes(), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaDeviceSynchronize());
    CUBLAS_CHECK(cublasSetStream(rank.cublas(), stream));
    CUBLAS_CHECK(cublasSgemm(rank.cublas(), CUBLAS_OP_N, CUBLAS_OP_T, 2, 2, 1, &one, a.data(), 2, a.data(), 2,
                             &zero, c.data(), 2));
    if (rank.shares_gpu()) {
      EXPECT_THROW(rank.nccl(), Skip);
      rank.synchronize(stream);
      return;
    }
    EXPECT_EQ(rank.nccl(), rank.nccl());
    NCCL_CHECK(ncclAllReduce(c.data(), c.data(), c.size(), ncclFloat, ncclSum, rank.nccl(), stream));
    rank.synchronize(stream);
    std::vector<float> found(4), expected(4);
    CUDA_CHECK(cudaMemcpy(found.data(), c.data(), c.bytes(), cudaMemcpyDeviceToHost));
    for (int id = 0; id < rank.size(); ++id) {
      const float first = 1.0f + id;
      expected[0] += first * first;
      expected[1] += 2 * first;
      expected[2] += 2 * first;
      expected[3] += 4;
    }
    EXPECT_EQ(found, expected);
  });
}

/// What `program` fails with.
template <class Error>
std::string failure(int size, const std::function<void(Rank&)>& program) {
  try {
    run_ranks(size, program);
  } catch (const Error& error) {
    return error.what();
  } catch (const std::exception& other) {
    return std::string("another type: ") + other.what();
  }
  return "nothing";
}

TEST_P(RanksTest, FirstErrorIsRethrownWithItsRankAndType) {
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
  EXPECT_NE(failure<CudaError>(GetParam(),
                               [last](Rank& rank) {
                                 if (rank.id() == last) CUDA_CHECK(cudaSetDevice(1000));
                                 rank.barrier();
                               })
                .find(who + "ranks_test.cu:"),
            std::string::npos);
}

TEST_P(RanksTest, RankThatThrowsFreesThoseWhoWaitForItsSignal) {
  const int size = GetParam();
  if (size == 1) GTEST_SKIP() << "nobody waits";
  std::vector<int> stopped(size);
  const std::string said = failure<std::runtime_error>(size, [&](Rank& rank) {
    PeerBuffer<int> data(rank, 1);
    Signals arrived(rank, 2);
    const cudaStream_t stream = rank.stream();
    pass_on<<<1, 1, 0, stream>>>(data.local(), data.local(), 0);  // loaded before anything waits
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
      EXPECT_NE(*rank.stop_word(), 0u);
      throw;
    }
  });
  EXPECT_EQ(said, "rank 0: planted");
  EXPECT_EQ(std::accumulate(stopped.begin(), stopped.end(), 0), size - 1);
  run_ring(size, 3);  // and the next run is none the worse
}

TEST_P(RanksTest, RankThatThrowsFreesThoseInAConstructor) {
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

TEST_P(RanksTest, RankThatThrowsFreesThoseInADestructor) {
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

/// Exceptions belong to a rank, also while it waits inside a catch block or during unwinding.
TEST_P(RanksTest, RanksWaitWhileExceptionsAreInFlight) {
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

TEST_F(RanksTest, MisuseIsRefused) {
  EXPECT_THROW(run_ranks(0, [](Rank&) {}), std::invalid_argument);
  EXPECT_THROW(run_ranks(17, [](Rank&) {}), std::invalid_argument);
  EXPECT_NE(
      failure<std::runtime_error>(2, [](Rank& rank) { const PeerBuffer<int> uneven(rank, 1 + rank.id()); })
          .find("a different number"),
      std::string::npos);
  run_ranks(2, [](Rank& rank) {
    Signals signals(rank, 2);
    EXPECT_THROW(signals.raise(0, 0, rank.stream()), std::logic_error) << "before begin_call()";
    EXPECT_THROW(signals.await(0, rank.stream()), std::logic_error);
    signals.begin_call();
    EXPECT_THROW(signals.await(2, rank.stream()), std::out_of_range);
    EXPECT_THROW(signals.await(-1, rank.stream()), std::out_of_range);
    signals.raise(rank.next(), rank.id(), rank.stream());
    EXPECT_THROW(signals.raise(rank.next(), rank.id(), rank.stream()), std::logic_error) << "twice in a call";
    signals.await(rank.previous(), rank.stream());
    rank.synchronize(rank.stream());
    signals.begin_call();
    EXPECT_EQ(signals.epoch(), 2u);
    signals.raise(rank.next(), rank.id(), rank.stream());
    rank.synchronize(rank.stream());
  });
}

TEST_F(RanksTest, The33rdStreamOfAGpuIsRefusedByName) {
  std::vector<Stream> streams;
  for (int i = 0; i < kMaxStreams; ++i) streams.emplace_back(0);
  try {
    streams.emplace_back(0);
    FAIL() << "it was made";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("the 33rd stream on GPU 0"), std::string::npos) << error.what();
  }
  streams.pop_back();
  streams.emplace_back(0, StreamPriority::kHigh);
}

}  // namespace
}  // namespace overlap
