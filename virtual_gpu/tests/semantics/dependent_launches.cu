// Programmatic dependent launch: Guide, "Programmatic Dependent Launch and Synchronization"; API, "Execution
// Control". CUDA does not promise that a dependent kernel begins early, so the tests do not expect it.
#include <functional>

#include "capture_test.hpp"

namespace semantics {
namespace {

using DependentLaunchesTest = HopperTest;

/// Launches blocks of one thread.
template <class... Parameters, class... Arguments>
cudaError_t launch(cudaStream_t stream, bool programmatic, void (*kernel)(Parameters...),
                   Arguments... arguments) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = programmatic;
  cudaLaunchConfig_t config{};
  config.gridDim = 4;
  config.blockDim = 1;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

__global__ void trigger_then_add(int* to, int value) {
  cudaTriggerProgrammaticLaunchCompletion();
  spin();
  to[blockIdx.x] += value;
}
__global__ void synchronize_then_add(const int* from, int* to) {
  cudaGridDependencySynchronize();
  cudaTriggerProgrammaticLaunchCompletion();
  for (unsigned int i = 0; i < gridDim.x; ++i) to[blockIdx.x] += from[i];
}
__global__ void trigger_and_end() { cudaTriggerProgrammaticLaunchCompletion(); }
__global__ void add_all(const int* from, int* to) {
  for (unsigned int i = 0; i < gridDim.x; ++i) to[blockIdx.x] += from[i];
}

const std::vector<int> kSums(4, 4 * 7);

TEST_F(DependentLaunchesTest, SynchronisingWaitsForThePrimary) {
  const DeviceArray<int> from(4, 0), to(4, 0);
  const Stream stream;
  CUDA_OK(launch(stream, false, trigger_then_add, from.data(), 7));
  CUDA_OK(launch(stream, true, synchronize_then_add, from.data(), to.data()));
  CUDA_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(to.values(), kSums);
}

// The second kernel waits for the first, so whatever waits for the second waits for both.
TEST_F(DependentLaunchesTest, EndsOfAChainAddUp) {
  const DeviceArray<int> first(4, 0), second(4, 0), third(4, 0);
  const Stream stream;
  CUDA_OK(launch(stream, false, trigger_then_add, first.data(), 7));
  CUDA_OK(launch(stream, true, synchronize_then_add, first.data(), second.data()));
  CUDA_OK(launch(stream, true, synchronize_then_add, second.data(), third.data()));
  CUDA_OK(launch(stream, true, synchronize_then_add, first.data(), third.data()));
  CUDA_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(third.values(), std::vector<int>(4, 4 * 28 + 28));
}

TEST_F(DependentLaunchesTest, WhatFollowsWaitsForAllBeforeIt) {
  const std::function<void(cudaStream_t, const int*, int*)> followers[] = {
      [](cudaStream_t stream, const int* from, int* to) { add_all<<<4, 1, 0, stream>>>(from, to); },
      [](cudaStream_t stream, const int* from, int* to) {
        require(launch(stream, false, add_all, from, to));
      },
      [](cudaStream_t stream, const int* from, int* to) {
        const Stream other;
        const Event event;
        order(other, stream, event);
        add_all<<<4, 1, 0, other>>>(from, to);
        require(cudaStreamSynchronize(other));
      },
      [](cudaStream_t stream, const int* from, int* to) {
        require(cudaStreamSynchronize(stream));
        add_all<<<4, 1>>>(from, to);
      }};
  for (const auto& follow : followers) {
    const DeviceArray<int> from(4, 0), to(4, 0);
    const Stream stream;
    CUDA_OK(launch(stream, false, trigger_then_add, from.data(), 7));
    CUDA_OK(launch(stream, true, trigger_and_end));
    follow(stream, from.data(), to.data());
    CUDA_OK(cudaDeviceSynchronize());
    EXPECT_EQ(to.values(), kSums);
  }
}

TEST_F(DependentLaunchesTest, InACapturedGraph) {
  const DeviceArray<int> from(4, 0), to(4, 0);
  const Stream stream;
  const Graph graph(stream, [&] {
    require(launch(stream, true, trigger_then_add, from.data(), 7));
    require(launch(stream, true, synchronize_then_add, from.data(), to.data()));
    add_all<<<4, 1, 0, stream>>>(from.data(), to.data());
  });
  const Executable executable(graph);
  for (int i = 0; i < 2; ++i) CUDA_OK(cudaGraphLaunch(executable, stream));
  CUDA_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(to.values(), std::vector<int>(4, 2 * 28 + 2 * 56));
}

TEST_F(DependentLaunchesTest, WithoutAPrimaryBothCallsDoNothing) {
  const DeviceArray<int> from(4, 7), to(4, 0);
  synchronize_then_add<<<4, 1>>>(from.data(), to.data());
  CUDA_OK(cudaDeviceSynchronize());
  EXPECT_EQ(to.values(), kSums);
}

TEST_F(DependentLaunchesTest, ABadConfigurationIsRefused) {
  cudaLaunchConfig_t config{};
  config.gridDim = 1;
  config.blockDim = 2048;
  EXPECT_NE(cudaLaunchKernelEx(&config, trigger_and_end), cudaSuccess);
  EXPECT_NE(cudaGetLastError(), cudaSuccess);
}

}  // namespace
}  // namespace semantics
