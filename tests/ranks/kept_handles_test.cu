// State that one run leaves to the next: on real GPUs streams, cuBLAS handles and communicators, unless the
// run was stopped; on virtual GPUs none.
#include "overlap/gpu/kept_handles.hpp"

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <gtest/gtest.h>
#include <nccl.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <vector>

#include "overlap/gpu/backend.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/check_cublas.hpp"
#include "overlap/gpu/check_nccl.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/stream.hpp"
#include "rank_programs.hpp"

namespace overlap {
namespace {

// Runs without a call of backend::prepare() before it: that is the case under test.
TEST(HardwareQueues, AreAskedForWhenTheProgramIsLoaded) {
  if (backend::modelled_time()) GTEST_SKIP() << "virtual GPUs read no environment";
  const char* const connections = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  ASSERT_NE(connections, nullptr);
  EXPECT_STREQ(connections, "32");
}

struct Handles {
  std::vector<cudaStream_t> streams;
  std::vector<cublasContext*> cublas;
  ncclComm* nccl = nullptr;
  bool operator==(const Handles&) const = default;
};

Handles handles_of(Rank& rank) {
  Handles handles;
  handles.streams = {rank.stream(), rank.second_stream(), rank.transfer_stream(0), rank.transfer_stream(1)};
  handles.cublas = {rank.cublas(0), rank.cublas(1)};
  if (!rank.shares_gpu()) handles.nccl = rank.nccl();
  return handles;
}

/// The handles of a run's ranks, by rank.
std::vector<Handles> handles_of_run(int ranks) {
  std::vector<Handles> handles(static_cast<std::size_t>(ranks));
  run_ranks(ranks, [&](Rank& rank) {
    handles[static_cast<std::size_t>(rank.id())] = handles_of(rank);
    rank.barrier();  // all ranks hold theirs at the same time
  });
  return handles;
}

template <typename Handle>
std::vector<Handle> sorted(std::vector<Handle> all) {
  std::sort(all.begin(), all.end());
  return all;
}

constexpr int kSizes[] = {1, 2, 3, 4, 8};

class KeptHandlesTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (backend::modelled_time()) GTEST_SKIP() << "virtual GPUs: each run begins with nothing";
    CUDA_CHECK(cudaGetDeviceCount(&gpus_));
  }
  bool share() const { return GetParam() > gpus_; }
  std::size_t idle_communicators() const { return kept_handles().communicators.idle({GetParam(), false}); }
  static std::size_t idle_handles(int device) {
    KeptHandles& kept = kept_handles();
    return kept.streams.idle({device, StreamPriority::kNormal}) +
           kept.streams.idle({device, StreamPriority::kHigh}) + kept.rescue.idle(device) +
           kept.cublas.idle(device);
  }

  int gpus_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Sizes, KeptHandlesTest, testing::ValuesIn(kSizes));

TEST_P(KeptHandlesTest, TheSameComeBackToTheNextRun) {
  const std::vector<Handles> first = handles_of_run(GetParam()), second = handles_of_run(GetParam());
  for (int device = 0; device < (share() ? 1 : GetParam()); ++device)
    EXPECT_EQ(kept_handles().rescue.idle(device), 1u)
        << "older than the streams that are kept on GPU " << device;
  if (!share()) {
    for (int rank = 0; rank < GetParam(); ++rank) EXPECT_TRUE(first[rank] == second[rank]) << "rank " << rank;
    return;
  }
  // If ranks share a GPU, which of them gets which stream depends on the order of their requests.
  std::vector<cudaStream_t> streams[2];
  std::vector<cublasContext*> cublas[2];
  for (const auto* run : {&first, &second}) {
    for (const Handles& rank : *run) {
      auto& all = streams[run == &second];
      all.insert(all.end(), rank.streams.begin(), rank.streams.end());
      cublas[run == &second].insert(cublas[run == &second].end(), rank.cublas.begin(), rank.cublas.end());
    }
  }
  EXPECT_EQ(sorted(streams[0]), sorted(streams[1]));
  EXPECT_EQ(sorted(cublas[0]), sorted(cublas[1]));
}

