// Graphs: the model, the reports, and calls that are rejected by name. CUDA's promises are in
// semantics/graphs.cu.
#include <cuda.h>

#include <vector>

#include "nccl_virtual_test.hpp"
#include "overlap/gpu/graph.hpp"
#include "vgpu/timeline.hpp"
#include "virtual_test.hpp"

namespace virtual_only {
namespace {

using overlap::Graph;

constexpr int kRounds = 2000;

class GraphsTest : public VirtualTest {
 protected:
  /// `count` small kernels, one after another.
  static void enqueue(cudaStream_t stream, int count) {
    for (int i = 0; i < count; ++i) work<float><<<1, 32, 0, stream>>>(nullptr, 1);
  }
  static Graph chain(cudaStream_t stream, int count) {
    return Graph::capture(stream, [&] { enqueue(stream, count); });
  }
};

TEST_F(GraphsTest, AGraphOfManySmallKernelsIsFasterThanTheirLaunches) {
  const cudaStream_t stream = new_stream();
  const Graph graph = chain(stream, 40);
  EXPECT_EQ(graph.nodes(), 40u);
  const float launches = elapsed(stream, [&] { enqueue(stream, 40); });
  const float launch = elapsed(stream, [&] { graph.launch(stream); });
  EXPECT_LT(launch, 0.8 * launches);
  EXPECT_GT(launch, 0.3 * launches) << "each kernel still costs something";
}

TEST_F(GraphsTest, AGraphOfOneKernelIsNot) {
  const cudaStream_t stream = new_stream();
  const Graph graph = chain(stream, 1);
  EXPECT_GE(elapsed(stream, [&] { graph.launch(stream); }), elapsed(stream, [&] { enqueue(stream, 1); }));
}

TEST_F(GraphsTest, ParallelBranchesOverlapAndChainsDoNot) {
  const cudaStream_t stream = new_stream(), other = new_stream();
  const auto time_of = [&](cudaStream_t second) {
    const Graph graph = Graph::capture(stream, [&] {
      order(other, stream);
      work<float><<<2, 128, 0, stream>>>(nullptr, kRounds);
      work<float><<<2, 128, 0, second>>>(nullptr, kRounds);
      order(stream, other);
    });
    return elapsed(stream, [&] { graph.launch(stream); });
  };
  EXPECT_LT(time_of(other), 0.7 * time_of(stream));
}

TEST_F(GraphsTest, TheTimelineShowsNodesInTheLaneOfTheirLaunch) {
  vgpu::record_timeline();
  int* words = device_words(2, 0);
  const cudaStream_t capturing = new_stream(), other = new_stream(), launched = new_stream();
  const Graph graph = Graph::capture(capturing, [&] {
    set<int><<<1, 1, 0, capturing>>>(words, 1);
    order(other, capturing);
    require(cudaMemsetAsync(words + 1, 0, sizeof(int), other));
    order(capturing, other);
  });
  const std::size_t before = vgpu::timeline().size();
  vgpu::push_label("step 2");
  graph.launch(launched);
  vgpu::pop_label();
  enqueue(launched, 1);
  CUDA_OK(cudaDeviceSynchronize());
  auto entries = vgpu::timeline();
  entries.erase(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(before));
  ASSERT_EQ(entries.size(), 3u) << "the launch itself has no bar";
  EXPECT_EQ(entries[0].work.kind, "kernel");
  EXPECT_EQ(entries[1].work.kind, "memset");
  EXPECT_EQ(entries[0].labels, std::vector<std::string>{"step 2"});
  EXPECT_EQ(entries[0].stream, entries[2].stream) << "the first branch is drawn where it was launched";
  EXPECT_NE(entries[1].stream, entries[2].stream) << "the second one has a lane of its own";
  EXPECT_LE(entries[0].end, entries[1].begin);
}

TEST_F(GraphsTest, DeadlockReportsNameNodeAndGraph) {
  int* flag = device_words(1, 0);
  const cudaStream_t stream = new_stream();
  const Graph graph = Graph::capture(stream, [&] {
    enqueue(stream, 1);
    await<int><<<1, 1, 0, stream>>>(flag);
    enqueue(stream, 1);
  });
  graph.launch(stream);
  expect_parts(deadlock_of(stream), {"gpu0/stream1: graph of 3 nodes: 1 of 3 nodes done",
                                     "gpu0/graph1.branch0: kernel 'virtual_only::", "await"});
}

TEST_F(GraphsTest, MemoryOfAPendingGraphCannotBeFreed) {
  int* here = device_words(1, 0);
  const cudaStream_t stream = new_stream();
  int* there = on_gpu(1, [] { return device_words(1, 0); });
  const Graph graph = Graph::capture(
      stream, [&] { require(cudaMemcpyAsync(there, here, sizeof(int), cudaMemcpyDefault, stream)); });
  graph.launch(stream);
  expect_failure(cudaFree(there), cudaErrorIllegalAddress,
                 {"freed under a pending operation", "graph of 1 nodes"});
}

// ---- captures ---------------------------------------------------------------------------------------------

/// A capture in a stream of GPU 0 that `call` invalidates, with a message.
class RefusedTest : public GraphsTest {
 protected:
  void SetUp() override {
    GraphsTest::SetUp();
    stream = new_stream();
  }
  void expect_invalid() {
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(graph, nullptr);
  }
  void begin(cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed) {
    require(cudaStreamBeginCapture(stream, mode));
  }
  cudaStream_t stream = nullptr;
};

TEST_F(RefusedTest, WordsThatStreamsWriteAndWaitFor) {
  const auto word = reinterpret_cast<CUdeviceptr>(device_words(1, 0));
  begin();
  EXPECT_EQ(cuStreamWriteValue32(stream, word, 1, 0), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  expect_parts(vgpu::last_error_detail(), {"cuStreamWriteValue32: ", "cannot be captured on virtual GPUs"});
  expect_invalid();
  begin();
  EXPECT_EQ(cuStreamWaitValue32(stream, word, 1, 0), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  expect_parts(vgpu::last_error_detail(), {"cuStreamWaitValue32: ", "cannot be captured on virtual GPUs"});
  expect_invalid();
}

TEST_F(RefusedTest, PageableMemory) {
  int* word = device_words(1, 0);
  int pageable = 1;
  for (const auto kind : {cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost}) {
    void* to = kind == cudaMemcpyHostToDevice ? word : &pageable;
    const void* from = kind == cudaMemcpyHostToDevice ? &pageable : word;
    begin();
    expect_failure(cudaMemcpyAsync(to, from, sizeof(int), kind, stream), cudaErrorStreamCaptureUnsupported,
                   {"cudaMemcpyAsync: ", "pageable memory"});
    expect_invalid();
  }
}

TEST_F(RefusedTest, AGraphInAGraph) {
  const Graph graph = chain(stream, 1);
  begin();
  EXPECT_THROW(graph.launch(stream), overlap::CudaError);
  expect_parts(vgpu::last_error_detail(), {"cudaGraphLaunch: ", "do not capture a graph into another one"});
  expect_invalid();
}

TEST_F(RefusedTest, CallsOfNccl) {
  ncclComm_t communicator = nullptr;
  require(ncclCommInitAll(&communicator, 1, nullptr));
  int* word = device_words(1, 3);
  begin();
  EXPECT_EQ(ncclAllReduce(word, word, 1, ncclInt, ncclSum, communicator, stream), ncclUnhandledCudaError);
  expect_parts(vgpu::last_error_detail(), {"ncclAllReduce: ", "do not capture NCCL's calls"});
  expect_invalid();
  NCCL_OK(ncclAllReduce(word, word, 1, ncclInt, ncclSum, communicator, stream));
  CUDA_OK(cudaStreamSynchronize(stream));
}

TEST_F(RefusedTest, FlagsAndModes) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  expect_failure(cudaStreamBeginCapture(stream, static_cast<cudaStreamCaptureMode>(3)), cudaErrorInvalidValue,
                 {"no capture mode 3"});
  begin();
  CUDA_OK(cudaStreamEndCapture(stream, &graph));
  expect_failure(cudaGraphInstantiate(&executable, graph, 2), cudaErrorInvalidValue,
                 {"no flags are supported"});
  CUDA_OK(cudaGraphInstantiateWithFlags(&executable, graph, 0));
  CUDA_OK(cudaGraphExecDestroy(executable));
  expect_failure(cudaGraphLaunch(executable, stream), cudaErrorInvalidValue, {"does not exist (any more)"});
  CUDA_OK(cudaGraphDestroy(graph));
  expect_failure(cudaGraphDestroy(graph), cudaErrorInvalidValue, {"does not exist (any more)"});
}

TEST_F(RefusedTest, UnjoinedWorkIsNamed) {
  int* word = device_words(1, 0);
  const cudaStream_t other = new_stream();
  begin();
  order(other, stream);
  CUDA_OK(cudaMemsetAsync(word, 0, sizeof(int), other));
  cudaGraph_t graph = nullptr;
  expect_failure(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureUnjoined,
                 {"memset of 4 bytes on GPU 0", "gpu0/stream1 does not wait for it"});
}

TEST_F(RefusedTest, AnEventOfACaptureThatHasEnded) {
  const cudaEvent_t event = new_event();
  begin();
  CUDA_OK(cudaEventRecord(event, stream));
  cudaGraph_t graph = nullptr;
  CUDA_OK(cudaStreamEndCapture(stream, &graph));
  expect_failure(cudaStreamWaitEvent(stream, event), cudaErrorCapturedEvent, {"which has ended"});
  expect_failure(cudaEventQuery(event), cudaErrorCapturedEvent, {"capturing stream"});
}

TEST_F(RefusedTest, DestroyedStreamsLeaveTheCapture) {
  int* word = device_words(1, 0);
  const cudaStream_t other = new_stream();
  begin();
  order(other, stream);
  CUDA_OK(cudaMemsetAsync(word, 1, sizeof(int), other));
  order(stream, other);
  CUDA_OK(cudaStreamDestroy(other));
  cudaGraph_t graph = nullptr;
  CUDA_OK(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t executable = nullptr;
  CUDA_OK(cudaGraphInstantiate(&executable, graph));
  CUDA_OK(cudaGraphLaunch(executable, stream));
  CUDA_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(virtual_only::word(word), 0x01010101);

  const cudaStream_t third = new_stream();
  begin();
  order(third, stream);
  CUDA_OK(cudaStreamDestroy(stream));  // now the capture cannot be ended
  cudaStreamCaptureStatus status;
  CUDA_OK(cudaStreamIsCapturing(third, &status));
  EXPECT_EQ(status, cudaStreamCaptureStatusNone);
  CUDA_OK(cudaStreamSynchronize(third));
}

TEST_F(RefusedTest, WhatRecordThrowsEndsTheCapture) {
  struct Mine {};
  EXPECT_THROW(Graph::capture(stream, [] { throw Mine(); }), Mine);
  CUDA_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

// ---- other host threads -----------------------------------------------------------------------------------

/// The status of cudaMalloc in another host thread during a capture.
cudaError_t malloc_beside(cudaStreamCaptureMode mode, cudaError_t end) {
  cudaError_t result = cudaErrorUnknown;
  vgpu::HostBarrier barrier(2);
  vgpu::run_host_threads(2, [&](int thread) {
    const cudaStream_t stream = thread == 0 ? new_stream() : nullptr;
    if (thread == 0) require(cudaStreamBeginCapture(stream, mode));
    barrier.wait();
    void* memory = nullptr;
    if (thread == 1) result = cudaMalloc(&memory, 256);
    barrier.wait();
    cudaGraph_t graph = nullptr;
    if (thread == 1) return;
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), end);
  });
  return result;
}

TEST_F(GraphsTest, GlobalCapturesForbidAllocationsOfAllHostThreads) {
  EXPECT_EQ(malloc_beside(cudaStreamCaptureModeGlobal, cudaErrorStreamCaptureInvalidated),
            cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(malloc_beside(cudaStreamCaptureModeThreadLocal, cudaSuccess), cudaSuccess);
  EXPECT_EQ(malloc_beside(cudaStreamCaptureModeRelaxed, cudaSuccess), cudaSuccess);
}

TEST_F(GraphsTest, OnlyARelaxedCaptureMayEndInAnotherThread) {
  const auto end_beside = [](cudaStreamCaptureMode mode) {
    cudaError_t result = cudaErrorUnknown;
    const cudaStream_t stream = new_stream();
    vgpu::HostBarrier barrier(2);
    vgpu::run_host_threads(2, [&](int thread) {
      if (thread == 0) require(cudaStreamBeginCapture(stream, mode));
      barrier.wait();
      cudaGraph_t graph = nullptr;
      if (thread == 1) result = cudaStreamEndCapture(stream, &graph);
    });
    return result;
  };
  EXPECT_EQ(end_beside(cudaStreamCaptureModeRelaxed), cudaSuccess);
  EXPECT_EQ(end_beside(cudaStreamCaptureModeThreadLocal), cudaErrorStreamCaptureWrongThread);
}

}  // namespace
}  // namespace virtual_only
