// Graphs: what a capture records and a launch runs. Guide, "CUDA Graphs"; API, "Stream Management" and "Graph
// Management".
#include <memory>

#include "capture_test.hpp"

namespace semantics {
namespace {

using GraphsTest = GpuTest;
using GraphsOfTwoGpusTest = TwoGpusTest;

/// Adds one, slowly: two concurrent kernels would lose an addition.
__global__ void increment_late(int* where) {
  const int before = *static_cast<volatile int*>(where);
  spin();
  *where = before + 1;
}

TEST_F(GraphsTest, CapturedWorkRunsWhenTheGraphIsLaunched) {
  const DeviceArray<long long> digits(1);
  const Stream stream;
  const Graph graph(stream, [&] {
    for (long long digit = 1; digit <= 3; ++digit) append<<<1, 1, 0, stream>>>(digits.data(), digit);
  });
  CUDA_OK(cudaGetLastError());
  CUDA_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(digits.value(), 0);
  const Executable executable(graph);
  CUDA_OK(cudaGraphUpload(executable, stream));
  CUDA_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(digits.value(), 0);
  for (int i = 0; i < 2; ++i) CUDA_OK(cudaGraphLaunch(executable, stream));
  CUDA_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(digits.value(), 123123);
}

TEST_F(GraphsTest, ArgumentsAreThoseOfTheCaptureAndMemoryThatOfTheLaunch) {
  PinnedArray<int> source(1, 3);
  const DeviceArray<int> argument(1), copied(1);
  const Stream stream;
  int value = 5;
  const Graph graph(stream, [&] {
    set<<<1, 1, 0, stream>>>(argument.data(), value);
    require(cudaMemcpyAsync(copied.data(), source.data(), sizeof(int), cudaMemcpyHostToDevice, stream));
  });
  value = 6;
  source[0] = 4;
  const Executable executable(graph);
  executable.run(stream);
  EXPECT_EQ(argument.value(), 5);
  EXPECT_EQ(copied.value(), 4);
  source[0] = 7;
  executable.run(stream);
  EXPECT_EQ(copied.value(), 7);
}

TEST_F(GraphsTest, CopiesFillsKernelsAndHostFunctionsRunInOrder) {
  PinnedArray<int> host(6, 0);
  host[0] = 5;
  const DeviceArray<int> number(1), pair(4, 0);
  const Stream stream;
  constexpr auto kIn = cudaMemcpyHostToDevice, kOut = cudaMemcpyDeviceToHost;
  constexpr auto kWithin = cudaMemcpyDeviceToDevice;
  constexpr std::size_t kWord = sizeof(int);
  const Graph graph(stream, [&] {
    require(cudaMemcpyAsync(number.data(), &host[0], kWord, kIn, stream));
    append<<<1, 1, 0, stream>>>(number.data(), 1);
    require(cudaMemcpy2DAsync(pair.data(), 2 * kWord, number.data(), kWord, kWord, 1, kWithin, stream));
    require(cudaMemsetAsync(number.data(), 0, kWord, stream));
    append<<<1, 1, 0, stream>>>(number.data(), 2);
    require(cudaMemcpyAsync(pair.data() + 1, number.data(), kWord, kWithin, stream));
    require(cudaMemcpyAsync(&host[1], pair.data(), 2 * kWord, kOut, stream));
    const auto add_ten = [](void* word) { *static_cast<int*>(word) += 10; };
    require(cudaLaunchHostFunc(stream, add_ten, &host[1]));
    require(cudaMemcpyAsync(&host[3], &host[1], kWord, cudaMemcpyHostToHost, stream));
  });
  EXPECT_EQ(graph.nodes(), 9u);
  Executable(graph).run(stream);
  EXPECT_EQ(host[1], 61);
  EXPECT_EQ(host[2], 2);
  EXPECT_EQ(host[3], 61);
}

TEST_F(GraphsTest, LaunchesAreInTheOrderOfTheirStream) {
  const DeviceArray<long long> digits(1);
  const Stream capturing, stream;
  const Graph graph(capturing, [&] { append<<<1, 1, 0, capturing>>>(digits.data(), 2LL); });
  const Executable executable(graph);
  Gate gate(stream);
  append<<<1, 1, 0, stream>>>(digits.data(), 1LL);
  CUDA_OK(cudaGraphLaunch(executable, stream));
  append<<<1, 1, 0, stream>>>(digits.data(), 3LL);
  CUDA_OK(cudaGraphLaunch(executable, stream));
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
  EXPECT_EQ(cudaStreamQuery(capturing), cudaSuccess) << "a graph forgets where it was captured";
  gate.drain(stream);
  EXPECT_EQ(digits.value(), 1232);
}

// API, cudaGraphLaunch: "Each launch is ordered behind both any previous work in stream and any previous
// launches of graphExec."
TEST_F(GraphsTest, LaunchesOfOneExecutableDoNotOverlap) {
  const DeviceArray<int> sum(1), seen(1);
  const Stream first, second;
  const Event fork, join;
  const Graph graph(first, [&] {  // the next launch must also wait for the end of the second branch
    copy_one<<<1, 1, 0, first>>>(seen.data(), sum.data());
    order(second, first, fork);
    increment_late<<<1, 1, 0, second>>>(sum.data());
    order(first, second, join);
  });
  const Executable executable(graph);
  for (int i = 0; i < 3; ++i) {
    CUDA_OK(cudaGraphLaunch(executable, first));
    CUDA_OK(cudaGraphLaunch(executable, second));
  }
  CUDA_OK(cudaStreamSynchronize(first));
  CUDA_OK(cudaStreamSynchronize(second));
  EXPECT_EQ(sum.value(), 6);
  EXPECT_EQ(seen.value(), 5);
}

TEST_F(GraphsTest, EventsAfterTheLaunchCoverTheGraph) {
  const DeviceArray<int> from(1), to(1);
  const Stream stream, other;
  const Event launched;
  const Graph graph(stream, [&] { set_late<<<1, 1, 0, stream>>>(from.data(), 7); });
  const Executable executable(graph);
  CUDA_OK(cudaGraphLaunch(executable, stream));
  order(other, stream, launched);
  copy_one<<<1, 1, 0, other>>>(to.data(), from.data());
  CUDA_OK(cudaStreamSynchronize(other));
  EXPECT_EQ(to.value(), 7);
}

// Guide, "Cross-stream Dependencies and Events". Launched twice: if a dependency were missing, the second
// launch would see values of the first.
TEST_F(GraphsTest, StreamsJoinTheCaptureByEvents) {
  const DeviceArray<int> a(1), b(1), c(1), d(1);
  const Stream stream, other;
  const Event fork, join;
  const Graph graph(stream, [&] {
    increment_late<<<1, 1, 0, stream>>>(a.data());
    order(other, stream, fork);
    EXPECT_EQ(status(other), cudaStreamCaptureStatusActive);
    unsigned long long id = 0, id_of_other = 1;
    cudaStreamCaptureStatus ignored;
    require(cudaStreamGetCaptureInfo(stream, &ignored, &id));
    require(cudaStreamGetCaptureInfo(other, &ignored, &id_of_other));
    EXPECT_EQ(id, id_of_other);
    copy_one<<<1, 1, 0, other>>>(b.data(), a.data());
    increment_late<<<1, 1, 0, other>>>(b.data());
    copy_one<<<1, 1, 0, stream>>>(c.data(), a.data());
    order(stream, other, join);
    copy_one<<<1, 1, 0, stream>>>(d.data(), b.data());
  });
  EXPECT_EQ(status(stream), cudaStreamCaptureStatusNone);
  EXPECT_EQ(status(other), cudaStreamCaptureStatusNone);
  EXPECT_EQ(graph.nodes(), 5u) << "events are edges, not nodes";
  const Executable executable(graph);
  for (int launch = 1; launch <= 2; ++launch) {
    executable.run(other);
    EXPECT_EQ(a.value(), launch);
    EXPECT_EQ(b.value(), launch + 1);
    EXPECT_EQ(c.value(), launch);
    EXPECT_EQ(d.value(), launch + 1);
  }
}

TEST_F(GraphsTest, AnEventCoversWhatWasCapturedBeforeIt) {
  const DeviceArray<long long> digits(1);
  const Stream stream, other;
  const Event fork, join;
  const Graph graph(stream, [&] {
    for (long long round = 0; round < 3; ++round) {  // back and forth: only events order the kernels
      append<<<1, 1, 0, stream>>>(digits.data(), 2 * round + 1);
      order(other, stream, fork);
      append<<<1, 1, 0, other>>>(digits.data(), 2 * round + 2);
      order(stream, other, join);
    }
  });
  Executable(graph).run(stream);
  EXPECT_EQ(digits.value(), 123456);
}

TEST_F(GraphsOfTwoGpusTest, OneGraphOfTwoGpus) {
  const DeviceArray<int> here(1, 1);
  const Stream stream;
  const Event fork;
  CUDA_OK(cudaSetDevice(1));
  const DeviceArray<int> there(1, 1);
  const Stream other;
  const Event join;
  CUDA_OK(cudaSetDevice(0));
  const Graph graph(stream, [&] {
    increment_late<<<1, 1, 0, stream>>>(here.data());
    require(cudaEventRecord(fork, stream));
    require(cudaSetDevice(1));
    require(cudaStreamWaitEvent(other, fork));
    require(cudaMemcpyAsync(there.data(), here.data(), sizeof(int), cudaMemcpyDefault, other));
    append<<<1, 1, 0, other>>>(there.data(), 7);
    require(cudaEventRecord(join, other));
    require(cudaSetDevice(0));
    require(cudaStreamWaitEvent(stream, join));
    require(cudaMemcpyAsync(here.data(), there.data(), sizeof(int), cudaMemcpyDefault, stream));
  });
  Executable(graph).run(stream);
  EXPECT_EQ(here.value(), 27);
}

TEST_F(GraphsOfTwoGpusTest, CopiesThatNameTheirGpusAreNotCaptured) {
  const DeviceArray<int> here(1, 1);
  const Stream stream;
  const auto there = made_on(1, [] { return DeviceArray<int>(1, 1); });
  CUDA_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  EXPECT_CUDA_ERROR(cudaMemcpyPeerAsync(there.data(), 1, here.data(), 0, sizeof(int), stream),
                    cudaErrorStreamCaptureUnsupported);
  expect_no_graph(stream, cudaErrorStreamCaptureInvalidated);
}

TEST_F(GraphsTest, NothingIsAGraphToo) {
  const Stream stream;
  const Graph graph(stream, [] {});
  EXPECT_EQ(graph.nodes(), 0u);
  Executable(graph).run(stream);
}

TEST_F(GraphsTest, AnExecutableOutlivesItsGraphAndALaunchItsExecutable) {
  const DeviceArray<int> sum(1);
  const Stream stream;
  std::unique_ptr<Executable> executable;
  {
    const Graph graph(stream, [&] { increment_late<<<1, 1, 0, stream>>>(sum.data()); });
    executable = std::make_unique<Executable>(graph);
  }
  for (int i = 0; i < 3; ++i) CUDA_OK(cudaGraphLaunch(*executable, stream));
  executable.reset();
  CUDA_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(sum.value(), 3);
}

TEST_F(GraphsTest, AnUpdateChangesTheArgumentsOfLaterLaunches) {
  const DeviceArray<long long> digits(1);
  const Stream stream;
  const auto two_digits = [&](long long digit) {
    return Graph(stream, [&, digit] {
      append<<<1, 1, 0, stream>>>(digits.data(), digit);
      append<<<1, 1, 0, stream>>>(digits.data(), digit + 1);
    });
  };
  const Graph first = two_digits(1), second = two_digits(3);
  const Executable executable(first);
  cudaGraphExecUpdateResultInfo info{};
  CUDA_OK(cudaGraphLaunch(executable, stream));
  CUDA_OK(cudaGraphExecUpdate(executable, second, &info));
  EXPECT_EQ(info.result, cudaGraphExecUpdateSuccess);
  executable.run(stream);
  EXPECT_EQ(digits.value(), 1234);
}

TEST_F(GraphsTest, AnUpdateRefusesOtherNodes) {
  const DeviceArray<long long> digits(1);
  const Stream stream;
  const Graph one(stream, [&] { append<<<1, 1, 0, stream>>>(digits.data(), 1LL); });
  const Graph two(stream, [&] {
    for (long long digit = 2; digit <= 3; ++digit) append<<<1, 1, 0, stream>>>(digits.data(), digit);
  });
  const Graph fill(stream, [&] { require(cudaMemsetAsync(digits.data(), 0, digits.bytes(), stream)); });
  const Executable executable(one);
  cudaGraphExecUpdateResultInfo info{};
  EXPECT_CUDA_ERROR(cudaGraphExecUpdate(executable, two, &info), cudaErrorGraphExecUpdateFailure);
  EXPECT_EQ(info.result, cudaGraphExecUpdateErrorTopologyChanged);
  EXPECT_CUDA_ERROR(cudaGraphExecUpdate(executable, fill, &info), cudaErrorGraphExecUpdateFailure);
  EXPECT_EQ(info.result, cudaGraphExecUpdateErrorNodeTypeChanged);
  executable.run(stream);
  EXPECT_EQ(digits.value(), 1) << "what was refused has changed nothing";
}

}  // namespace
}  // namespace semantics
