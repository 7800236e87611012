// Program ends: enqueued work has run, and the status after a report is not 0.
#include <sys/mman.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "virtual_test.hpp"

namespace virtual_only {
namespace {

using ProgramEndTest = VirtualTest;

const int* seen_at_the_end = nullptr;
/// Ends the process with the word's value when static objects are destroyed.
struct Witness {
  ~Witness() {
    if (seen_at_the_end != nullptr) _exit(*seen_at_the_end);
  }
};

[[noreturn]] void wait_for_nothing() {
  int* word = pinned_word();
  set<<<1, 1>>>(word, 7);
  static const Witness witness;
  seen_at_the_end = word;
  std::exit(0);
}
TEST_F(ProgramEndTest, NobodyWaitedForTheKernel) {
  EXPECT_EXIT(wait_for_nothing(), testing::ExitedWithCode(7), "^$");
}

[[noreturn]] void end_with_five() {
  set<<<1, 1>>>(device_words(1, 0), 7);
  (void)cudaSetDevice(99);  // a failed call does not change the status
  std::exit(5);
}
TEST_F(ProgramEndTest, StatusIsTheProgramsIfNothingIsWrong) {
  EXPECT_EXIT(end_with_five(), testing::ExitedWithCode(5), "^$");
}

[[noreturn]] void write_nowhere(bool asks) {
  set<int><<<1, 1>>>(nullptr, 1);
  if (asks) (void)cudaDeviceSynchronize();
  std::exit(0);
}
TEST_F(ProgramEndTest, FaultThatTheProgramDoesNotCareFor) {
  EXPECT_EXIT(write_nowhere(true), testing::ExitedWithCode(3), "^$");
  EXPECT_EXIT(write_nowhere(false), testing::ExitedWithCode(3),
              "^virtual GPUs: kernel .*set.* accessed memory that is not allocated at .*: in no memory");
}

__global__ void await_word(int* word) {
  while (atomicAdd(word, 0) == 0) __nanosleep(100);
}
[[noreturn]] void await_nobody(bool synchronises) {
  await_word<<<1, 1>>>(device_words(1, 0));
  if (synchronises) (void)cudaDeviceSynchronize();
  std::exit(0);
}
TEST_F(ProgramEndTest, KernelThatWaitsForEver) {
  EXPECT_EXIT(await_nobody(true), testing::ExitedWithCode(3), "^virtual GPUs: deadlock: ");
  EXPECT_EXIT(
      await_nobody(false), testing::ExitedWithCode(3),
      "^virtual GPUs: main.* has returned or exit.* was called, and this work still waits for the host.*\n"
      ".*kernel .*await_word.* 1 polling; 1 thread of block .* polls at .*; 0 more behind it\n$");
}

void free_registered_memory() {
  constexpr std::size_t kBytes = 1 << 20;
  int* to = device_words(1, 0);
  void* from = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  require(cudaHostRegister(from, kBytes, cudaHostRegisterDefault));
  (void)cudaMemcpyAsync(to, from, sizeof(int), cudaMemcpyDefault);
  munmap(from, kBytes);
  (void)cudaDeviceSynchronize();
}
TEST_F(ProgramEndTest, RegisteredMemoryIsFreedUnderACopy) {
  EXPECT_EXIT(free_registered_memory(), testing::ExitedWithCode(3),
              "^virtual GPUs: memory is gone, inside registered host memory of 1048576 bytes.*\n"
              ".*under way: gpu0/stream0 .default.*: copy of 4 bytes from the host to GPU 0\n$");
}

/// How a program ends with work pending.
enum class End { kExit, kQuickExit, kAbort };
[[noreturn]] void end_by(End end) {
  switch (end) {
    case End::kExit:
      std::exit(5);
    case End::kQuickExit:
      std::quick_exit(5);
    default:
      std::abort();
  }
}
class EndsInTheMiddleTest : public ProgramEndTest, public testing::WithParamInterface<End> {
 protected:
  /// Status and signal are the program's; there is no message.
  template <class Action>
  void ends(Action action) {
    if (GetParam() == End::kAbort) {
      EXPECT_EXIT(action(), testing::KilledBySignal(SIGABRT), "^$");
    } else {
      EXPECT_EXIT(action(), testing::ExitedWithCode(5), "^$");
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Ends, EndsInTheMiddleTest,
                         testing::Values(End::kExit, End::kQuickExit, End::kAbort));

TEST_P(EndsInTheMiddleTest, OfAHostThreadWhileOthersWait) {
  ends([] {
    vgpu::HostBarrier barrier(3);
    vgpu::run_host_threads(3, [&](int thread) {
      require(cudaSetDevice(thread));
      int* word = device_words(1, 0);
      set<<<1, 1>>>(word, 1);
      if (thread == 1) {
        require(cudaDeviceSynchronize());
        end_by(GetParam());
      }
      barrier.wait();
    });
  });
}

__global__ void end_inside(End end) {
  if (threadIdx.x == 1) end_by(end);
  __syncthreads();
}
TEST_P(EndsInTheMiddleTest, OfAKernel) {
  ends([] {
    end_inside<<<2, 2>>>(GetParam());
    (void)cudaDeviceSynchronize();
  });
}
TEST_P(EndsInTheMiddleTest, OfAKernelThatNobodyWaitedFor) {
  ends([] {
    end_inside<<<2, 2>>>(GetParam());
    std::exit(6);
  });
}

TEST_P(EndsInTheMiddleTest, OfAFunctionOfTheHostInAStream) {
  ends([] {
    static End end = GetParam();
    require(cudaLaunchHostFunc(
        nullptr, [](void*) { end_by(end); }, nullptr));
    (void)cudaDeviceSynchronize();
  });
}

TEST_P(EndsInTheMiddleTest, OfACatchBlock) {
  ends([] {
    try {
      throw 1;
    } catch (int) {
      set<<<1, 1>>>(device_words(1, 0), 1);
      require(cudaDeviceSynchronize());
      end_by(GetParam());
    }
  });
}

/// An object that outlives a function's objects: constructed before the first CUDA call.
struct Owner {
  void* memory = nullptr;
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  int* launches_with = nullptr;
  bool dies = false;
  ~Owner() {
    if (!dies) return;
    set<<<1, 1, 0, stream>>>(launches_with, 1);
    const cudaError_t errors[] = {cudaStreamSynchronize(stream), cudaFree(memory), cudaEventDestroy(event),
                                  cudaStreamDestroy(stream)};
    for (const cudaError_t error : errors) std::fprintf(stderr, "%s ", cudaGetErrorName(error));
  }
};
Owner global_owner;

[[noreturn]] void let_global_object_call(bool with_memory) {
  int* word = device_words(1, 0);
  require(cudaMalloc(&global_owner.memory, 16));
  global_owner.stream = new_stream();
  global_owner.event = new_event();
  global_owner.launches_with = with_memory ? word : nullptr;
  global_owner.dies = true;
  std::exit(5);
}
TEST_F(ProgramEndTest, DestructorOfAGlobalObjectCallsCuda) {
  EXPECT_EXIT(let_global_object_call(true), testing::ExitedWithCode(5),
              "^cudaSuccess cudaSuccess cudaSuccess cudaSuccess $");
  EXPECT_EXIT(let_global_object_call(false), testing::ExitedWithCode(3), "^cudaErrorIllegalAddress ");
}

/// The same for a program that ends with work pending.
void end_inside_with_an_owner(bool waits, bool in_kernel) {
  require(cudaMalloc(&global_owner.memory, 16));
  global_owner.dies = true;
  static constexpr auto end = [](void*) { end_by(End::kExit); };
  if (in_kernel) {
    end_inside<<<2, 2>>>(End::kExit);
  } else {
    require(cudaLaunchHostFunc(nullptr, end, nullptr));
  }
  if (waits) (void)cudaDeviceSynchronize();
  std::exit(6);
}
void end_host_thread_with_an_owner() {
  vgpu::run_host_threads(3, [](int thread) {
    vgpu::HostBarrier never(3);
    if (thread == 1) end_inside_with_an_owner(false, true);
    never.wait();
  });
}
TEST_F(ProgramEndTest, DestructorOfAGlobalObjectCallsCudaInTheMiddle) {
  const char* refused =
      "^cudaErrorCudartUnloading cudaErrorCudartUnloading cudaErrorCudartUnloading cudaErrorCudartUnloading "
      "$";
  EXPECT_EXIT(end_inside_with_an_owner(true, true), testing::ExitedWithCode(5), refused);
  EXPECT_EXIT(end_inside_with_an_owner(true, false), testing::ExitedWithCode(5), refused);
  EXPECT_EXIT(end_inside_with_an_owner(false, true), testing::ExitedWithCode(5), refused);
  EXPECT_EXIT(end_inside_with_an_owner(false, false), testing::ExitedWithCode(5), refused);
  EXPECT_EXIT(end_host_thread_with_an_owner(), testing::ExitedWithCode(6), refused);
}

[[noreturn]] void reset_in_a_host_thread() noexcept {
  vgpu::run_host_threads(2, [](int thread) {
    if (thread == 1) vgpu::reset();
    (void)cudaDeviceSynchronize();
  });
  std::exit(5);
}
TEST_F(ProgramEndTest, ResetInAHostThreadIsRefused) {
  EXPECT_EXIT(reset_in_a_host_thread(), testing::KilledBySignal(SIGABRT),
              "what.*vgpu::reset.* was called in a host thread");
}

}  // namespace
}  // namespace virtual_only
