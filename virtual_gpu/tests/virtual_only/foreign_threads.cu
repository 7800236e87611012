// Operating system threads besides the one that calls CUDA.
#include <atomic>
#include <cstdlib>
#include <cuda/atomic>
#include <thread>

#include "vgpu/timeline.hpp"
#include "virtual_test.hpp"

namespace virtual_only {
namespace {

using ForeignThreadsTest = VirtualTest;

/// Every kind of change of a word.
void use_atomics(int& word) {
  cuda::atomic_ref<int, cuda::thread_scope_system> shared(word);
  shared.store(1, cuda::memory_order_release);
  shared.fetch_add(2);
  int expected = 3;
  shared.compare_exchange_strong(expected, 4);
  atomicAdd(&word, 3);
}
template <class Action>
void in_another_thread(Action action) {
  std::thread(action).join();
}

TEST_F(ForeignThreadsTest, AtomicsOfTheHostStartNothing) {
  int word = 0;
  use_atomics(word);
  in_another_thread([&] { use_atomics(word); });
  EXPECT_EQ(word, 7);
  EXPECT_NO_THROW(vgpu::use_gpus(3)) << "there are GPUs already";
  int gpus = 0;
  CUDA_OK(cudaGetDeviceCount(&gpus));
  EXPECT_EQ(gpus, 3);
}

// A deadlock is found although another thread is running.
TEST_F(ForeignThreadsTest, AtomicsOfAnotherThreadAreNoProgress) {
  int* flag = device_words(1, 0);
  await<<<1, 1>>>(flag);
  std::atomic<bool> ends = false;
  std::thread other([&ends] {
    int word = 0;
    while (!ends) use_atomics(word);
  });
  expect_parts(deadlock_of(cudaDeviceSynchronize), {"deadlock", "await"});
  ends = true;
  other.join();
}

void call_in_another_thread(void (*call)()) {
  require(cudaSetDevice(0));
  in_another_thread(call);
  std::exit(0);
}
class ForeignCallTest : public ForeignThreadsTest, public testing::WithParamInterface<void (*)()> {};
INSTANTIATE_TEST_SUITE_P(Calls, ForeignCallTest,
                         testing::Values([] { (void)cudaSetDevice(1); }, [] { vgpu::run_blocks({}); },
                                         [] { vgpu::host_work(10); }, [] { vgpu::push_label("label"); },
                                         [] { vgpu::run_host_threads(1, [](int) {}); },
                                         [] { vgpu::HostBarrier(1).wait(); }, [] { vgpu::reset(); }));
TEST_P(ForeignCallTest, IsRefused) {
  EXPECT_EXIT(call_in_another_thread(GetParam()), testing::ExitedWithCode(2),
              "was called in a second thread .std::thread.");
}

}  // namespace
}  // namespace virtual_only
