// Wrong calls: undefined on real GPUs, or only an error code; here an error with a message.
#include <vector>

#include "virtual_test.hpp"

namespace virtual_only {
namespace {

using MisuseTest = VirtualTest;

TEST_F(MisuseTest, DestroyedStream) {
  const cudaStream_t stream = new_stream();
  require(cudaStreamDestroy(stream));
  expect_failure(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle,
                 {"cudaStreamSynchronize: this stream"});
  expect_failure(cudaStreamDestroy(stream), cudaErrorInvalidResourceHandle, {"does not exist"});
  int* memory = device_words(1, 3);
  set<<<1, 1, 0, stream>>>(memory, 4);
  expect_failure(cudaGetLastError(), cudaErrorInvalidResourceHandle, {"kernel launch: this stream"});
  EXPECT_EQ(word(memory), 3);
}

TEST_F(MisuseTest, DestroyedStreamWithWork) {
  int* flag = pinned_word();
  const cudaStream_t stream = new_stream();
  await<<<1, 1, 0, stream>>>(flag);
  require(cudaStreamDestroy(stream));
  expect_failure(cudaStreamQuery(stream), cudaErrorInvalidResourceHandle, {"does not exist"});
  *flag = 1;
  CUDA_OK(cudaDeviceSynchronize());
}

TEST_F(MisuseTest, DestroyedEvent) {
  const cudaEvent_t event = new_event();
  require(cudaEventDestroy(event));
  for (const auto call : {cudaEventDestroy, cudaEventSynchronize, cudaEventQuery}) {
    expect_failure(call(event), cudaErrorInvalidResourceHandle, {"this event does not exist"});
  }
  EXPECT_EQ(cudaEventRecord(event, nullptr), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamWaitEvent(nullptr, event, 0), cudaErrorInvalidResourceHandle);
}

TEST_F(MisuseTest, DefaultStreamCannotBeDestroyed) {
  expect_failure(cudaStreamDestroy(nullptr), cudaErrorInvalidResourceHandle, {"default stream"});
}

// CUDA 12 and the Guide reject it; CUDA 13 runs it on the stream's device.
TEST_F(MisuseTest, LaunchInAStreamOfAnotherGpu) {
  int* memory = device_words(1, 3);
  const cudaStream_t stream = new_stream();
  require(cudaSetDevice(1));
  set<<<1, 1, 0, stream>>>(memory, 4);
  expect_failure(cudaGetLastError(), cudaErrorInvalidResourceHandle, {"set", "GPU 1", "gpu0/stream1"});
  EXPECT_EQ(word(memory), 3);
}

TEST_F(MisuseTest, LaunchWithoutConfiguration) {
  int* memory = device_words(1, 3);
  set(memory, 4);
  expect_failure(cudaGetLastError(), cudaErrorInvalidConfiguration, {"set", "without <<<grid, block>>>"});
  EXPECT_EQ(word(memory), 3);
}

TEST_F(MisuseTest, LimitsOfALaunchAreNamed) {
  int* memory = device_words(1, 3);
  const auto refused = [](cudaError_t code, std::initializer_list<const char*> parts) {
    expect_failure(cudaGetLastError(), code, parts);
  };
  set<<<dim3(3, 0), 1>>>(memory, 4);
  refused(cudaErrorInvalidConfiguration, {"set", "grid (3,0,1)"});
  set<<<1, dim3(32, 33)>>>(memory, 4);
  refused(cudaErrorInvalidConfiguration, {"block (32,33,1)", "1024"});
  set<<<1, 1, 49153>>>(memory, 4);
  refused(cudaErrorInvalidValue, {"49153 bytes of dynamic shared memory", "49152", "cudaFuncSetAttribute"});
}

TEST_F(MisuseTest, DoubleFreeAndForeignPointers) {
  int* memory = device_words(100, 0);
  expect_failure(cudaFree(memory + 1), cudaErrorInvalidValue, {"inside a cudaMalloc of 400 bytes on GPU 0"});
  require(cudaFree(memory));
  expect_failure(cudaFree(memory), cudaErrorInvalidValue, {"has been freed", "inside freed memory"});
  int local = 0;
  expect_failure(cudaFree(&local), cudaErrorInvalidValue, {"does not come from cudaMalloc", "in no memory"});
  expect_failure(cudaFreeHost(&local), cudaErrorInvalidValue, {"does not come from cudaMallocHost"});
  int* pinned = pinned_room(16);
  expect_failure(cudaFree(pinned), cudaErrorInvalidValue, {"pinned host memory of 64 bytes"});
  require(cudaFreeHost(pinned));
  expect_failure(cudaFreeHost(pinned), cudaErrorInvalidValue, {"inside freed memory, pinned host memory"});
}

// Another GPU's copy is pending: cudaFree waits for the owner's work only.
TEST_F(MisuseTest, FreeUnderAPendingCopyOfAnotherGpu) {
  int* flag = pinned_word();
  int* source = device_words(1, 5);
  require(cudaSetDevice(1));
  int* destination = device_words(1, 0);
  const cudaStream_t stream = new_stream();
  await<<<1, 1, 0, stream>>>(flag);
  require(cudaMemcpyPeerAsync(destination, 1, source, 0, sizeof(int), stream));
  expect_failure(cudaFree(source), cudaErrorIllegalAddress,
                 {"freed under a pending operation", "copy of 4 bytes from GPU 0 to GPU 1", "gpu1/stream1"});
  *flag = 1;
  require(cudaStreamSynchronize(stream));
  CUDA_OK(cudaFree(source));
  EXPECT_EQ(word(destination), 5);
}

TEST_F(MisuseTest, CopiesOutOfRange) {
  int* memory = device_words(10, 0);
  std::vector<int> host(100, 0);
  expect_failure(cudaMemcpy(memory, host.data(), 44, cudaMemcpyHostToDevice), cudaErrorInvalidValue,
                 {"44 bytes", "room for 40", "cudaMalloc of 40 bytes"});
  expect_failure(cudaMemcpy(host.data(), memory + 5, 24, cudaMemcpyDeviceToHost), cudaErrorInvalidValue,
                 {"24 bytes", "room for 20"});
  expect_failure(cudaMemset(memory + 9, 0, 8), cudaErrorInvalidValue, {"8 bytes", "room for 4"});
  // Two rows of 20 bytes with a pitch of 24 take 44 bytes.
  expect_failure(cudaMemcpy2D(memory, 24, host.data(), 20, 20, 2, cudaMemcpyHostToDevice),
                 cudaErrorInvalidValue, {"44 bytes", "room for 40"});
  CUDA_OK(cudaMemcpy2D(memory, 20, host.data(), 24, 20, 2, cudaMemcpyHostToDevice));
}

TEST_F(MisuseTest, CopiesFromAndToMemoryThatIsGone) {
  int* memory = device_words(1024, 0);
  int* other = device_words(1, 0);
  int host = 0;
  const auto behind = cudaMemcpy(&host, memory + 1024, sizeof(int), cudaMemcpyDefault);
  expect_failure(behind, cudaErrorInvalidValue, {"0 bytes behind a cudaMalloc of 4096 bytes"});
  require(cudaFree(memory));
  expect_failure(cudaMemcpy(other, memory, sizeof(int), cudaMemcpyDefault), cudaErrorInvalidValue,
                 {"inside freed memory"});
  expect_failure(cudaMemcpyAsync(memory, other, sizeof(int), cudaMemcpyDeviceToDevice, nullptr),
                 cudaErrorInvalidValue, {"inside freed memory"});
  expect_failure(cudaMemset(memory, 0, sizeof(int)), cudaErrorInvalidValue, {"inside freed memory"});
}

// Undefined in CUDA ("pointers that do not match the direction of the copy").
TEST_F(MisuseTest, KindsThatDoNotFit) {
  int* memory = device_words(1, 3);
  int host = 5;
  for (const auto kind : {cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice, cudaMemcpyHostToHost}) {
    expect_failure(cudaMemcpy(memory, &host, sizeof(int), kind), cudaErrorInvalidValue, {"kind of the copy"});
  }
  EXPECT_EQ(word(memory), 3);
  expect_failure(cudaMemcpy(&host, memory, sizeof(int), cudaMemcpyHostToDevice), cudaErrorInvalidValue,
                 {"kind"});
  expect_failure(cudaMemcpy(memory, nullptr, 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue, {"null"});
}

TEST_F(MisuseTest, PeerCopyWithTheWrongDevices) {
  int* memory = device_words(1, 3);
  require(cudaSetDevice(1));
  int* there = device_words(1, 3);
  expect_failure(cudaMemcpyPeer(there, 1, memory, 2, 4), cudaErrorInvalidValue, {"GPU 2", "on GPU 0"});
  expect_failure(cudaMemsetAsync(memory, 0, 4, new_stream()), cudaErrorInvalidValue,
                 {"GPU 1", "no access", "GPU 0"});
}

TEST_F(MisuseTest, MemoryOfTheMachineIsLimited) {
  void* pointer = nullptr;
  expect_failure(cudaMalloc(&pointer, (std::size_t{1} << 30) + 1), cudaErrorMemoryAllocation,
                 {"1073741825 bytes requested", "1073741824 of 1073741824 bytes free on GPU 0"});
  require(cudaMalloc(&pointer, 1000));
  std::size_t free = 0, total = 0;
  require(cudaMemGetInfo(&free, &total));
  EXPECT_EQ(total - free, 1000u);
  EXPECT_EQ(cudaMalloc(&pointer, std::size_t{1} << 30), cudaErrorMemoryAllocation);
  require(cudaSetDevice(1));
  CUDA_OK(cudaMalloc(&pointer, std::size_t{1} << 20));
}

TEST_F(MisuseTest, MoreMemoryThanTheHostHasIsRefused) {
  for (const std::size_t bytes : {~std::size_t{0}, ~std::size_t{0} / 2, std::size_t{1} << 46}) {
    void* memory = &memory;
    expect_failure(cudaMallocHost(&memory, bytes), cudaErrorMemoryAllocation,
                   {"cudaMallocHost", "cannot pin"});
    expect_failure(cudaMalloc(&memory, bytes), cudaErrorMemoryAllocation,
                   {"cudaMalloc", "bytes free on GPU 0"});
  }
}

TEST_F(MisuseTest, RowsBeyondAllAddressesAreRefused) {
  int* memory = device_words(4, 0);
  std::vector<int> host(4);
  expect_failure(cudaMemcpy2D(memory, std::size_t{1} << 40, host.data(), 16, 16, (std::size_t{1} << 24) + 1,
                              cudaMemcpyHostToDevice),
                 cudaErrorInvalidValue, {"cudaMemcpy2D", "more bytes than there are addresses"});
}

TEST_F(MisuseTest, UnsupportedFlagsAreNamed) {
  cudaStream_t stream = nullptr;
  expect_failure(cudaStreamCreateWithFlags(&stream, 8), cudaErrorInvalidValue,
                 {"cudaStreamCreateWithFlags", "cudaStreamNonBlocking"});
  cudaEvent_t event = nullptr;
  expect_failure(cudaEventCreateWithFlags(&event, 4), cudaErrorInvalidValue,
                 {"cudaEventCreateWithFlags", "BlockingSync and DisableTiming"});
  void* memory = nullptr;
  expect_failure(cudaHostAlloc(&memory, 4, 8), cudaErrorInvalidValue,
                 {"cudaHostAlloc", "Mapped and WriteCombined"});
  int words[64];
  expect_failure(cudaHostRegister(words, sizeof(words), 8), cudaErrorInvalidValue,
                 {"cudaHostRegister", "Portable"});
  expect_failure(cudaStreamWaitEvent(nullptr, new_event(), 1), cudaErrorInvalidValue,
                 {"cudaEventWaitDefault"});
  expect_failure(cudaFuncSetAttribute(set<int>, static_cast<cudaFuncAttribute>(10), 1), cudaErrorInvalidValue,
                 {"attribute 10 is not supported"});
  int value = 0;
  expect_failure(cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(21), 0), cudaErrorInvalidValue,
                 {"attribute 21", "not known"});
}

/// The upper half of the warp exits; the lower half continues with masks of all lanes.
__global__ void masks_with_ended_lanes(unsigned int* out) {
  if (threadIdx.x >= 16) return;
  __syncwarp();
  const unsigned int ballot = __ballot_sync(0xffffffffu, 1);
  out[threadIdx.x] = __shfl_sync(0xffffffffu, ballot, 3);
  out[16 + threadIdx.x] = __shfl_sync(0xffffffffu, ballot, 20);
}

// Undefined in CUDA. Here no lane waits for an exited lane, whose value is all ones.
TEST_F(MisuseTest, WarpFunctionsWithLanesThatHaveEnded) {
  unsigned int* out = device_words(32, 0u);
  masks_with_ended_lanes<<<1, 32>>>(out);
  CUDA_OK(cudaDeviceSynchronize());
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(word(out + i), 0xffffu);
    EXPECT_EQ(word(out + 16 + i), 0xffffffffu);
  }
}

// CUDA leaves open whether these calls wait; here they never do, and read the source at once.
TEST_F(MisuseTest, PageableSourceIsStagedAtTheCall) {
  int* flag = pinned_word();
  int* memory = device_words(1, 0);
  const cudaStream_t stream = new_stream();
  int source = 1;
  await<<<1, 1, 0, stream>>>(flag);
  require(cudaMemcpyAsync(memory, &source, sizeof(int), cudaMemcpyHostToDevice, stream));
  source = 2;
  *flag = 1;
  require(cudaStreamSynchronize(stream));
  EXPECT_EQ(word(memory), 1);
}

TEST_F(MisuseTest, CopyToPageableMemoryWaitsUntilItIsDone) {
  int* memory = device_words(1, 0);
  const cudaStream_t stream = new_stream();
  set<<<1, 1, 0, stream>>>(memory, 1);
  int result = 0;
  require(cudaMemcpyAsync(&result, memory, sizeof(int), cudaMemcpyDeviceToHost, stream));
  EXPECT_EQ(result, 1);
}

}  // namespace
}  // namespace virtual_only
