// A deadlock ends the waiting call, and the report names each waiting thread or stream and what it waits for.
#include "virtual_test.hpp"

namespace virtual_only {
namespace {

/// Endless waits return with a report on standard error.
class DeadlocksTest : public InSchedules<VirtualTest> {
 protected:
  template <class Call>
  std::string report_of(Call call) {
    const std::string report = deadlock_of(call);
    expect_parts(report, {"deadlock", GetParam() == 0 ? "schedule time order" : "schedule 5", "hash "});
    return report;
  }
};
INSTANTIATE_TEST_SUITE_P(Schedules, DeadlocksTest, testing::Values(0, 5));

/// All blocks wait for all blocks: completes only if all are resident at once.
template <class T>
__global__ void grid_barrier(T* arrived) {
  if (threadIdx.x == 0) {
    atomicAdd(arrived, 1);
    while (atomicAdd(arrived, 0) < static_cast<T>(gridDim.x)) __nanosleep(100);
  }
  __syncthreads();
}

// 8 SMs of 2,048 threads hold 16 blocks of 1,024.
TEST_P(DeadlocksTest, GridBarrierOfBlocksThatFitIsNone) {
  grid_barrier<<<16, 1024>>>(device_words(1, 0));
  CUDA_OK(cudaDeviceSynchronize());
  EXPECT_FALSE(vgpu::failure_reported());
}

TEST_P(DeadlocksTest, GridBarrierOfMoreBlocksThanFit) {
  grid_barrier<<<17, 1024>>>(device_words(1, 0));
  const std::string report = report_of(cudaDeviceSynchronize);
  expect_parts(report, {"gpu0/stream0 (default)", "kernel 'virtual_only::", "grid_barrier", "T = int",
                        "0 of 17 blocks done", "1 cannot start (no free multiprocessor)", "16 resident",
                        "1023 in __syncthreads 1 polling", "0 more behind it"});
}

/// Half of the threads wait at the barrier; the other half wait for a word that is set after the barrier.
template <class T>
__global__ void half_a_barrier(T* sink) {
  __shared__ volatile T word;
  if (threadIdx.x == 0) word = 0;
  __syncwarp();
  if (threadIdx.x < 16) {
    while (word == 0) __nanosleep(100);
  }
  __syncthreads();
  word = 1;
  *sink = 1;
}

TEST_P(DeadlocksTest, BarrierThatHalfOfTheThreadsNeverReach) {
  half_a_barrier<<<1, 32>>>(device_words(1, 0));
  expect_parts(report_of(cudaDeviceSynchronize),
               {"half_a_barrier", "0 of 1 blocks done", "block (0,0,0): 16 in __syncthreads 16 polling"});
}

/// Lane 0 waits for a word; the other lanes wait for lane 0.
template <class T>
__global__ void half_a_warp(T* word) {
  if (threadIdx.x == 0) {
    while (atomicAdd(word, 0) == 0) __nanosleep(100);
  }
  __syncwarp();
}

TEST_P(DeadlocksTest, WarpThatWaitsForOneLane) {
  half_a_warp<<<1, 64>>>(device_words(1, 0));
  expect_parts(report_of(cudaDeviceSynchronize),
               {"31 in a warp function (mask 0xffffffff) 1 polling 32 ended", "polls at deadlocks.cu:"});
}

/// Threads of a warp wait at different barriers: no thread polls, so there is no progress.
template <class T>
__global__ void two_masks(T* sink) {
  if (threadIdx.x < 16) {
    __syncwarp(0x0001ffffu);
  } else {
    __syncwarp(0xffff8000u);
  }
  *sink = 1;
}

TEST_P(DeadlocksTest, WarpFunctionsWithMasksThatDoNotMatch) {
  two_masks<<<1, 32>>>(device_words(1, 0));
  expect_parts(report_of(cudaDeviceSynchronize), {"two_masks", "32 in a warp function"});
}

TEST_P(DeadlocksTest, FlagThatNobodySets) {
  require(cudaSetDevice(3));
  int* flag = device_words(1, 0);
  const cudaStream_t stream = new_stream();
  await<<<2, 5, 0, stream>>>(flag);
  set<<<1, 1, 0, stream>>>(flag, 1);
  set<<<1, 1, 0, stream>>>(flag, 2);
  const std::string report = report_of([&] { return cudaStreamSynchronize(stream); });
  expect_parts(report, {"gpu3/stream1: kernel", "await", "2 resident", "5 polling", "2 more behind it"});
}

TEST_P(DeadlocksTest, StreamsThatWaitForTheStuckOneAreListed) {
  int* flag = device_words(1, 0);
  const cudaStream_t stuck = new_stream(), waiting = new_stream();
  await<<<1, 1, 0, stuck>>>(flag);
  order(waiting, stuck);
  set<<<1, 1, 0, waiting>>>(flag, 1);
  const std::string report = report_of([&] { return cudaStreamSynchronize(waiting); });
  expect_parts(report, {"gpu0/stream1: kernel", "gpu0/stream2: wait for an event: waiting for an event"});
}

TEST_P(DeadlocksTest, HostThatQueriesForEver) {
  int* flag = device_words(1, 0);
  const cudaStream_t stream = new_stream();
  const cudaEvent_t never = new_event();
  await<<<1, 1, 0, stream>>>(flag);
  require(cudaEventRecord(never, stream));
  const std::string report = report_of([&] {
    cudaError_t state = cudaErrorNotReady;
    for (int i = 0; i < 1000000 && state == cudaErrorNotReady; ++i) state = cudaEventQuery(never);
    return state;
  });
  expect_parts(report, {"gpu0/stream1: kernel", "await", "1 polling"});
}

// The GPUs keep polling while the host queries many times; then they see the word that it sets.
TEST_P(DeadlocksTest, HostThatQueriesForLongAndThenSetsTheWordIsNone) {
  int* flag = pinned_word();
  const cudaStream_t stream = new_stream();
  await<<<1, 1, 0, stream>>>(flag);
  for (int i = 0; i < 50000; ++i) ASSERT_EQ(cudaStreamQuery(stream), cudaErrorNotReady) << i;
  *flag = 1;
  cudaError_t state = cudaErrorNotReady;
  for (int i = 0; i < 10000 && state == cudaErrorNotReady; ++i) state = cudaStreamQuery(stream);
  EXPECT_EQ(state, cudaSuccess);
  EXPECT_FALSE(vgpu::failure_reported());
}

TEST_P(DeadlocksTest, LaterCallsFailAtOnce) {
  int* flag = device_words(1, 0);
  await<<<1, 1>>>(flag);
  report_of(cudaDeviceSynchronize);
  int value = 0;
  EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaErrorLaunchTimeout);
  EXPECT_EQ(cudaMemcpy(&value, flag, sizeof(int), cudaMemcpyDeviceToHost), cudaErrorLaunchTimeout);
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchTimeout);
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchTimeout) << "it sticks";
  set<<<1, 1>>>(flag, 1);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorLaunchTimeout);
  vgpu::reset();
  EXPECT_FALSE(vgpu::failure_reported());
  EXPECT_EQ(word(device_words(1, 4)), 4) << "and reset() cures it";
}

}  // namespace
}  // namespace virtual_only
