// Calls that are prohibited during a capture. Guide, "Prohibited and Unhandled Operations"; API, "Stream
// Management".
#include <memory>

#include "capture_test.hpp"

namespace semantics {
namespace {

constexpr auto kRelaxed = cudaStreamCaptureModeRelaxed;

/// A stream in capture mode, until `expect_invalid()` ends the capture.
class ForbiddenTest : public GpuTest {
 protected:
  void begin(cudaStreamCaptureMode mode = kRelaxed) { require(cudaStreamBeginCapture(stream(), mode)); }
  void expect_invalid() {
    EXPECT_EQ(status(stream()), cudaStreamCaptureStatusInvalidated);
    expect_no_graph(stream(), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(status(stream()), cudaStreamCaptureStatusNone);
    EXPECT_EQ(cudaStreamSynchronize(stream()), cudaSuccess) << "the stream is of use again";
  }
  void expect_valid() {
    EXPECT_EQ(status(stream()), cudaStreamCaptureStatusActive);
    cudaGraph_t graph = nullptr;
    CUDA_OK(cudaStreamEndCapture(stream(), &graph));
    CUDA_OK(cudaGraphDestroy(graph));
  }
  /// For calls after which CUDA does not say whether the capture is still valid.
  void end_anyhow() {
    cudaGraph_t graph = nullptr;
    if (cudaStreamEndCapture(stream(), &graph) == cudaSuccess) require(cudaGraphDestroy(graph));
    cudaGetLastError();
  }
  cudaStream_t stream() {
    if (!stream_) stream_ = std::make_unique<Stream>();
    return *stream_;
  }

 private:
  std::unique_ptr<Stream> stream_;  // created when the test knows that there is a GPU
};

TEST_F(ForbiddenTest, SynchronizingTheStream) {
  begin();
  EXPECT_CUDA_ERROR(cudaStreamSynchronize(stream()), cudaErrorStreamCaptureUnsupported);
  expect_invalid();
}

TEST_F(ForbiddenTest, AskingTheStream) {
  begin();
  EXPECT_CUDA_ERROR(cudaStreamQuery(stream()), cudaErrorStreamCaptureUnsupported);
  expect_invalid();
}

TEST_F(ForbiddenTest, SynchronizingTheDevice) {
  begin();
  EXPECT_CUDA_ERROR(cudaDeviceSynchronize(), cudaErrorStreamCaptureUnsupported);
  expect_invalid();
}

TEST_F(ForbiddenTest, SynchronizingACapturedEvent) {
  const Event event;
  begin();
  CUDA_OK(cudaEventRecord(event, stream()));
  EXPECT_CUDA_ERROR(cudaEventSynchronize(event), cudaErrorCapturedEvent);
  expect_invalid();
  CUDA_OK(cudaEventRecord(event, stream()));  // a record outside the capture makes it an ordinary event again
  CUDA_OK(cudaEventSynchronize(event));
}

TEST_F(ForbiddenTest, CallsOnAnInvalidatedStream) {
  const DeviceArray<int> word(1);
  begin();
  EXPECT_CUDA_ERROR(cudaStreamQuery(stream()), cudaErrorStreamCaptureUnsupported);
  EXPECT_CUDA_ERROR(cudaMemsetAsync(word.data(), 1, word.bytes(), stream()),
                    cudaErrorStreamCaptureInvalidated);
  expect_invalid();
  EXPECT_EQ(word.value(), 0);
}

TEST_F(ForbiddenTest, AllocatingUnlessTheModeIsRelaxed) {
  void* memory = nullptr;
  for (const auto mode : {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal}) {
    begin(mode);
    EXPECT_CUDA_ERROR(cudaMalloc(&memory, 256), cudaErrorStreamCaptureUnsupported);
    expect_invalid();
  }
  begin(kRelaxed);
  CUDA_OK(cudaMalloc(&memory, 256));
  expect_valid();
  CUDA_OK(cudaFree(memory));
}

TEST_F(ForbiddenTest, AThreadMayRelaxItsOwnCalls) {
  cudaStreamCaptureMode mode = kRelaxed;
  begin(cudaStreamCaptureModeGlobal);
  CUDA_OK(cudaThreadExchangeStreamCaptureMode(&mode));
  EXPECT_EQ(mode, cudaStreamCaptureModeGlobal);
  void* memory = nullptr;
  CUDA_OK(cudaMalloc(&memory, 256));
  CUDA_OK(cudaThreadExchangeStreamCaptureMode(&mode));
  EXPECT_EQ(mode, kRelaxed);
  expect_valid();
  CUDA_OK(cudaFree(memory));
}

TEST_F(ForbiddenTest, TheDefaultStreamWhileABlockingStreamCaptures) {
  const DeviceArray<int> word(1);
  const Stream blocking(cudaStreamDefault);
  CUDA_OK(cudaStreamBeginCapture(blocking, kRelaxed));
  cudaStreamCaptureStatus ignored;
  EXPECT_CUDA_ERROR(cudaStreamIsCapturing(nullptr, &ignored), cudaErrorStreamCaptureImplicit);
  EXPECT_EQ(status(blocking), cudaStreamCaptureStatusActive) << "that was a question only";
  EXPECT_CUDA_ERROR(cudaMemsetAsync(word.data(), 1, word.bytes(), nullptr), cudaErrorStreamCaptureImplicit);
  EXPECT_EQ(status(blocking), cudaStreamCaptureStatusInvalidated);
  expect_no_graph(blocking, cudaErrorStreamCaptureInvalidated);
}

TEST_F(ForbiddenTest, NotTheDefaultStreamWhileANonBlockingStreamCaptures) {
  const DeviceArray<int> word(1);
  begin();
  CUDA_OK(cudaMemsetAsync(word.data(), 1, word.bytes(), nullptr));
  expect_valid();
  EXPECT_EQ(word.value(), 0x01010101);
}

TEST_F(ForbiddenTest, CapturingTheDefaultStream) {
  EXPECT_CUDA_ERROR(cudaStreamBeginCapture(nullptr, kRelaxed), cudaErrorStreamCaptureUnsupported);
}

TEST_F(ForbiddenTest, BeginningTwiceAndEndingWithoutABeginning) {
  expect_no_graph(stream(), cudaErrorIllegalState);
  begin();
  EXPECT_CUDA_ERROR(cudaStreamBeginCapture(stream(), kRelaxed), cudaErrorIllegalState);
  end_anyhow();
}

TEST_F(ForbiddenTest, WaitingForWorkOutsideOfTheCapture) {
  const Stream other;
  const Event event;
  CUDA_OK(cudaEventRecord(event, other));
  begin();
  EXPECT_CUDA_ERROR(cudaStreamWaitEvent(stream(), event), cudaErrorStreamCaptureIsolation);
  expect_invalid();
}

TEST_F(ForbiddenTest, MergingTwoCaptures) {
  const Stream other;
  const Event event;
  begin();
  CUDA_OK(cudaStreamBeginCapture(other, kRelaxed));
  CUDA_OK(cudaEventRecord(event, other));
  EXPECT_CUDA_ERROR(cudaStreamWaitEvent(stream(), event), cudaErrorStreamCaptureMerge);
  expect_no_graph(stream(), cudaErrorStreamCaptureInvalidated);
  expect_no_graph(other, cudaErrorStreamCaptureInvalidated);
}

TEST_F(ForbiddenTest, EndingWithUnjoinedWork) {
  const DeviceArray<int> word(1, 1);
  const Stream other;
  const Event fork;
  begin();
  order(other, stream(), fork);
  set<<<1, 1, 0, other>>>(word.data(), 2);
  expect_no_graph(stream(), cudaErrorStreamCaptureUnjoined);
  EXPECT_EQ(status(stream()), cudaStreamCaptureStatusNone);
  EXPECT_EQ(status(other), cudaStreamCaptureStatusNone);
  EXPECT_EQ(word.value(), 1);
}

TEST_F(ForbiddenTest, EndingWithWorkBehindTheJoin) {
  const DeviceArray<int> word(1, 1);
  const Stream other;
  const Event fork, join;
  begin();
  order(other, stream(), fork);
  set<<<1, 1, 0, other>>>(word.data(), 2);
  order(stream(), other, join);
  set<<<1, 1, 0, other>>>(word.data(), 3);
  expect_no_graph(stream(), cudaErrorStreamCaptureUnjoined);
}

TEST_F(ForbiddenTest, EndingInAnotherStream) {
  const Stream other;
  const Event fork;
  begin();
  order(other, stream(), fork);
  expect_no_graph(other, cudaErrorStreamCaptureUnmatched);
  end_anyhow();
}

TEST_F(ForbiddenTest, GraphsThatAreNone) {
  cudaGraphExec_t executable = nullptr;
  EXPECT_CUDA_ERROR(cudaGraphInstantiate(&executable, nullptr, 0), cudaErrorInvalidValue);
  EXPECT_CUDA_ERROR(cudaGraphLaunch(nullptr, stream()), cudaErrorInvalidValue);
}

}  // namespace
}  // namespace semantics
