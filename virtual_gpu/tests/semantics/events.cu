// Events: what a record captures, what waits for it, and time. API, "Event Management".
#include <memory>

#include "gpu_test.hpp"

namespace semantics {
namespace {

using EventsTest = GpuTest;
using EventsOfTwoGpusTest = TwoGpusTest;

TEST_F(EventsTest, WaitOrdersTwoStreams) {
  const DeviceArray<int> x(1, 0), y(1, 0);
  const Stream producer, consumer;
  const Event ready(cudaEventDisableTiming);
  Gate gate(producer);
  set<<<1, 1, 0, producer>>>(x.data(), 1);
  order(consumer, producer, ready);
  copy_one<<<1, 1, 0, consumer>>>(y.data(), x.data());
  CUDA_OK(cudaGetLastError());
  EXPECT_EQ(cudaStreamQuery(consumer), cudaErrorNotReady);
  gate.drain(consumer);
  EXPECT_EQ(y.value(), 1);
}

// A chain of waits over four streams: each step needs all earlier ones.
TEST_F(EventsTest, WaitsAreTransitive) {
  const DeviceArray<int> digits(1, 0);
  const Stream streams[4];
  const Event done[4];
  Gate gate(streams[0]);
  for (int i = 0; i < 4; ++i) {
    if (i > 0) require(cudaStreamWaitEvent(streams[i], done[i - 1], 0));
    append<<<1, 1, 0, streams[i]>>>(digits.data(), i + 1);
    CUDA_OK(cudaEventRecord(done[i], streams[i]));
  }
  gate.open();
  CUDA_OK(cudaEventSynchronize(done[3]));
  EXPECT_EQ(digits.value(), 1234);
}

TEST_F(EventsTest, WaitHoldsBackLaterWorkOnly) {
  PinnedArray<int> results(2, 0);
  const Stream held, stream;
  const Event never_soon, before_the_wait;
  Gate gate(held);
  CUDA_OK(cudaEventRecord(never_soon, held));
  set<<<1, 1, 0, stream>>>(&results[0], 1);
  CUDA_OK(cudaEventRecord(before_the_wait, stream));
  CUDA_OK(cudaStreamWaitEvent(stream, never_soon, 0));
  set<<<1, 1, 0, stream>>>(&results[1], 2);
  CUDA_OK(cudaEventSynchronize(before_the_wait));
  EXPECT_EQ(results[0], 1);
  EXPECT_EQ(*static_cast<volatile int*>(&results[1]), 0);
  gate.drain(stream);
  EXPECT_EQ(results[1], 2);
}

// API, cudaEventRecord: waits use the captured state at the time of their call, "and are not affected by
// later calls to cudaEventRecord()".
TEST_F(EventsTest, WaitBeforeReRecordWaitsForTheOldRecord) {
  PinnedArray<int> result(1, 0);
  const Stream first, second, waiting;
  const Event event;
  Gate gate;
  order(waiting, first, event);
  gate.close(second);
  CUDA_OK(cudaEventRecord(event, second));
  set<<<1, 1, 0, waiting>>>(result.data(), 1);
  CUDA_OK(cudaStreamSynchronize(waiting));
  EXPECT_EQ(result[0], 1);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady) << "the event now stands for the second record";
}

TEST_F(EventsTest, WaitAfterReRecordWaitsForTheNewRecord) {
  const DeviceArray<int> x(1, 0), y(1, 0);
  const Stream first, second, waiting;
  const Event event;
  Gate gate;
  CUDA_OK(cudaEventRecord(event, first));
  gate.close(second);
  set<<<1, 1, 0, second>>>(x.data(), 1);
  order(waiting, second, event);
  copy_one<<<1, 1, 0, waiting>>>(y.data(), x.data());
  EXPECT_EQ(cudaStreamQuery(waiting), cudaErrorNotReady);
  gate.drain(waiting);
  EXPECT_EQ(y.value(), 1);
}

// API, cudaEventRecord: "Before the first call to cudaEventRecord(), an event represents an empty set of
// work".
TEST_F(EventsTest, EventThatWasNeverRecordedIsComplete) {
  PinnedArray<int> result(1, 0);
  const Stream stream, held;
  const Event event;
  Gate gate(held);
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
  CUDA_OK(cudaEventSynchronize(event));
  CUDA_OK(cudaStreamWaitEvent(stream, event, 0));
  // A record after the wait does not affect the wait.
  CUDA_OK(cudaEventRecord(event, held));
  set<<<1, 1, 0, stream>>>(result.data(), 1);
  CUDA_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(result[0], 1);
}

TEST_F(EventsTest, RecordCapturesEarlierWorkOnly) {
  PinnedArray<int> result(1, 0);
  const Stream stream;
  const Event event;
  Gate gate;
  set_late<<<1, 1, 0, stream>>>(result.data(), 1);
  CUDA_OK(cudaEventRecord(event, stream));
  gate.close(stream);
  CUDA_OK(cudaEventSynchronize(event));
  EXPECT_EQ(result[0], 1);
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
}

TEST_F(EventsTest, QueryTellsWhetherTheRecordIsComplete) {
  const Stream stream;
  const Event event;
  Gate gate(stream);
  CUDA_OK(cudaEventRecord(event, stream));
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  gate.open();
  CUDA_OK(cudaEventSynchronize(event));
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
}

// API, cudaEventDestroy: an event may be destroyed before it is complete.
TEST_F(EventsTest, WaitOutlivesItsEvent) {
  const DeviceArray<int> x(1, 0), y(1, 0);
  const Stream producer, consumer;
  Gate gate;
  auto event = std::make_unique<Event>();
  gate.close(producer);
  set<<<1, 1, 0, producer>>>(x.data(), 1);
  order(consumer, producer, *event);
  event.reset();
  copy_one<<<1, 1, 0, consumer>>>(y.data(), x.data());
  EXPECT_EQ(cudaStreamQuery(consumer), cudaErrorNotReady);
  gate.drain(consumer);
  EXPECT_EQ(y.value(), 1);
}

TEST_F(EventsTest, ElapsedTimeFollowsTheOrderOfRecords) {
  const DeviceArray<int> x(1, 0);
  const Stream stream;
  const Event start, middle, stop;
  CUDA_OK(cudaEventRecord(start, stream));
  set_late<<<1, 1, 0, stream>>>(x.data(), 1);
  CUDA_OK(cudaEventRecord(middle, stream));
  set_late<<<1, 1, 0, stream>>>(x.data(), 2);
  CUDA_OK(cudaEventRecord(stop, stream));
  CUDA_OK(cudaEventSynchronize(stop));
  float first = -1, both = -1, backwards = 1, none = -1;
  CUDA_OK(cudaEventElapsedTime(&first, start, middle));
  CUDA_OK(cudaEventElapsedTime(&both, start, stop));
  CUDA_OK(cudaEventElapsedTime(&backwards, stop, start));
  CUDA_OK(cudaEventElapsedTime(&none, start, start));
  EXPECT_GT(first, 0);
  EXPECT_GT(both, first);
  EXPECT_LT(backwards, 0);
  EXPECT_EQ(none, 0);
}

TEST_F(EventsTest, ElapsedTimeOfAPendingEventIsNotReady) {
  const Stream stream;
  const Event start, stop;
  Gate gate;
  CUDA_OK(cudaEventRecord(start, stream));
  gate.close(stream);
  CUDA_OK(cudaEventRecord(stop, stream));
  float milliseconds = 0;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, stop), cudaErrorNotReady);
}

