// Faults of kernels: CUDA's sticky code, and a message that names kernel, block, thread and memory.
#include <cuda_pipeline.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "virtual_test.hpp"

namespace virtual_only {
namespace {

using FaultsTest = VirtualTest;

/// Thread (x, 1, 0) of block (b, 0, 0) writes one word at an offset.
__global__ void write_at(int* memory, long long offset, unsigned int block, unsigned int x) {
  if (blockIdx.x == block && threadIdx.x == x && threadIdx.y == 1) memory[offset] = 1;
}

struct Wild {
  long long offset;  // in ints, from the start of 4,096 bytes
  const char* where;
};
class WildAddressTest : public VirtualTest, public testing::WithParamInterface<Wild> {};

TEST_P(WildAddressTest, IsReportedWithItsPlace) {
  int* memory = device_words(1024, 0);
  write_at<<<3, dim3(4, 2)>>>(memory, GetParam().offset, 1, 3);
  expect_failure(cudaDeviceSynchronize(), cudaErrorIllegalAddress,
                 {"cudaDeviceSynchronize: kernel 'virtual_only::", "write_at", "block (1,0,0)",
                  "thread (3,1,0) accessed memory that is not allocated at faults.cu:", GetParam().where});
}
INSTANTIATE_TEST_SUITE_P(Offsets, WildAddressTest,
                         testing::Values(Wild{1024, " 0 bytes behind a cudaMalloc of 4096 bytes on GPU 0"},
                                         Wild{1034, " 40 bytes behind a cudaMalloc of 4096 bytes on GPU 0"},
                                         Wild{17000, "bytes behind a cudaMalloc of 4096 bytes on GPU 0"},
                                         Wild{-1, "4 bytes before a cudaMalloc of 4096 bytes on GPU 0"},
                                         Wild{-4000, "bytes before a cudaMalloc of 4096 bytes on GPU 0"}));

TEST_F(FaultsTest, NullPointer) {
  set<int><<<1, 1>>>(nullptr, 1);
  expect_failure(cudaDeviceSynchronize(), cudaErrorIllegalAddress, {"set", "thread (0,0,0)", "in no memory"});
}

/// The runtime performs the copy while the thread waits for it.
__global__ void copy_from(const int* from) {
  __shared__ int word;
  __pipeline_memcpy_async(&word, from, sizeof(int));
  __pipeline_commit();
  __pipeline_wait_prior(0);
}
TEST_F(FaultsTest, FaultOfTheRuntimeSaysSo) {
  copy_from<<<1, 1>>>(device_words(1024, 0) + 1024);
  expect_failure(cudaDeviceSynchronize(), cudaErrorIllegalAddress,
                 {"copy_from",
                  "thread (0,0,0) accessed memory that is not allocated in a function of the runtime that it "
                  "called: 0 bytes behind a cudaMalloc of 4096 bytes"});
}

TEST_F(FaultsTest, UseAfterFree) {
  require(cudaSetDevice(2));
  int* memory = device_words(100, 0);
  require(cudaFree(memory));
  set<<<1, 1>>>(memory + 5, 1);
  expect_failure(cudaDeviceSynchronize(), cudaErrorIllegalAddress,
                 {"set", "inside freed memory, a cudaMalloc of 400 bytes on GPU 2"});
}

// cudaFree waits for the owner's work only, so a pending kernel of another GPU then uses freed memory.
TEST_F(FaultsTest, UseAfterFreeByAnotherGpu) {
  int* flag = pinned_word();
  int* memory = device_words(1, 0);
  require(cudaSetDevice(1));
  require(cudaDeviceEnablePeerAccess(0, 0));
  const cudaStream_t late = new_stream();
  await<<<1, 1, 0, late>>>(flag);
  set<<<1, 1, 0, late>>>(memory, 1);
  require(cudaFree(memory));
  *flag = 1;
  expect_failure(cudaStreamSynchronize(late), cudaErrorIllegalAddress, {"set", "inside freed memory"});
}

TEST_F(FaultsTest, ItSticks) {
  int* memory = device_words(1, 7);
  set<int><<<1, 1>>>(nullptr, 1);
  int value = 0;
  EXPECT_EQ(cudaMemcpy(&value, memory, sizeof(int), cudaMemcpyDeviceToHost), cudaErrorIllegalAddress);
  // The message stays that of the call that met the fault.
  expect_failure(cudaSetDevice(1), cudaErrorIllegalAddress, {"cudaMemcpy: kernel", "set"});
  int device = -1;
  EXPECT_EQ(cudaGetDevice(&device), cudaSuccess) << "error messages name the device";
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  EXPECT_FALSE(vgpu::failure_reported()) << "that is for deadlocks";
  vgpu::reset();
  EXPECT_EQ(word(device_words(1, 4)), 4) << "reset() cures it";
}

// The host polls instead of waiting: it must see the fault too.
TEST_F(FaultsTest, QueriesReportIt) {
  const cudaStream_t stream = new_stream();
  set<int><<<4, 8, 0, stream>>>(nullptr, 1);
  cudaError_t state = cudaErrorNotReady;
  for (int i = 0; i < 100000 && state == cudaErrorNotReady; ++i) state = cudaStreamQuery(stream);
  EXPECT_EQ(state, cudaErrorIllegalAddress);
}

/// The other threads of the block are suspended at a barrier when one thread faults.
__global__ void fault_beside_a_barrier(int* memory) {
  if (threadIdx.x == 40) memory = nullptr;
  if (threadIdx.x != 40) __syncthreads();
  *memory = 1;
}

TEST_F(FaultsTest, BesideABarrierAndManyTimes) {
  for (int i = 0; i < 20; ++i) {
    vgpu::reset();
    fault_beside_a_barrier<<<2, 64>>>(device_words(1, 0));
    expect_failure(cudaDeviceSynchronize(), cudaErrorIllegalAddress, {"thread (40,0,0)"});
  }
}

__global__ void trap_if(unsigned int condition) {
  if (threadIdx.x == condition) __trap();
}

TEST_F(FaultsTest, Trap) {
  trap_if<<<2, 64>>>(100u);
  CUDA_OK(cudaDeviceSynchronize());
  trap_if<<<2, 64>>>(5u);
  expect_failure(cudaDeviceSynchronize(), cudaErrorLaunchFailure, {"trap_if", "called __trap()"});
}

__device__ int recursion(int depth, volatile int* sink) {
  volatile int locals[64];
  for (int i = 0; i < 64; ++i) locals[i] = depth + i;
  *sink = locals[7];
  if (depth == 0) return locals[3];
  return recursion(depth - 1, sink) + locals[5];
}
__global__ void recurse(int depth, volatile int* out) { *out = recursion(depth, out); }

TEST_F(FaultsTest, RecursionThatFits) {
  int* out = device_words(1, 0);
  recurse<<<1, 1>>>(100, out);
  EXPECT_EQ(word(out), 3 + 100 * 101 / 2 + 100 * 5);
}

TEST_F(FaultsTest, StackOverflow) {
  recurse<<<2, 3>>>(1000000, device_words(1, 0));
  expect_failure(cudaDeviceSynchronize(), cudaErrorIllegalAddress,
                 {"recurse", "block (0,0,0)", "thread (0,0,0)", "stack"});
}

/// Writes the low end of a frame that is larger than stack and guard pages together.
__global__ void use_large_frame(int* out, int at) {
  volatile int locals[256 * 1024 / sizeof(int)];
  locals[at] = 1;
  *out = locals[at];
}
__global__ void use_large_dynamic_frame(int* out, std::size_t bytes) {
  auto* locals = static_cast<volatile int*>(__builtin_alloca(bytes));
  locals[0] = 1;
  *out = locals[0];
}

TEST_F(FaultsTest, FrameThatStepsOverTheGuard) {
  use_large_frame<<<1, 1>>>(device_words(1, 0), 0);
  expect_failure(cudaDeviceSynchronize(), cudaErrorIllegalAddress,
                 {"use_large_frame", "has used up its stack", "local arrays are too large"});
  vgpu::reset();
  use_large_dynamic_frame<<<1, 1>>>(device_words(1, 0), std::size_t{300} * 1024);
  expect_failure(cudaDeviceSynchronize(), cudaErrorIllegalAddress,
                 {"use_large_dynamic_frame", "has used up its stack"});
}

/// More waiting threads than a small address space has stacks for. Exits with 0 if that is reported.
void run_out_of_stacks() {
  int* flag = device_words(1, 0);
  leave_address_space(kFewStacks);
  await<<<16, 1024>>>(flag);
  expect_failure(cudaDeviceSynchronize(), cudaErrorLaunchOutOfResources,
                 {"await", "no memory for their stacks"});
  _exit(testing::Test::HasFailure() ? 1 : 0);
}

TEST_F(FaultsTest, NoMemoryForStacks) { EXPECT_EXIT(run_out_of_stacks(), testing::ExitedWithCode(0), ""); }

template <class T, int kCount>
__global__ void static_shared(T* out) {
  __shared__ T words[kCount];
  words[threadIdx.x] = 1;
  *out = words[threadIdx.x];
}

TEST_F(FaultsTest, TooMuchStaticSharedMemory) {
  int* out = device_words(1, 0);
  static_shared<int, 48 * 256><<<1, 1>>>(out);
  CUDA_OK(cudaDeviceSynchronize());
  static_shared<int, 48 * 256 + 1><<<1, 1>>>(out);
  expect_failure(cudaDeviceSynchronize(), cudaErrorLaunchFailure,
                 {"static_shared", "49156 bytes of shared memory", "49152"});
}

TEST_F(FaultsTest, TooMuchStaticAndDynamicSharedMemoryTogether) {
  static_shared<int, 24 * 256><<<1, 1, 24 * 1024 + 4>>>(device_words(1, 0));
  expect_failure(cudaDeviceSynchronize(), cudaErrorLaunchFailure, {"49156 bytes of shared memory", "49152"});
}

__global__ void write_shared(int index, unsigned int block) {
  __shared__ volatile int words[32];
  words[0] = 1;
  if (blockIdx.x == block) words[index] = 1;
}
__global__ void write_dynamic_shared(int index) {
  extern __shared__ int dynamic_words[];
  volatile int* words = dynamic_words;
  words[index] = 1;
}

/// Of 32 words: the index that is written, and the message.
struct Overrun {
  int index;
  const char* sentence;
};
class OverrunTest : public VirtualTest, public testing::WithParamInterface<Overrun> {};
INSTANTIATE_TEST_SUITE_P(
    Words, OverrunTest,
    testing::Values(Overrun{32,
                            "a thread of block (2,0,0) has written 0 bytes behind the last of its shared"},
                    Overrun{300, "a thread of block (2,0,0) has written 1072 bytes behind the last of"},
                    Overrun{5000, ": 19872 bytes behind the shared memory of its block"},
                    Overrun{-1, ": 4 bytes before the shared memory of its block"}));
TEST_P(OverrunTest, OfSharedMemoryNamesTheBlock) {
  write_shared<<<4, 1>>>(31, 2);
  CUDA_OK(cudaDeviceSynchronize());
  write_shared<<<4, 1>>>(GetParam().index, 2);
  expect_failure(cudaDeviceSynchronize(), cudaErrorIllegalAddress, {"write_shared", GetParam().sentence});
  vgpu::reset();
  write_shared<<<1000, 1>>>(31, 2);
  CUDA_OK(cudaDeviceSynchronize());
}

TEST_F(FaultsTest, OverrunOfDynamicSharedMemory) {
  write_dynamic_shared<<<4, 1, 128>>>(31);
  CUDA_OK(cudaDeviceSynchronize());
  write_dynamic_shared<<<4, 1, 128>>>(40);
  expect_failure(cudaDeviceSynchronize(), cudaErrorIllegalAddress,
                 {"block (0,0,0) has written 32 bytes behind its dynamic shared memory"});
}

__global__ void divide(int* out, int divisor) { *out = 7 / divisor; }
__global__ void run_into_a_trap(unsigned int thread) {
  if (threadIdx.x == thread) __builtin_trap();
}

TEST_F(FaultsTest, InstructionsThatTheProcessorRefuses) {
  divide<<<1, 1>>>(device_words(1, 0), 0);
  expect_failure(cudaDeviceSynchronize(), cudaErrorLaunchFailure,
                 {"divide", "thread (0,0,0) divided an integer by zero"});
  vgpu::reset();
  run_into_a_trap<<<1, 8>>>(5u);
  expect_failure(cudaDeviceSynchronize(), cudaErrorLaunchFailure, {"thread (5,0,0)", "__builtin_trap()"});
}

/// The signal is not a fault of the running kernel.
__global__ void get_signal(int* out) { *out = raise(SIGSEGV); }
__global__ void nap_for_ever(int* naps) {
  for (;;) {
    atomicAdd(naps, 1);
    __nanosleep(100);
  }
}
int* volatile nowhere = nullptr;  // hides the value from the compiler
void write_to_null() { *nowhere = 1; }
void signal_to_a_kernel() {
  get_signal<<<1, 1>>>(device_words(1, 0));
  (void)cudaDeviceSynchronize();
}
void fault_beside_a_handler(void (*fault)()) {
  std::signal(SIGSEGV, [](int) { _exit(9); });
  set<int><<<1, 1>>>(nullptr, 1);
  if (cudaDeviceSynchronize() != cudaErrorIllegalAddress) _exit(1);
  vgpu::reset();
  fault();
  _exit(2);
}

TEST_F(FaultsTest, HandlerThatTheProgramHadBeforeGetsTheHostsFaults) {
  EXPECT_EXIT(fault_beside_a_handler(write_to_null), testing::ExitedWithCode(9), "^$");
  EXPECT_EXIT(fault_beside_a_handler(signal_to_a_kernel), testing::ExitedWithCode(9), "^$");
  EXPECT_EXIT(write_to_null(), testing::KilledBySignal(SIGSEGV), "^$");
  EXPECT_EXIT(signal_to_a_kernel(), testing::KilledBySignal(SIGSEGV), "^$");
}

void write_to_null_beside_gpus() {
  (void)device_words(1, 0);
  write_to_null();
}
TEST_F(FaultsTest, HostsFaultNamesItsLine) {
  EXPECT_EXIT(
      write_to_null_beside_gpus(), testing::KilledBySignal(SIGSEGV),
      "^virtual GPUs: the host accessed memory that is not allocated at faults.cu:[0-9]+: in no memory");
}

/// Another operating system thread writes to a null pointer while a kernel runs.
void fault_in_another_thread() {
  nap_for_ever<<<1, 1>>>(device_words(1, 0));
  std::thread other([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    write_to_null();
  });
  (void)cudaDeviceSynchronize();
  other.join();
}
TEST_F(FaultsTest, FaultOfAnotherThreadIsNotTheKernels) {
  EXPECT_EXIT(fault_in_another_thread(), testing::KilledBySignal(SIGSEGV), "^$");
}

__global__ void mask_without_the_caller(int* out) { *out = static_cast<int>(__ballot_sync(0x0000fff0u, 1)); }

TEST_F(FaultsTest, WarpFunctionWhoseMaskLeavesTheCallerOut) {
  mask_without_the_caller<<<1, 16>>>(device_words(1, 0));
  expect_failure(cudaDeviceSynchronize(), cudaErrorLaunchFailure, {"lane 0", "mask does not name it"});
}

__global__ void launches_another(int* out) { set<<<1, 1>>>(out, 1); }

TEST_F(FaultsTest, LaunchInsideAKernel) {
  launches_another<<<1, 1>>>(device_words(1, 0));
  expect_failure(cudaDeviceSynchronize(), cudaErrorLaunchFailure,
                 {"launches_another", "launches a kernel", "not supported"});
}

}  // namespace
}  // namespace virtual_only
