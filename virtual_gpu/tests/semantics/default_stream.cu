// The legacy default stream. API, "Stream synchronization behavior"; Guide, "Implicit Synchronization".
#include "gpu_test.hpp"

namespace semantics {
namespace {

using DefaultStreamTest = GpuTest;
using DefaultStreamsOfTwoGpusTest = TwoGpusTest;

/// `flag`: of the stream; `waits`: whether it and the default stream wait for each other.
struct Kind {
  unsigned int flag;
  bool waits;
};
class DefaultStreamAndOtherTest : public GpuTest, public testing::WithParamInterface<Kind> {
 protected:
  void expect_waiting(cudaStream_t stream, bool waits) {
    if (!waits) require(cudaStreamSynchronize(stream));
    EXPECT_EQ(cudaStreamQuery(stream), waits ? cudaErrorNotReady : cudaSuccess);
  }
};

TEST_P(DefaultStreamAndOtherTest, DefaultStreamWaitsForEarlierWorkOfBlockingStreams) {
  const DeviceArray<int> x(1, 0), y(1, 0);
  const Stream stream(GetParam().flag);
  const Event done;
  Gate gate(stream);
  set<<<1, 1, 0, stream>>>(x.data(), 1);
  copy_one<<<1, 1>>>(y.data(), x.data());
  CUDA_OK(cudaEventRecord(done));
  if (GetParam().waits) {
    EXPECT_EQ(cudaEventQuery(done), cudaErrorNotReady);
    gate.open();
  }
  CUDA_OK(cudaEventSynchronize(done));
  gate.open();
  CUDA_OK(cudaDeviceSynchronize());
  EXPECT_EQ(y.value(), GetParam().waits ? 1 : 0);
}

TEST_P(DefaultStreamAndOtherTest, BlockingStreamsWaitForEarlierWorkOfTheDefaultStream) {
  const DeviceArray<int> x(1, 0), y(1, 0);
  const Stream stream(GetParam().flag);
  Gate gate(cudaStreamLegacy);
  set<<<1, 1>>>(x.data(), 1);
  copy_one<<<1, 1, 0, stream>>>(y.data(), x.data());
  expect_waiting(stream, GetParam().waits);
  gate.open();
  CUDA_OK(cudaDeviceSynchronize());
  EXPECT_EQ(y.value(), GetParam().waits ? 1 : 0);
}
INSTANTIATE_TEST_SUITE_P(Kinds, DefaultStreamAndOtherTest,
                         testing::Values(Kind{cudaStreamDefault, true}, Kind{cudaStreamNonBlocking, false}),
                         [](const auto& info) { return info.param.waits ? "blocking" : "non_blocking"; });

// The reference's example: k_2 in the default stream waits for k_1 in s, k_3 in s waits for k_2.
TEST_F(DefaultStreamTest, OrdersBlockingStreamsAmongEachOther) {
  const DeviceArray<int> digits(1, 0);
  const Stream first(cudaStreamDefault), second(cudaStreamDefault);
  Gate gate(first);
  append<<<1, 1, 0, first>>>(digits.data(), 1);
  append<<<1, 1>>>(digits.data(), 2);
  append<<<1, 1, 0, second>>>(digits.data(), 3);
  append<<<1, 1>>>(digits.data(), 4);
  append<<<1, 1, 0, first>>>(digits.data(), 5);
  EXPECT_EQ(cudaStreamQuery(second), cudaErrorNotReady);
  gate.open();
  CUDA_OK(cudaDeviceSynchronize());
  EXPECT_EQ(digits.value(), 12345);
}

TEST_F(DefaultStreamTest, BlockingStreamsWithoutItDoNotWaitForEachOther) {
  PinnedArray<int> result(1, 0);
  const Stream held(cudaStreamDefault), stream(cudaStreamDefault);
  Gate gate(held);
  set<<<1, 1, 0, stream>>>(result.data(), 1);
  CUDA_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(result[0], 1);
}

TEST_F(DefaultStreamTest, SynchronousCopyToTheHostSeesEarlierKernelsOfBlockingStreams) {
  const DeviceArray<int> x(1, 0);
  const Stream stream(cudaStreamDefault);
  set_late<<<1, 1, 0, stream>>>(x.data(), 1);
  int result = 0;
  CUDA_OK(cudaMemcpy(&result, x.data(), sizeof(int), cudaMemcpyDeviceToHost));
  EXPECT_EQ(result, 1);
}

TEST_F(DefaultStreamTest, EventRecordedInItCapturesBlockingStreams) {
  PinnedArray<int> result(1, 0);
  const Stream stream(cudaStreamDefault);
  const Event event;
  set_late<<<1, 1, 0, stream>>>(result.data(), 1);
  CUDA_OK(cudaEventRecord(event, cudaStreamLegacy));
  CUDA_OK(cudaEventSynchronize(event));
  EXPECT_EQ(result[0], 1);
}

// Synchronising and querying the default stream are actions in it too: both wait for the blocking streams.
TEST_F(DefaultStreamTest, SynchronizeAndQueryCoverBlockingStreams) {
  PinnedArray<int> result(1, 0);
  const Stream stream(cudaStreamDefault);
  {
    Gate gate(stream);
    EXPECT_EQ(cudaStreamQuery(cudaStreamLegacy), cudaErrorNotReady);
  }
  set_late<<<1, 1, 0, stream>>>(result.data(), 1);
  CUDA_OK(cudaStreamSynchronize(cudaStreamLegacy));
  EXPECT_EQ(result[0], 1);
  EXPECT_EQ(cudaStreamQuery(cudaStreamLegacy), cudaSuccess);
}

// cudaStreamWaitEvent in the default stream is an action in it: blocking streams wait for it too.
TEST_F(DefaultStreamTest, WaitInItHoldsBackBlockingStreams) {
  PinnedArray<int> x(1, 0), y(1, 0);
  const Stream held, stream(cudaStreamDefault);
  const Event event;
  Gate gate(held);
  set<<<1, 1, 0, held>>>(x.data(), 1);
  order(cudaStreamLegacy, held, event);
  copy_one<<<1, 1, 0, stream>>>(y.data(), x.data());
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
  gate.drain(stream);
  EXPECT_EQ(y[0], 1);
}

// Guide, "Stream and Event Behavior": each device has its own default stream.
TEST_F(DefaultStreamsOfTwoGpusTest, DefaultStreamsOfTwoGpusAreIndependent) {
  PinnedArray<int> result(1, 0);
  Gate gate;
  const Event held;
  gate.close(cudaStreamLegacy);
  CUDA_OK(cudaEventRecord(held));
  CUDA_OK(cudaSetDevice(1));
  set<<<1, 1>>>(result.data(), 1);
  CUDA_OK(cudaDeviceSynchronize());
  EXPECT_EQ(result[0], 1);
  EXPECT_EQ(cudaEventQuery(held), cudaErrorNotReady);
}

}  // namespace
}  // namespace semantics
