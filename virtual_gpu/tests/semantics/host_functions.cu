// Host functions in a stream (API, "Stream Management": cudaLaunchHostFunc).
#include "gpu_test.hpp"

namespace semantics {
namespace {

using HostFunctionsTest = GpuTest;

struct Note {
  const int* from;
  int seen;
  cudaError_t error;
};

void read_value(void* data) {
  auto* note = static_cast<Note*>(data);
  note->seen = *note->from;
}

void call_cuda(void* data) {
  void* memory = nullptr;
  static_cast<Note*>(data)->error = cudaMalloc(&memory, 16);
}

void count_up(void* data) { ++*static_cast<int*>(data); }

TEST_F(HostFunctionsTest, FunctionSeesTheEarlierWorkOfItsStream) {
  PinnedArray<int> host(1, 0);
  const DeviceArray<int> number(1, 0);
  const Stream stream;
  set<<<1, 1, 0, stream>>>(number.data(), 42);
  CUDA_OK(cudaMemcpyAsync(host.data(), number.data(), sizeof(int), cudaMemcpyDeviceToHost, stream));
  Note note{host.data(), -1, cudaSuccess};
  CUDA_OK(cudaLaunchHostFunc(stream, read_value, &note));
  CUDA_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(note.seen, 42);
}

TEST_F(HostFunctionsTest, LaterWorkOfTheStreamWaitsForTheFunction) {
  PinnedArray<int> host(1, 7);
  const DeviceArray<int> number(1, 0);
  const Stream stream;
  Gate gate(stream);
  CUDA_OK(cudaLaunchHostFunc(stream, count_up, host.data()));
  CUDA_OK(cudaMemcpyAsync(number.data(), host.data(), sizeof(int), cudaMemcpyHostToDevice, stream));
  gate.drain(stream);
  EXPECT_EQ(number.value(), 8);
}

TEST_F(HostFunctionsTest, FunctionDoesNotRunWhileItsStreamIsHeldBack) {
  PinnedArray<int> host(1, 0);
  const Stream held, other;
  Gate gate(held);
  CUDA_OK(cudaLaunchHostFunc(held, count_up, host.data()));
  CUDA_OK(cudaStreamSynchronize(other));
  EXPECT_EQ(cudaStreamQuery(held), cudaErrorNotReady);
  gate.drain(held);
  EXPECT_EQ(host[0], 1);
}

TEST_F(HostFunctionsTest, AnEventAfterTheFunctionCoversIt) {
  PinnedArray<int> host(1, 0);
  const DeviceArray<int> number(1, 0);
  const Stream first, second;
  const Event called;
  CUDA_OK(cudaLaunchHostFunc(first, count_up, host.data()));
  order(second, first, called);
  CUDA_OK(cudaMemcpyAsync(number.data(), host.data(), sizeof(int), cudaMemcpyHostToDevice, second));
  CUDA_OK(cudaStreamSynchronize(second));
  EXPECT_EQ(number.value(), 1);
}

TEST_F(HostFunctionsTest, CudaCallsAreNotPermittedInIt) {
  const Stream stream;
  Note note{nullptr, 0, cudaSuccess};
  CUDA_OK(cudaLaunchHostFunc(stream, call_cuda, &note));
  CUDA_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(note.error, cudaErrorNotPermitted);
}

TEST_F(HostFunctionsTest, ANullFunctionIsRefused) {
  const Stream stream;
  EXPECT_CUDA_ERROR(cudaLaunchHostFunc(stream, nullptr, nullptr), cudaErrorInvalidValue);
}

}  // namespace
}  // namespace semantics
