// Ranks, memory that all of them access, and signals. On real and virtual GPUs; ranks share GPUs if there are
// too few.
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <gtest/gtest.h>
#include <nccl.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "overlap/gpu/backend.hpp"
#include "overlap/gpu/check_cublas.hpp"
#include "overlap/gpu/check_nccl.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/gpu/peer_buffer.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/signals.hpp"
#include "rank_programs.hpp"

namespace overlap {
namespace {

constexpr int kSizes[] = {1, 2, 3, 4, 8};

class RanksTest : public testing::TestWithParam<int> {};
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
  std::vector<int> steps(size);  // each rank writes its own; barriers order reads and writes
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

__global__ void fill(int* where, std::size_t count, int value) {
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

TEST_P(RanksTest, RingOfSignals) { run_ring(GetParam(), backend::instrumented() ? 50 : 1000); }

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

TEST_F(RanksTest, MisuseIsRefused) {
  EXPECT_THROW(run_ranks(0, [](Rank&) {}), std::invalid_argument);
  EXPECT_THROW(run_ranks(65, [](Rank&) {}), std::invalid_argument);
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

TEST_F(RanksTest, SignalsGoOnWhereTheirWordsOverflow) {
  Signals::before_first = -2U;
  run_ranks(2, [](Rank& rank) {
    Signals signals(rank, 1);
    EXPECT_THROW(signals.await(0, rank.stream()), std::logic_error) << "before begin_call()";
    for (int call = 0; call < 4; ++call) {
      signals.begin_call();
      if (rank.id() == 0) signals.raise(1, 0, rank.stream());
      if (rank.id() == 1) signals.await(0, rank.stream());
      rank.synchronize(rank.stream());
    }
    EXPECT_EQ(signals.epoch(), 2u);
    rank.barrier();
  });
  Signals::before_first = 0;
}

TEST_F(RanksTest, OneStreamMoreThanAGpuHasQueuesIsRefusedByName) {
  std::vector<Stream> streams;
  for (int i = 0; i < kMaxStreams; ++i) streams.emplace_back(0);
  try {
    streams.emplace_back(0);
    FAIL() << "it was made";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("one stream too many on GPU 0: only 32 are"), std::string::npos)
        << error.what();
  }
  streams.pop_back();
  streams.emplace_back(0, StreamPriority::kHigh);
}

// More ranks than any machine has GPUs, so ranks share a GPU: with one more stream each they would not fit.
TEST_F(RanksTest, TenRanksHaveAllTheirStreamsOnOneGpu) {
  run_ranks(10, [](Rank& rank) {
    const cudaStream_t streams[] = {rank.stream(), rank.second_stream(), rank.transfer_stream(0)};
    for (const cudaStream_t stream : streams) CUDA_CHECK(cudaStreamSynchronize(stream));
    EXPECT_EQ(rank.transfer_stream(1) == rank.transfer_stream(0), rank.shares_gpu());
    EXPECT_NE(rank.stream(), rank.second_stream());
    EXPECT_NE(rank.stream(), rank.transfer_stream());
    rank.barrier();  // all of them at the same time
  });
}

}  // namespace
}  // namespace overlap