TEST_F(EventsTest, ElapsedTimeNeedsTwoRecordsWithTiming) {
  const Stream stream;
  const Event recorded, never_recorded, without_timing(cudaEventDisableTiming);
  CUDA_OK(cudaEventRecord(recorded, stream));
  CUDA_OK(cudaEventRecord(without_timing, stream));
  CUDA_OK(cudaStreamSynchronize(stream));
  float milliseconds = 0;
  EXPECT_CUDA_ERROR(cudaEventElapsedTime(&milliseconds, recorded, never_recorded),
                    cudaErrorInvalidResourceHandle);
  EXPECT_CUDA_ERROR(cudaEventElapsedTime(&milliseconds, never_recorded, recorded),
                    cudaErrorInvalidResourceHandle);
  EXPECT_CUDA_ERROR(cudaEventElapsedTime(&milliseconds, recorded, without_timing),
                    cudaErrorInvalidResourceHandle);
}

// Guide, "Stream and Event Behavior" (multi-device): waits work across devices; records and elapsed times do
// not.
TEST_F(EventsOfTwoGpusTest, WaitOrdersStreamsOfTwoGpus) {
  PinnedArray<int> x(1, 0), y(1, 0);
  const Stream producer;
  const Event ready;
  Gate gate;
  const auto consumer = made_on(1, [] { return Stream(); });
  gate.close(producer);
  set<<<1, 1, 0, producer>>>(x.data(), 1);
  CUDA_OK(cudaEventRecord(ready, producer));
  CUDA_OK(cudaSetDevice(1));
  CUDA_OK(cudaStreamWaitEvent(consumer, ready, 0));
  copy_one<<<1, 1, 0, consumer>>>(y.data(), x.data());
  EXPECT_EQ(cudaStreamQuery(consumer), cudaErrorNotReady);
  gate.open();
  // Synchronising and querying another device's event is allowed too.
  CUDA_OK(cudaEventSynchronize(ready));
  EXPECT_EQ(cudaEventQuery(ready), cudaSuccess);
  CUDA_OK(cudaStreamSynchronize(consumer));
  EXPECT_EQ(y[0], 1);
}

TEST_F(EventsOfTwoGpusTest, RecordInAStreamOfAnotherGpuFails) {
  const Event event;
  CUDA_OK(cudaSetDevice(1));
  const Stream stream;
  EXPECT_CUDA_ERROR(cudaEventRecord(event, stream), cudaErrorInvalidResourceHandle);
}

TEST_F(EventsOfTwoGpusTest, ElapsedTimeBetweenTwoGpusFails) {
  const Stream stream;
  const Event here;
  CUDA_OK(cudaEventRecord(here, stream));
  CUDA_OK(cudaEventSynchronize(here));
  CUDA_OK(cudaSetDevice(1));
  const Stream other_stream;
  const Event there;
  CUDA_OK(cudaEventRecord(there, other_stream));
  CUDA_OK(cudaEventSynchronize(there));
  float milliseconds = 0;
  EXPECT_CUDA_ERROR(cudaEventElapsedTime(&milliseconds, here, there), cudaErrorInvalidResourceHandle);
}

}  // namespace
}  // namespace semantics
