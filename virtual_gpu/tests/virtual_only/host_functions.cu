// What a cudaLaunchHostFunc function may do, and what is rejected: the scheduler waits for its end.
#include <csignal>
#include <new>
#include <stdexcept>

#include "virtual_test.hpp"

namespace virtual_only {
namespace {

using HostFunctionsTest = VirtualTest;

/// Launches it in a stream, and waits for it.
void call(cudaHostFn_t function, void* data = nullptr) {
  require(cudaLaunchHostFunc(nullptr, function, data));
  require(cudaDeviceSynchronize());
}

/// Uses a megabyte of local variables.
void use_large_stack(void* sum) {
  volatile unsigned char bytes[1 << 20];
  for (std::size_t i = 0; i < sizeof(bytes); ++i) bytes[i] = static_cast<unsigned char>(i);
  for (std::size_t i = 0; i < sizeof(bytes); ++i) *static_cast<long long*>(sum) += bytes[i];
}
TEST_F(HostFunctionsTest, HasAsMuchStackAsAThread) {
  long long sum = 0;
  call(use_large_stack, &sum);
  EXPECT_EQ(sum, (1LL << 20) / 256 * (255 * 256 / 2));
}

void throw_and_catch(void* uncaught) {
  *static_cast<int*>(uncaught) = std::uncaught_exceptions();
  try {
    throw std::runtime_error("inside");
  } catch (const std::runtime_error&) {
    *static_cast<int*>(uncaught) += 10 * (std::current_exception() != nullptr);
  }
}

/// Waits for the GPUs in its destructor.
struct WaitsAtLast {
  ~WaitsAtLast() { call(throw_and_catch, uncaught); }
  int* uncaught;
};
TEST_F(HostFunctionsTest, HasExceptionsOfItsOwn) {
  int uncaught = -1;
  try {
    const WaitsAtLast last{&uncaught};
    throw std::logic_error("outside");
  } catch (const std::logic_error& error) {
    EXPECT_STREQ(error.what(), "outside");
    EXPECT_EQ(uncaught, 10);
    call(throw_and_catch, &uncaught);
    EXPECT_EQ(uncaught, 10);
  }
  EXPECT_EQ(std::uncaught_exceptions(), 0);
}

TEST_F(HostFunctionsTest, ExceptionThatLeavesItEndsTheProgram) {
  EXPECT_EXIT(call([](void*) { throw std::runtime_error("nobody's"); }), testing::KilledBySignal(SIGABRT),
              "^virtual GPUs: gpu0/stream0 .default.: host function throws an exception, which nobody can "
              "catch: nobody's");
  EXPECT_EXIT(call([](void*) { throw 7; }), testing::KilledBySignal(SIGABRT), "it is no std::exception");
}

/// In a process with a small address space. Exits with 0 if the error is reported.
void run_out_of_stacks() {
  int called = 0;
  require(cudaDeviceSynchronize());
  leave_address_space(std::size_t{4} << 20);
  require(cudaLaunchHostFunc(
      nullptr, [](void* data) { *static_cast<int*>(data) = 1; }, &called));
  expect_failure(cudaDeviceSynchronize(), cudaErrorMemoryAllocation,
                 {"no memory for the stack of: host function"});
  EXPECT_EQ(called, 0);
  _exit(testing::Test::HasFailure() ? 1 : 0);
}
void run_out_of_threads() {
  require(cudaDeviceSynchronize());
  leave_address_space(kFewStacks);
  EXPECT_THROW(vgpu::run_host_threads(64, [](int) {}), std::bad_alloc);
  int sum = 0;
  vgpu::run_host_threads(3, [&sum](int thread) { sum += thread; });
  EXPECT_EQ(sum, 3);
  EXPECT_EQ(word(device_words(1, 5)), 5);
  _exit(testing::Test::HasFailure() ? 1 : 0);
}
TEST_F(HostFunctionsTest, NoMemoryForStacks) {
  EXPECT_EXIT(run_out_of_stacks(), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(run_out_of_threads(), testing::ExitedWithCode(0), "");
}

vgpu::HostBarrier barrier(2);
class RefusedTest : public HostFunctionsTest, public testing::WithParamInterface<cudaHostFn_t> {};
INSTANTIATE_TEST_SUITE_P(Calls, RefusedTest,
                         testing::Values<cudaHostFn_t>([](void*) { barrier.wait(); },
                                                       [](void*) { vgpu::run_host_threads(2, [](int) {}); },
                                                       [](void*) { vgpu::stop_host_threads(); },
                                                       [](void*) { vgpu::host_work(100); },
                                                       [](void*) { vgpu::reset(); }));
TEST_P(RefusedTest, AlsoWhileOtherHostThreadsWait) {
  const char* sentence = "is not permitted in a function of cudaLaunchHostFunc";
  EXPECT_EXIT(call(GetParam()), testing::KilledBySignal(SIGABRT), sentence);
  EXPECT_EXIT(vgpu::run_host_threads(2,
                                     [](int thread) {
                                       if (thread == 0) call(GetParam());
                                       (void)cudaDeviceSynchronize();
                                     }),
              testing::KilledBySignal(SIGABRT), sentence);
}

template <class T, class Call>
__global__ void call_inside(T* result, Call function) {
  *result = static_cast<T>(function());
}
TEST_F(HostFunctionsTest, KernelsCannotMakeSuchCalls) {
  int* result = device_words(1, 0);
  call_inside<<<1, 1>>>(result, [] { return cudaDeviceSynchronize(); });
  expect_failure(cudaDeviceSynchronize(), cudaErrorLaunchFailure,
                 {"call_inside", "calls cudaDeviceSynchronize: not supported"});
  vgpu::reset();
  result = device_words(1, 0);
  call_inside<<<1, 1>>>(result, [] { return barrier.wait(); });
  expect_failure(cudaDeviceSynchronize(), cudaErrorLaunchFailure,
                 {"call_inside", "calls HostBarrier::wait(): not supported"});
}

}  // namespace
}  // namespace virtual_only
