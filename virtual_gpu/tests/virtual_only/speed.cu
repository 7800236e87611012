// The host's cost of running kernels, as ratios, because times depend on the computer. The bounds are about
// twice the measured ratios; errors that make each thread's cost grow with its neighbours (a search, a
// wake-up of all) exceed them.
#include <algorithm>
#include <ctime>
#include <cuda/atomic>

#include "virtual_test.hpp"

namespace virtual_only {
namespace {

using SpeedTest = VirtualTest;

__global__ void add_vectors(const float* a, const float* b, float* sum) {
  const unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
  sum[i] = a[i] + b[i];
}
__global__ void one_barrier(const float* a, const float* b, float* sum) {
  const unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
  __syncthreads();
  sum[i] = a[i] + b[i];
}
__global__ void five_shuffles(const float* a, const float* b, float* sum) {
  const unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = a[i] + b[i];
  for (int half = 16; half > 0; half /= 2) v += __shfl_xor_sync(0xffffffff, v, half);
  sum[i] = v;
}
__global__ void loop_of_256(const float* a, const float* b, float* sum) {
  const unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = 0;
  for (int n = 0; n < 256; ++n) v = v * a[i] + b[i];
  sum[i] = v;
}

/// CPU time per thread, ns: the least of several launches.
template <class Kernel>
double time_of(Kernel kernel, int blocks, int threads) {
  float* memory = device_words<float>(std::size_t{3} * blocks * threads);
  double least = 1e9;
  for (int round = 0; round < 5; ++round) {
    const std::clock_t begin = std::clock();
    kernel<<<blocks, threads>>>(memory, memory + blocks * threads, memory + 2 * blocks * threads);
    require(cudaDeviceSynchronize());
    least = std::min(least, static_cast<double>(std::clock() - begin));
  }
  return least * 1e9 / CLOCKS_PER_SEC / blocks / threads;
}

TEST_F(SpeedTest, KernelsKeepTheirRatios) {
  constexpr int kBlocks = 128, kThreads = 256;
  const double add = time_of(add_vectors, kBlocks, kThreads),
               barrier = time_of(one_barrier, kBlocks, kThreads);
  EXPECT_LT(barrier, 10 * add);
  EXPECT_LT(time_of(five_shuffles, kBlocks, kThreads), 27 * add);
  EXPECT_LT(time_of(loop_of_256, kBlocks, kThreads), 120 * add);
  // The cost per thread does not grow with their number.
  EXPECT_LT(time_of(one_barrier, kBlocks, 4 * kThreads), 3 * barrier);
  EXPECT_LT(time_of(one_barrier, 16 * kBlocks, kThreads), 2 * barrier);
}

using Flag = cuda::atomic_ref<int, cuda::thread_scope_system>;
__global__ void sleep_and_raise(int* flag, int naps) {
  for (int i = 0; i < naps; ++i) __nanosleep(1000);
  Flag(*flag).store(1, cuda::memory_order_release);
}
__global__ void wait(int* flag) {
  while (Flag(*flag).load(cuda::memory_order_acquire) == 0) __nanosleep(1000);
}

/// CPU time of one poll, ns, if `gpus` GPUs wait for one of them.
double time_of_look(int gpus) {
  constexpr int kNaps = 400;
  vgpu::reset();
  vgpu::use_gpus(gpus);
  int* flag = pinned_word();
  const std::clock_t begin = std::clock();
  for (int gpu = 0; gpu < gpus; ++gpu) {
    require(cudaSetDevice(gpu));
    if (gpu == 0) {
      sleep_and_raise<<<1, 1>>>(flag, kNaps);
    } else {
      wait<<<4, 1>>>(flag);
    }
  }
  for (int gpu = 0; gpu < gpus; ++gpu) {
    require(cudaSetDevice(gpu));
    require(cudaDeviceSynchronize());
  }
  return static_cast<double>(std::clock() - begin) * 1e9 / CLOCKS_PER_SEC / kNaps / 4 / gpus;
}

TEST_F(SpeedTest, LooksOfManyGpusCostLittleMoreThanThoseOfFew) {
  double few = 1e9, many = 1e9;
  for (int round = 0; round < 3; ++round) {
    few = std::min(few, time_of_look(4));
    many = std::min(many, time_of_look(32));
  }
  EXPECT_LT(many, 6.5 * few);  // 9 if each poll asked all GPUs for possible steps
}

}  // namespace
}  // namespace virtual_only