TEST_P(KeptHandlesTest, OtherSetsInBetweenDoNoHarm) {
  const std::vector<Handles> first = handles_of_run(GetParam());
  const int other = GetParam() == 1 ? 2 : GetParam() - 1;
  handles_of_run(other);
  const std::vector<Handles> second = handles_of_run(GetParam());
  if (share() || other > gpus_)
    return;  // ranks that share a GPU have no communicators, and drop those of others
  for (int rank = 0; rank < GetParam(); ++rank) EXPECT_EQ(first[rank].nccl, second[rank].nccl);
}

int sum_over(Rank& rank, int number) {
  const DeviceBuffer<int> sum(rank.device(), 1);
  CUDA_CHECK(cudaMemcpyAsync(sum.data(), &number, sizeof number, cudaMemcpyHostToDevice, rank.stream()));
  NCCL_CHECK(ncclAllReduce(sum.data(), sum.data(), 1, ncclInt, ncclSum, rank.nccl(), rank.stream()));
  rank.synchronize(rank.stream());
  CUDA_CHECK(cudaMemcpy(&number, sum.data(), sizeof number, cudaMemcpyDeviceToHost));
  return number;
}

TEST_P(KeptHandlesTest, KeptCommunicatorsStillAddUp) {
  if (share()) GTEST_SKIP() << "NCCL needs " << GetParam() << " GPUs";
  for (int round = 1; round <= 3; ++round) {
    run_ranks(GetParam(), [&](Rank& rank) {
      EXPECT_EQ(sum_over(rank, round * (rank.id() + 1)), round * rank.size() * (rank.size() + 1) / 2);
    });
    EXPECT_EQ(idle_communicators(), 1u);
  }
}

TEST_P(KeptHandlesTest, WhoWaitsInAKeptCommunicatorIsFreed) {
  if (share()) GTEST_SKIP() << "NCCL needs " << GetParam() << " GPUs";
  if (GetParam() == 1) GTEST_SKIP() << "nobody waits";
  run_ranks(GetParam(), [](Rank& rank) { sum_over(rank, 1); });
  ASSERT_EQ(idle_communicators(), 1u);
  EXPECT_EQ(failure<std::runtime_error>(GetParam(),
                                        [](Rank& rank) {
                                          rank.nccl();
                                          if (rank.id() == 0) throw std::runtime_error("planted");
                                          sum_over(rank, 1);
                                        }),
            "rank 0: planted");
  run_ranks(GetParam(), [](Rank& rank) { EXPECT_EQ(sum_over(rank, 1), rank.size()); });
}

TEST_P(KeptHandlesTest, AStoppedRunKeepsNothing) {
  handles_of_run(GetParam());
  EXPECT_EQ(idle_communicators(), share() ? 0u : 1u);
  EXPECT_GT(idle_handles(0), 0u);
  const int last = GetParam() - 1;
  const std::string said = failure<std::runtime_error>(GetParam(), [&](Rank& rank) {
    handles_of(rank);
    rank.barrier();
    if (rank.id() == last) throw std::runtime_error("planted");
  });
  EXPECT_EQ(said, "rank " + std::to_string(last) + ": planted");
  EXPECT_EQ(idle_communicators(), 0u);
  for (int device = 0; device < gpus_; ++device) {
    EXPECT_EQ(idle_handles(device), 0u) << "GPU " << device;
    EXPECT_EQ(detail::living_streams(device), 0) << "GPU " << device;
  }
  run_ring(GetParam(), 3);
  handles_of_run(GetParam());
  EXPECT_EQ(idle_communicators(), share() ? 0u : 1u) << "a new one";
}

__global__ void keep_busy(int* sink, int rounds) {
  int sum = *sink;
  for (int i = 0; i < rounds; ++i) sum = sum * 3 + i;
  *sink = sum;
}

