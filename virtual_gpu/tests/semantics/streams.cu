// Streams: order within one, none between two. Guide, "Streams"; API, "Stream Management".
#include <memory>

#include "gpu_test.hpp"

namespace semantics {
namespace {

using StreamsTest = GpuTest;
using StreamsOfTwoGpusTest = TwoGpusTest;

/// Waits for a flag of another kernel, then writes.
template <class Word>
__global__ void report_flag(Word* flag, Word* seen) {
  *seen = await(flag) ? 1 : 2;
}

template <class Word>
__global__ void raise(Word* flag) {
  Flag<Word>(*flag).store(1, cuda::memory_order_release);
}

TEST_F(StreamsTest, KernelsOfOneStreamRunInOrder) {
  const DeviceArray<long long> digits(1);
  const Stream stream;
  Gate gate(stream);
  for (long long digit = 1; digit <= 9; ++digit) append<<<1, 1, 0, stream>>>(digits.data(), digit);
  CUDA_OK(cudaGetLastError());
  gate.drain(stream);
  EXPECT_EQ(digits.value(), 123456789);
}

TEST_F(StreamsTest, CopiesFillsAndKernelsOfOneStreamRunInOrder) {
  PinnedArray<int> host(4, 0);
  host[0] = 5;
  const DeviceArray<int> number(1, -1);
  const Stream stream;
  Gate gate(stream);
  CUDA_OK(cudaMemcpyAsync(number.data(), &host[0], sizeof(int), cudaMemcpyHostToDevice, stream));
  append<<<1, 1, 0, stream>>>(number.data(), 1);
  CUDA_OK(cudaMemcpyAsync(&host[1], number.data(), sizeof(int), cudaMemcpyDeviceToHost, stream));
  CUDA_OK(cudaMemsetAsync(number.data(), 0, sizeof(int), stream));
  append<<<1, 1, 0, stream>>>(number.data(), 2);
  CUDA_OK(cudaMemcpyAsync(&host[2], number.data(), sizeof(int), cudaMemcpyDeviceToHost, stream));
  append<<<1, 1, 0, stream>>>(number.data(), 3);
  CUDA_OK(cudaMemcpyAsync(&host[3], number.data(), sizeof(int), cudaMemcpyDeviceToHost, stream));
  gate.drain(stream);
  EXPECT_EQ(host[1], 51);
  EXPECT_EQ(host[2], 2);
  EXPECT_EQ(host[3], 23);
}

TEST_F(StreamsTest, TwoStreamsRunConcurrently) {
  const DeviceArray<int> flag(1), seen(1);
  const Stream waiting, raising;
  report_flag<<<1, 1, 0, waiting>>>(flag.data(), seen.data());
  raise<<<1, 1, 0, raising>>>(flag.data());
  CUDA_OK(cudaGetLastError());
  CUDA_OK(cudaStreamSynchronize(waiting));
  EXPECT_EQ(seen.value(), 1);
}

TEST_F(StreamsTest, LaunchesReturnBeforeTheKernelRuns) {
  PinnedArray<int> result(1, 7);
  const Stream stream;
  Gate gate(stream);
  set<<<1, 1, 0, stream>>>(result.data(), 8);
  CUDA_OK(cudaGetLastError());
  EXPECT_EQ(*static_cast<volatile int*>(result.data()), 7);
  gate.drain(stream);
  EXPECT_EQ(result[0], 8);
}

TEST_F(StreamsTest, QueryTellsWhetherWorkIsPending) {
  const Stream stream;
  Gate gate;
  EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess) << "an empty stream";
  gate.close(stream);
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
  gate.drain(stream);
  EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess);
}

TEST_F(StreamsTest, QueriesAloneSeeTheEnd) {
  PinnedArray<int> result(1, 0);
  const Stream stream;
  set_late<<<1, 1, 0, stream>>>(result.data(), 1);
  cudaError_t state = cudaErrorNotReady;
  while (state == cudaErrorNotReady) state = cudaStreamQuery(stream);
  EXPECT_EQ(state, cudaSuccess);
  EXPECT_EQ(result[0], 1);
}

TEST_F(StreamsTest, SynchronizeWaitsForItsOwnStreamOnly) {
  PinnedArray<int> result(1, 0);
  const Stream held, stream;
  Gate gate(held);
  set_late<<<1, 1, 0, stream>>>(result.data(), 1);
  CUDA_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(result[0], 1);
  EXPECT_EQ(cudaStreamQuery(held), cudaErrorNotReady);
}

// API, cudaStreamDestroy: returns at once; enqueued work still completes.
TEST_F(StreamsTest, WorkSurvivesItsStream) {
  PinnedArray<int> result(1, 0);
  Gate gate;
  auto stream = std::make_unique<Stream>();
  gate.close(*stream);
  set<<<1, 1, 0, *stream>>>(result.data(), 1);
  stream.reset();
  EXPECT_EQ(*static_cast<volatile int*>(result.data()), 0);
  gate.open();
  CUDA_OK(cudaDeviceSynchronize());
  EXPECT_EQ(result[0], 1);
}

class DeviceSynchronizeTest : public GpuTest, public testing::WithParamInterface<unsigned int> {};

TEST_P(DeviceSynchronizeTest, CoversTheStream) {
  PinnedArray<int> result(1, 0);
  const Stream stream(GetParam());
  set_late<<<1, 1, 0, stream>>>(result.data(), 1);
  CUDA_OK(cudaDeviceSynchronize());
  EXPECT_EQ(result[0], 1);
}
INSTANTIATE_TEST_SUITE_P(Streams, DeviceSynchronizeTest,
                         testing::Values(cudaStreamDefault, cudaStreamNonBlocking));

TEST_F(StreamsOfTwoGpusTest, DeviceSynchronizeCoversTheCurrentDeviceOnly) {
  PinnedArray<int> result(1, 0);
  const Stream held;
  Gate gate;
  const auto stream = made_on(1, [] { return Stream(); });
  gate.close(held);
  CUDA_OK(cudaSetDevice(1));
  set_late<<<1, 1, 0, stream>>>(result.data(), 1);
  CUDA_OK(cudaDeviceSynchronize());
  EXPECT_EQ(result[0], 1);
  EXPECT_EQ(cudaStreamQuery(held), cudaErrorNotReady);
}

TEST_F(StreamsTest, ManyStreamsDoNotMixTheirWork) {
  constexpr int kStreams = 8;
  PinnedArray<int> results(kStreams, 0);
  const DeviceArray<int> numbers(kStreams, 0);
  std::vector<std::unique_ptr<Stream>> streams;
  for (int i = 0; i < kStreams; ++i) streams.push_back(std::make_unique<Stream>());
  for (int step = 1; step <= 3; ++step) {
    for (int i = 0; i < kStreams; ++i) {
      append<<<1, 1, 0, *streams[i]>>>(numbers.data() + i, (i + step) % 10);
      CUDA_OK(
          cudaMemcpyAsync(&results[i], numbers.data() + i, sizeof(int), cudaMemcpyDeviceToHost, *streams[i]));
    }
  }
  for (const auto& stream : streams) CUDA_OK(cudaStreamSynchronize(*stream));
  for (int i = 0; i < kStreams; ++i) {
    EXPECT_EQ(results[i], (i + 1) % 10 * 100 + (i + 2) % 10 * 10 + (i + 3) % 10) << "stream " << i;
  }
}

}  // namespace
}  // namespace semantics
