// Programs written without virtual GPUs in mind, and errors that real GPUs report: several threads, host
// pointers as arguments, misaligned accesses. (This file is compiled with -fsanitize=alignment.)
#include <atomic>
#include <thread>
#include <vector>

#include "virtual_test.hpp"

namespace virtual_only {
namespace {

using OwnProgramTest = VirtualTest;

/// The standard error output of `body`.
template <class Body>
std::string printed_by(Body body) {
  testing::internal::CaptureStderr();
  body();
  return testing::internal::GetCapturedStderr();
}

TEST_F(OwnProgramTest, ChoosesTheNumberOfGpus) {
  vgpu::use_machine("h100-nvlink");
  vgpu::use_gpus(3);
  int count = 0;
  require(cudaGetDeviceCount(&count));
  EXPECT_EQ(count, 3);
  EXPECT_EQ(vgpu::machine_name(), "h100-nvlink");
  EXPECT_THROW(vgpu::use_gpus(2), std::logic_error) << "too late";
}

TEST_F(OwnProgramTest, ImpossibleNumbersOfGpus) {
  for (int count : {0, -1, 65}) EXPECT_THROW(vgpu::use_gpus(count), std::invalid_argument);
}

TEST_F(OwnProgramTest, PrintsWhyCallsFail) {
  vgpu::print_errors();
  const std::string text = printed_by([] {
    EXPECT_EQ(cudaSetDevice(99), cudaErrorInvalidDevice);
    EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
  });
  expect_parts(text, {"virtual GPUs: cudaSetDevice: "});
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
}

TEST_F(OwnProgramTest, PrintsNoAnswersAndNothingUnasked) {
  EXPECT_EQ(printed_by([] { EXPECT_EQ(cudaSetDevice(99), cudaErrorInvalidDevice); }), "");
  vgpu::reset();
  vgpu::print_errors();
  const cudaStream_t stream = new_stream();
  int* sink = device_words(1, 0);
  work<<<1, 1, 0, stream>>>(sink, 100000);
  EXPECT_EQ(printed_by([&] { EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady); }), "");
}

TEST_F(OwnProgramTest, PrintsAFaultOnce) {
  vgpu::print_errors();
  const std::string text = printed_by([] {
    set<int><<<1, 1>>>(nullptr, 1);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  });
  expect_parts(text, {"virtual GPUs: cudaDeviceSynchronize: kernel ", "set", "in no memory"});
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
}

// Operating system threads

/// The main thread has called CUDA; then another thread does.
template <class Body>
void in_a_second_thread(Body body) {
  int device = 0;
  require(cudaGetDevice(&device));
  std::thread(body).join();
}

TEST_F(OwnProgramTest, CallsOfASecondThreadEndTheProgram) {
  void* memory = nullptr;
  EXPECT_EXIT(
      in_a_second_thread([&] { (void)cudaMalloc(&memory, 4); }), testing::ExitedWithCode(2),
      "^virtual GPUs: cudaMalloc was called in a second thread .std::thread.*; all CUDA calls of a program "
      "must come from one thread.*run_host_threads.*\n$");
  EXPECT_EXIT(in_a_second_thread([] { set<int><<<1, 1>>>(nullptr, 1); }), testing::ExitedWithCode(2),
              "^virtual GPUs: a kernel launch was called in a second thread");
  EXPECT_EXIT(in_a_second_thread([] { (void)cudaGetLastError(); }), testing::ExitedWithCode(2),
              "^virtual GPUs: cudaGetLastError was called in a second thread");
}

/// Exits with 0 if the error is reported.
void call_cuda_in_one_thread_that_is_not_the_first() {
  std::thread([] {
    int* memory = device_words(1, 1);
    set<<<1, 1>>>(memory, 5);
    _exit(word(memory) == 5 ? 0 : 1);
  }).join();
}

TEST_F(OwnProgramTest, AnyThreadMayBeTheOneThatCalls) {
  EXPECT_EXIT(call_cuda_in_one_thread_that_is_not_the_first(), testing::ExitedWithCode(0), "");
}

__global__ void add_in_turns(int* sum, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    if (static_cast<int>(threadIdx.x) == round % static_cast<int>(blockDim.x)) *sum += 1;
    __syncthreads();
  }
}

// Their basic blocks are not a kernel's, and must not preempt one.
TEST_F(OwnProgramTest, OtherThreadsMayDoOtherWork) {
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> rounds{0};
  std::thread worker([&] {
    while (!stop) ++rounds;
  });
  int* sum = device_words(1, 0);
  while (rounds < 100000) std::this_thread::yield();
  for (int launch = 0; launch < 20; ++launch) add_in_turns<<<1, 32>>>(sum, 5000);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  stop = true;
  worker.join();
  EXPECT_EQ(word(sum), 100000);
}

// Long host code

TEST_F(OwnProgramTest, LongHostCodeTakesModelledTime) {
  vgpu::count_host_code();
  const auto count = [] {
    for (std::atomic<int> i = 0; i < 10'000'000; ++i) {
    }
  };
  EXPECT_GT(elapsed(nullptr, count), 5);
}

// Host pointers

template <class T>
__global__ void copy_one(T* to, const T* const __restrict__ from, void (*)(T)) {
  *to = *from;
}
template <class T>
__global__ void take(const T* pointer, int) {
  if (pointer == nullptr) __trap();
}

