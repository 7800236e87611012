// Programmatic dependent launches: when the dependent kernel begins, which CUDA leaves open.
#include <cuda/atomic>

#include "overlap/gpu/graph.hpp"
#include "virtual_test.hpp"

namespace virtual_only {
namespace {

using DependentLaunchesTest = VirtualTest;
using Flag = cuda::atomic_ref<int, cuda::thread_scope_device>;

/// All blocks but the last `silent` ones trigger; then all wait for the flag, and fill.
__global__ void trigger_and_wait(int* flag, int* data, unsigned int silent) {
  if (blockIdx.x + silent < gridDim.x) cudaTriggerProgrammaticLaunchCompletion();
  while (flag != nullptr && Flag(*flag).load(cuda::memory_order_acquire) == 0) __nanosleep(100);
  data[blockIdx.x] = 7;
}
__global__ void raise(int* flag) { Flag(*flag).store(1, cuda::memory_order_release); }
__global__ void copy_word(const int* from, int* to, bool synchronizes) {
  if (synchronizes) cudaGridDependencySynchronize();
  *to = *from;
}
__global__ void work_and_trigger(int* to, int rounds) {
  cudaTriggerProgrammaticLaunchCompletion();
  for (int i = 0; i < rounds; ++i) to[blockIdx.x] = to[blockIdx.x] * 3 + i;
}
__global__ void prepare_and_wait(int* to, int rounds) {
  for (int i = 0; i < rounds; ++i) to[blockIdx.x] = to[blockIdx.x] * 3 + i;
  cudaGridDependencySynchronize();
}

template <class... Parameters, class... Arguments>
cudaError_t launch_dependent(cudaStream_t stream, bool programmatic, void (*kernel)(Parameters...),
                             Arguments... arguments) {
  cudaLaunchAttribute attribute{cudaLaunchAttributeProgrammaticStreamSerialization, {}};
  attribute.val.programmaticStreamSerializationAllowed = programmatic;
  const cudaLaunchConfig_t config{1, 1, 0, stream, &attribute, 1};
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

/// The first kernel waits for a flag of the second one.
cudaError_t run_together(unsigned int silent, bool programmatic, bool in_graph) {
  vgpu::reset();
  int *flag = device_words(1, 0), *data = device_words(2, 0);
  const cudaStream_t stream = new_stream();
  const auto enqueue = [&] {
    trigger_and_wait<<<2, 1, 0, stream>>>(flag, data, silent);
    require(launch_dependent(stream, programmatic, raise, flag));
  };
  if (in_graph) {
    overlap::Graph::capture(stream, enqueue).launch(stream);
  } else {
    enqueue();
  }
  return cudaStreamSynchronize(stream);
}

TEST_F(DependentLaunchesTest, BeginsOnceAllBlocksHaveTriggered) {
  CUDA_OK(run_together(0, true, false));
  CUDA_OK(run_together(0, true, true));
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_together(1, true, false), cudaErrorLaunchTimeout) << "one block has not";
  EXPECT_EQ(run_together(0, false, false), cudaErrorLaunchTimeout) << "the launch has no attribute";
  EXPECT_EQ(run_together(0, false, true), cudaErrorLaunchTimeout);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("deadlock"), std::string::npos);
}

// In some schedules a kernel that does not synchronise reads too early.
TEST_F(DependentLaunchesTest, AMissingSynchronisationIsAWrongResult) {
  int early[2] = {};
  for (int seed = 1; seed <= 20; ++seed) {
    for (const bool synchronizes : {false, true}) {
      start_over(seed);
      int *data = device_words(1, 0), *result = device_words(1, 0);
      const cudaStream_t stream = new_stream();
      trigger_and_wait<<<1, 1, 0, stream>>>(nullptr, data, 0);
      CUDA_OK(launch_dependent(stream, true, copy_word, data, result, synchronizes));
      CUDA_OK(cudaStreamSynchronize(stream));
      early[synchronizes] += word(result) != 7;
    }
  }
  EXPECT_GT(early[false], 0);
  EXPECT_EQ(early[true], 0);
}

TEST_F(DependentLaunchesTest, WhatIsBeforeTheSynchronisationOverlaps) {
  constexpr int kRounds = 40000;
  int* data = device_words(2, 0);
  const cudaStream_t stream = new_stream();
  const auto time_of = [&](bool programmatic) {
    return elapsed(stream, [&] {
      work_and_trigger<<<1, 1, 0, stream>>>(data, kRounds);
      require(launch_dependent(stream, programmatic, prepare_and_wait, data + 1, kRounds));
    });
  };
  const float serial = time_of(false);
  EXPECT_LT(time_of(true), 0.7 * serial);
}

TEST_F(DependentLaunchesTest, OtherAttributesAreRefused) {
  cudaLaunchAttribute priority{static_cast<cudaLaunchAttributeID>(8), {}};
  const cudaLaunchConfig_t config{1, 1, 0, nullptr, &priority, 1};
  EXPECT_EQ(cudaLaunchKernelEx(&config, raise, nullptr), cudaErrorNotSupported);
  EXPECT_NE(vgpu::last_error_detail().find("launch attribute 8"), std::string::npos);
}

}  // namespace
}  // namespace virtual_only
