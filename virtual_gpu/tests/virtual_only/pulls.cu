// The queue of pulls: copies from one GPU in streams of other GPUs run in the order in which they were
// enqueued. semantics/pulls.cu, which also runs on real GPUs, has the copies that are not queued.
#include <cuda.h>

#include <cstdint>
#include <string>
#include <utility>

#include "overlap/gpu/graph.hpp"
#include "virtual_test.hpp"

namespace virtual_only {
namespace {

using overlap::Graph;

constexpr std::size_t kBytes = 4096;
constexpr int kGpus = 4;

/// Four GPUs with peer access, each with memory and two streams; GPU 0's first stream can be blocked.
class PullsTest : public InSchedules<VirtualTest> {
 protected:
  void SetUp() override {
    InSchedules::SetUp();
    for (int gpu = 0; gpu < kGpus; ++gpu) {
      require(cudaSetDevice(gpu));
      for (int peer = 0; peer < kGpus; ++peer) {
        if (peer != gpu) require(cudaDeviceEnablePeerAccess(peer, 0));
      }
      memory[gpu] = device_room<char>(8 * kBytes);
      for (cudaStream_t& stream : streams[gpu]) stream = new_stream();
    }
    signal = pinned_word(0u);
    held = streams[0][0];
  }
  /// Enqueues a copy into part `part` of GPU `to`.
  void copy(int from, int to, cudaStream_t stream, int part = 0) {
    require(cudaMemcpyAsync(memory[to] + static_cast<std::size_t>(part) * kBytes, memory[from], kBytes,
                            cudaMemcpyDefault, stream));
  }
  /// Work enqueued into `stream` from now on waits for the signal.
  void hold(cudaStream_t stream) {
    require(static_cast<cudaError_t>(
        cuStreamWaitValue32(stream, reinterpret_cast<CUdeviceptr>(signal), 1, CU_STREAM_WAIT_VALUE_GEQ)));
  }
  void open() { *signal = 1; }
  static bool passes(cudaStream_t stream) {
    for (int i = 0; i < 1000; ++i) {
      if (cudaStreamQuery(stream) == cudaSuccess) return true;
    }
    return false;
  }