TEST_P(KeptHandlesTest, WorkThatNobodyWaitedForIsDoneBeforeTheNextRun) {
  std::vector<DeviceBuffer<int>> memory;  // ranks must not free it, because that would wait for the GPU
  for (int rank = 0; rank < GetParam(); ++rank) memory.emplace_back(share() ? 0 : rank, 1);
  handles_of_run(GetParam());
  run_ranks(GetParam(), [&](Rank& rank) {
    int* const own = memory[static_cast<std::size_t>(rank.id())].data();
    CUDA_CHECK(cudaMemsetAsync(own, 0, sizeof(int), rank.stream()));
    // Some 40 ms in one call, so that a host that is descheduled for a while still finds the kernel running.
    keep_busy<<<1, 1, 0, rank.stream()>>>(own, 20'000'000);
    CUDA_CHECK(cudaGetLastError());
    EXPECT_EQ(cudaStreamQuery(rank.stream()), cudaErrorNotReady);
  });
  run_ranks(GetParam(), [&](Rank& rank) { EXPECT_EQ(cudaStreamQuery(rank.stream()), cudaSuccess); });
}

TEST_P(KeptHandlesTest, CommunicatorsGiveWayToRanksThatShareAGpu) {
  if (share()) GTEST_SKIP() << "NCCL needs " << GetParam() << " GPUs";
  if (gpus_ >= 16) GTEST_SKIP() << "16 ranks have a GPU each";
  handles_of_run(GetParam());
  EXPECT_EQ(idle_communicators(), 1u);
  run_ranks(gpus_ + 1, [](Rank& rank) { EXPECT_TRUE(rank.shares_gpu()); });
  EXPECT_EQ(idle_communicators(), 0u);
}

// Real and virtual GPUs from here on.

TEST(HandlesBetweenRuns, AllSetsStayWithinTheStreamsOfAGpu) {
  int gpus = 0;
  CUDA_CHECK(cudaGetDeviceCount(&gpus));
  const auto living = [gpus] {
    std::vector<int> streams;
    for (int device = 0; device < gpus; ++device) streams.push_back(detail::living_streams(device));
    return streams;
  };
  std::vector<int> after_a_round;
  for (int round = 0; round < 2; ++round) {
    for (const int ranks : kSizes) {
      handles_of_run(ranks);
      for (const int streams : living()) EXPECT_LE(streams, kMaxStreams) << "after " << ranks << " ranks";
    }
    if (round == 0) after_a_round = living();
  }
  EXPECT_EQ(living(), after_a_round) << "the second round has made none";
  if (backend::modelled_time()) {
    EXPECT_EQ(living(), std::vector<int>(static_cast<std::size_t>(gpus)));
  }
}

TEST(HandlesBetweenRuns, IdleStreamsGiveWayToNewOnes) {
  handles_of_run(4);
  std::vector<Stream> streams;
  for (int i = 0; i < kMaxStreams; ++i) streams.emplace_back(0);
  EXPECT_EQ(detail::living_streams(0), kMaxStreams);
  EXPECT_THROW(streams.emplace_back(0), std::runtime_error);
  streams.clear();
  handles_of_run(4);
}

TEST(HandlesBetweenRuns, CublasHandlesComeBackAsNew) {
  for (int round = 0; round < 2; ++round) {
    run_ranks(2, [](Rank& rank) {
      const cublasHandle_t handle = rank.cublas();
      cudaStream_t stream = rank.stream();
      CUBLAS_CHECK(cublasGetStream(handle, &stream));
      EXPECT_EQ(stream, nullptr);
      cublasMath_t math = CUBLAS_PEDANTIC_MATH;
      CUBLAS_CHECK(cublasGetMathMode(handle, &math));
      EXPECT_EQ(math, CUBLAS_DEFAULT_MATH);
      CUBLAS_CHECK(cublasSetStream(handle, rank.stream()));
      CUBLAS_CHECK(cublasSetMathMode(handle, CUBLAS_PEDANTIC_MATH));
    });
  }
}

}  // namespace
}  // namespace overlap