TEST_F(OwnProgramTest, HostPointersAsArgumentsAreNamedOnce) {
  int* device = device_words(1, 0);
  const int local = 5;
  const std::vector<int> heap(100, 7);
  const std::string text = printed_by([&] {
    copy_one<int><<<1, 1>>>(device, &local, nullptr);
    copy_one<int><<<1, 1>>>(device, heap.data() + 50, nullptr);
  });
  expect_parts(text, {"virtual GPUs: warning: kernel 'virtual_only::", "copy_one",
                      "takes as 'from' a pointer to host memory", "neither pinned nor registered",
                      "cudaErrorIllegalAddress"});
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
  EXPECT_EQ(word(device), 7) << "a warning is no error";
  EXPECT_NE(printed_by([] { take<<<1, 1>>>("a constant", 1); }), "");
}

TEST_F(OwnProgramTest, OtherPointersAreNot) {
  int* device = device_words(100, 1);
  int *freed = device_words(1, 1), *pinned = pinned_room(1024);
  std::vector<int> registered(1000);
  require(cudaHostRegister(registered.data(), 4000, 0));
  require(cudaFree(freed));
  const int* nothing_there[] = {reinterpret_cast<const int*>(std::uintptr_t{1}),
                                reinterpret_cast<const int*>(~std::uintptr_t{0})};
  const auto body = [&] {
    for (const int* pointer : {device + 50, device + 100, pinned + 3, registered.data() + 999, freed}) {
      take<<<1, 1>>>(pointer, 1);
    }
    for (const int* pointer : nothing_there) take<<<1, 1>>>(pointer, 1);
    copy_one<int><<<1, 1>>>(device, device + 1, [](int) {});
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess) << vgpu::last_error_detail();
    take<int><<<1, 1>>>(nullptr, 1);
  };
  EXPECT_EQ(printed_by(body), "");
}

// Misaligned accesses

template <class T>
__global__ void copy_vectors(const float* from, float* to) {
  reinterpret_cast<T*>(to)[threadIdx.x] = reinterpret_cast<const T*>(from)[threadIdx.x];
}

/// Copies 4 vectors that begin `offset` floats after the buffer's beginning.
template <class T>
cudaError_t copy_vectors_from(int offset) {
  const float* from = device_words(64, 2.0f);
  float* to = device_words(64, 1.0f);
  copy_vectors<T><<<1, 4>>>(from + offset, to);
  return cudaDeviceSynchronize();
}

TEST_F(OwnProgramTest, AlignedVectorsAreRight) {
  for (int offset : {0, 4, 8}) EXPECT_EQ(copy_vectors_from<float4>(offset), cudaSuccess);
  for (int offset : {0, 2, 6}) EXPECT_EQ(copy_vectors_from<float2>(offset), cudaSuccess);
  for (int offset : {1, 3, 5}) EXPECT_EQ(copy_vectors_from<float3>(offset), cudaSuccess);
}

TEST_F(OwnProgramTest, MisalignedVectorsStopTheKernel) {
  expect_failure(copy_vectors_from<float4>(1), cudaErrorMisalignedAddress,
                 {"copy_vectors", "block (0,0,0), thread (0,0,0)", "float4", "no multiple of 16",
                  "own_programs.cu:", "inside a cudaMalloc of 256 bytes on GPU 0"});
  vgpu::reset();
  expect_failure(copy_vectors_from<float2>(3), cudaErrorMisalignedAddress, {"float2", "no multiple of 8"});
  vgpu::reset();
  expect_failure(copy_vectors_from<double>(1), cudaErrorMisalignedAddress, {"double", "no multiple of 8"});
}

// Arithmetic that C++ does not define

__global__ void compute(int* results, int a, int b, unsigned shift, float x) {
  results[0] = static_cast<int>(1u << shift);
  results[1] = static_cast<int>(x);
  results[2] = a / b;
}

TEST_F(OwnProgramTest, ShiftsAndConversionsOutOfRangeAreNamedOnce) {
  int* results = device_words(3, 0);
  const std::string text = printed_by([&] {
    compute<<<2, 32>>>(results, 6, 2, 32, 3e10f);
    require(cudaDeviceSynchronize());
  });
  expect_parts(text,
               {"virtual GPUs: warning: kernel ", "compute", "shifts a 'unsigned int' by its width or more",
                "converts a number that is no 'int'", "own_programs.cu:"});
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << text;
  EXPECT_EQ(word(results + 2), 3) << "a warning is no error";
}

TEST_F(OwnProgramTest, DivisionByZeroStopsTheKernel) {
  compute<<<1, 1>>>(device_words(3, 0), 6, 0, 1, 1);
  expect_failure(cudaDeviceSynchronize(), cudaErrorLaunchFailure,
                 {"compute", "divided an integer by zero", "own_programs.cu:"});
}

// Real hosts can.
TEST_F(OwnProgramTest, HostCodeMayMisalign) {
  alignas(16) char bytes[8] = {0, 0, 1, 0, 0, 0, 0, 0};
  const volatile int value = *reinterpret_cast<const int*>(bytes + 2);
  EXPECT_EQ(value, 1);
}

}  // namespace
}  // namespace virtual_only