  char* memory[kGpus] = {};
  cudaStream_t streams[kGpus][2] = {};
  cudaStream_t held = nullptr;
  unsigned* signal = nullptr;
};
INSTANTIATE_TEST_SUITE_P(Schedules, PullsTest, testing::Values(0, 1, 2, 3, 4, 5));

TEST_P(PullsTest, AHeldOneHoldsUpAllLaterOnesFromItsGpu) {
  hold(held);
  copy(2, 0, held);
  copy(2, 1, streams[1][0]);
  copy(2, 0, streams[0][1], 1);
  copy(2, 3, streams[1][1], 1);  // a third GPU's stream
  for (const cudaStream_t stream : {streams[1][0], streams[0][1], streams[1][1]})
    EXPECT_FALSE(passes(stream));
  open();
  for (const cudaStream_t stream : {held, streams[1][0], streams[0][1], streams[1][1]})
    CUDA_OK(cudaStreamSynchronize(stream));
}

TEST_P(PullsTest, EarlierOnesAreNotHeldUp) {
  copy(2, 1, streams[1][0]);
  hold(held);
  copy(2, 0, held);
  CUDA_OK(cudaStreamSynchronize(streams[1][0]));
  open();
}

/// In every form of call.
TEST_P(PullsTest, AllKindsOfCopiesQueue) {
  hold(held);
  require(cudaMemcpy2DAsync(memory[0], 64, memory[2], 128, 32, 4, cudaMemcpyDefault, held));
  require(cudaMemcpyPeerAsync(memory[1], 1, memory[2], 2, kBytes, streams[1][0]));
  require(cudaMemcpy2DAsync(memory[3], 64, memory[2], 128, 32, 4, cudaMemcpyDefault, streams[3][0]));
  EXPECT_FALSE(passes(streams[1][0]));
  EXPECT_FALSE(passes(streams[3][0]));
  open();
  CUDA_OK(cudaStreamSynchronize(streams[3][0]));
}

TEST_P(PullsTest, WithoutPeerAccessTheHostCopies) {
  for (const auto& [gpu, peer] : {std::pair(1, 2), std::pair(2, 1)}) {
    require(cudaSetDevice(gpu));
    require(cudaDeviceDisablePeerAccess(peer));
  }
  hold(held);
  copy(2, 0, held);
  copy(2, 1, streams[1][0]);
  CUDA_OK(cudaStreamSynchronize(streams[1][0]));
  open();
}

TEST_P(PullsTest, TheReportNamesTheFirstInTheQueueAndWhatItStandsBehind) {
  hold(held);
  copy(2, 0, held);
  copy(2, 3, streams[3][0], 1);
  copy(2, 1, streams[1][0]);
  expect_parts(
      deadlock_of(streams[1][0]),
      {"gpu0/stream1: wait until a word is at least 1: it is 0",
       "gpu1/stream1: copy of 4096 bytes from GPU 2 to GPU 1: waiting for its turn in GPU 2's queue of "
       "pulls, behind copy of 4096 bytes from GPU 2 to GPU 0 in gpu0/stream1, which is queued behind "
       "wait until a word is at least 1; 0 more behind it",
       "gpu3/stream1: copy of 4096 bytes from GPU 2 to GPU 3: waiting for its turn in GPU 2's queue of "
       "pulls, behind copy of 4096 bytes from GPU 2 to GPU 0"});
}

TEST_P(PullsTest, TheReportSaysThatTheFirstOneWaitsForAnEvent) {
  // The copy in the default stream waits for its GPU's blocking stream.
  require(cudaSetDevice(0));
  const cudaStream_t blocking = new_stream(cudaStreamDefault);
  hold(blocking);
  copy(2, 0, nullptr);
  copy(2, 1, streams[1][0]);
  expect_parts(
      deadlock_of(streams[1][0]),
      {"gpu0/stream0 (default): copy of 4096 bytes from GPU 2 to GPU 0: waiting for an event",
       "behind copy of 4096 bytes from GPU 2 to GPU 0 in gpu0/stream0 (default), itself waiting for an "
       "event or another stream;"});
}

TEST_P(PullsTest, ACopyThatStillWaitsForAnEventSaysSo) {
  hold(held);
  copy(2, 0, held);
  // The default stream's copy waits for its GPU's blocking stream, and only then for its turn.
  require(cudaSetDevice(1));
  const cudaStream_t blocking = new_stream(cudaStreamDefault);
  hold(blocking);
  copy(2, 1, nullptr);
  expect_parts(deadlock_of(nullptr),
               {"gpu1/stream0 (default): copy of 4096 bytes from GPU 2 to GPU 1: waiting "
                "for an event or another stream"});
}

TEST_P(PullsTest, InAGraphTheyQueueWhenItIsLaunched) {
  const cudaStream_t capturing = streams[0][1];
  const Graph graph = Graph::capture(capturing, [&] {
    copy(2, 0, capturing);
    copy(3, 0, capturing, 1);
  });
  copy(2, 1, streams[1][0]);
  EXPECT_TRUE(passes(streams[1][0])) << "the capture enqueues nothing";
  hold(held);
  graph.launch(held);
  copy(2, 1, streams[1][0]);
  copy(3, 2, streams[2][0]);
  EXPECT_FALSE(passes(streams[1][0])) << "behind the graph's first node";
  EXPECT_FALSE(passes(streams[2][0])) << "behind its second one";
  open();
  CUDA_OK(cudaStreamSynchronize(streams[1][0]));
  CUDA_OK(cudaStreamSynchronize(streams[2][0]));
  CUDA_OK(cudaStreamSynchronize(held));
}

TEST_P(PullsTest, ALaunchTakesItsTurnBehindHeldPulls) {
  const cudaStream_t capturing = streams[1][1];
  const Graph graph = Graph::capture(capturing, [&] { copy(2, 1, capturing); });
  hold(held);
  copy(2, 0, held);
  graph.launch(streams[1][0]);
  EXPECT_FALSE(passes(streams[1][0]));
  open();
  CUDA_OK(cudaStreamSynchronize(streams[1][0]));
}

TEST_P(PullsTest, TheReportNamesAGraphThatHasNotComeToItsPull) {
  const cudaStream_t capturing = streams[0][1];
  const Graph graph = Graph::capture(capturing, [&] {
    require(cudaMemsetAsync(memory[0], 0, kBytes, capturing));
    copy(2, 0, capturing);
  });
  hold(held);
  graph.launch(held);
  copy(2, 1, streams[1][0]);
  expect_parts(deadlock_of(streams[1][0]),
               {"behind graph of 2 nodes in gpu0/stream1, which is queued behind wait until a word is at "
                "least 1;"});
}

TEST_P(PullsTest, WhatADestroyedStreamHoldsKeepsItsTurn) {
  hold(held);
  copy(2, 0, held);
  CUDA_OK(cudaStreamDestroy(held));
  copy(2, 1, streams[1][0]);
  EXPECT_FALSE(passes(streams[1][0]));
  open();
  CUDA_OK(cudaStreamSynchronize(streams[1][0]));
}

/// Work that a stop has discarded, or that was enqueued during it, delays no later copy.
TEST_P(PullsTest, AStopEmptiesTheQueue) {
  const cudaStream_t capturing = streams[0][1];
  const Graph graph = Graph::capture(capturing, [&] {
    require(cudaMemsetAsync(memory[0], 0, kBytes, capturing));
    copy(3, 0, capturing);
  });
  vgpu::run_host_threads(1, [&](int) {
    hold(held);
    copy(2, 0, held);
    graph.launch(held);
    vgpu::stop_host_threads();
    graph.launch(held);
    copy(2, 0, held);
  });
  copy(2, 1, streams[1][0]);
  copy(3, 2, streams[2][0]);
  CUDA_OK(cudaStreamSynchronize(streams[1][0]));
  CUDA_OK(cudaStreamSynchronize(streams[2][0]));
}

class PullTimesTest : public PullsTest {
 protected:
  /// Modelled ns of a copy, without the host's time.
  float time_of(cudaStream_t stream, int from, int to) {
    return elapsed(stream, [&] { copy(from, to, stream); });
  }
};
INSTANTIATE_TEST_SUITE_P(Schedules, PullTimesTest, testing::Values(0));

TEST_P(PullTimesTest, BehindACompleteOneItCostsNothing) {
  require(cudaSetDevice(0));
  const float first = time_of(streams[0][0], 2, 0);
  EXPECT_FLOAT_EQ(time_of(streams[0][1], 2, 0), first);
  require(cudaSetDevice(1));
  EXPECT_FLOAT_EQ(time_of(streams[1][0], 2, 1), first);
  require(cudaSetDevice(2));
  EXPECT_FLOAT_EQ(time_of(streams[2][0], 2, 1), first) << "a push takes as long";
}

TEST_P(PullTimesTest, OneBeginsWhenTheOneBeforeItHasEnded) {
  require(cudaSetDevice(0));
  const cudaEvent_t start = new_event(), first = new_event(), second = new_event();
  hold(streams[0][0]);
  require(cudaEventRecord(start, streams[0][0]));
  require(cudaStreamWaitEvent(streams[0][1], start));
  copy(2, 0, streams[0][0]);
  copy(2, 0, streams[0][1], 1);
  require(cudaEventRecord(first, streams[0][0]));
  require(cudaEventRecord(second, streams[0][1]));
  open();
  const float first_ms = milliseconds(start, first);
  EXPECT_NEAR(milliseconds(start, second), 2 * first_ms, 0.01 * first_ms);
}

// Host threads run one after another, but their clocks run in parallel.
TEST_P(PullTimesTest, TheOrderIsThatOfTheHostsClocks) {
  vgpu::run_host_threads(2, [&](int thread) {
    require(cudaSetDevice(thread));
    if (thread == 0) {
      int device = 0;
      for (int i = 0; i < 100; ++i) require(cudaGetDevice(&device));
      hold(held);
      copy(2, 0, held);
    } else {
      copy(2, 1, streams[1][0]);
    }
  });
  EXPECT_TRUE(passes(streams[1][0]));
  copy(2, 3, streams[3][0]);
  EXPECT_FALSE(passes(streams[3][0]));
  open();
  CUDA_OK(cudaStreamSynchronize(streams[3][0]));
}

/// In step i every rank pulls from its i-th neighbour: while they keep step, no pull waits for another.
TEST_P(PullTimesTest, RanksThatKeepStepDoNotHoldEachOtherUp) {
  require(cudaSetDevice(0));
  const float one = time_of(streams[0][0], 1, 0);
  std::vector<float> all(kGpus);
  vgpu::run_host_threads(kGpus, [&](int rank) {
    require(cudaSetDevice(rank));
    const cudaStream_t stream = streams[rank][0];
    all[static_cast<std::size_t>(rank)] = elapsed(stream, [&] {
      for (int i = 1; i < kGpus; ++i) copy((rank + i) % kGpus, rank, stream, i);
    });
  });
  for (const float ms : all) EXPECT_LT(ms, 1.1f * (kGpus - 1) * one);
}

}  // namespace
}  // namespace virtual_only
