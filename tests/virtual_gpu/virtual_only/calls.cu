// What an observer is told of calls, and calls that are made in another's name.
#include "vgpu/calls.hpp"

#include <cuda.h>

#include <cstdint>
#include <string>
#include <vector>

#include "virtual_test.hpp"

namespace virtual_only {
namespace {

/// A call as it was told.
struct Told {
  std::string name;
  std::vector<std::uint64_t> arguments;
  bool failed;
  int host_thread;
};

class Listener final : public vgpu::CallObserver {
 public:
  Listener() { vgpu::observe_calls(this); }
  ~Listener() override { vgpu::observe_calls(nullptr); }
  void called(const vgpu::Call& call) override {
    Told& told_now = told.emplace_back(Told{call.name, {}, call.failed, call.host_thread});
    for (const vgpu::CallArgument& argument : call.arguments) told_now.arguments.push_back(argument.value);
  }
  std::vector<Told> told;
};

std::uint64_t number(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

__global__ void add(int* x, double by, int) { *x += static_cast<int>(by); }

using Calls = VirtualTest;

TEST_F(Calls, AreToldWithTheirArguments) {
  Listener listener;
  int* memory = nullptr;
  CUDA_OK(cudaMalloc(&memory, 64));
  CUDA_OK(cudaMemsetAsync(memory, 7, 32, nullptr));
  ASSERT_EQ(cuStreamWriteValue32(nullptr, number(memory), 5, 0), CUDA_SUCCESS);
  ASSERT_EQ(listener.told.size(), 3u);
  EXPECT_EQ(listener.told[0].name, "cudaMalloc");
  EXPECT_EQ(listener.told[0].arguments[1], 64u);
  EXPECT_EQ(listener.told[1].arguments, (std::vector<std::uint64_t>{number(memory), 7, 32, 0}));
  EXPECT_EQ(listener.told[2].arguments, (std::vector<std::uint64_t>{0, number(memory), 5, 0}));
  EXPECT_FALSE(listener.told[2].failed);
}

TEST_F(Calls, ThatFailAreToldAsFailed) {
  Listener listener;
  EXPECT_EQ(cudaSetDevice(99), cudaErrorInvalidDevice);
  ASSERT_EQ(listener.told.size(), 1u);
  EXPECT_EQ(listener.told[0].name, "cudaSetDevice");
  EXPECT_TRUE(listener.told[0].failed);
}

TEST_F(Calls, OfKernelsHaveTheirArguments) {
  int* memory = nullptr;
  CUDA_OK(cudaMalloc(&memory, 4));
  Listener listener;
  add<<<2, 32>>>(memory, 0.5, 3);
  ASSERT_EQ(listener.told.size(), 2u);  // beside "kernel launch", which has no arguments
  const Told& launch = listener.told[0];
  EXPECT_EQ(launch.name, "launch");
  ASSERT_EQ(launch.arguments.size(), 12u);  // the third parameter has no name
  EXPECT_EQ(launch.arguments[1], 2u);
  EXPECT_EQ(launch.arguments[4], 32u);
  EXPECT_EQ(launch.arguments[9], 1u);
  EXPECT_EQ(launch.arguments[10], number(memory));
  EXPECT_EQ(launch.arguments[11], 0x3fe0000000000000u);
  CUDA_OK(cudaDeviceSynchronize());
}

TEST_F(Calls, AreToldOfTheHostThreadThatMadeThem) {
  Listener listener;
  vgpu::HostBarrier barrier(2);
  vgpu::run_host_threads(2, [&](int) { barrier.wait(); });
  ASSERT_EQ(listener.told.size(), 2u);
  EXPECT_EQ(listener.told[0].name, "host barrier");
  EXPECT_EQ(listener.told[0].host_thread + listener.told[1].host_thread, 1);
}

TEST_F(Calls, AreNotToldOnceNobodyAsks) {
  Listener listener;
  vgpu::observe_calls(nullptr);
  CUDA_OK(cudaSetDevice(0));
  EXPECT_TRUE(listener.told.empty());
}

TEST_F(Calls, MadeInAnothersNameHaveItsPlaceInReports) {
  int* memory = nullptr;
  CUDA_OK(cudaMalloc(&memory, 4));
  CUDA_OK(cudaMemset(memory, 0, 4));
  vgpu::called_from("somewhere.cuh:7");
  ASSERT_EQ(cuStreamWaitValue32(nullptr, number(memory), 1, 0), CUDA_SUCCESS);
  testing::internal::CaptureStderr();
  EXPECT_NE(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("enqueued at somewhere.cuh:7"), std::string::npos);
}

}  // namespace
}  // namespace virtual_only
