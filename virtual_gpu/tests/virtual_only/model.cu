// The modelled clock: order, never values; and the counted bytes.

#include "virtual_test.hpp"

namespace virtual_only {
namespace {

using ModelTest = VirtualTest;

constexpr int kRounds = 2000;

/// Modelled milliseconds of the host from `enqueue` until the device is idle.
template <class Enqueue>
double host_time(Enqueue enqueue) {
  require(cudaDeviceSynchronize());
  const double start = vgpu::host_time_ms();
  enqueue();
  require(cudaDeviceSynchronize());
  return vgpu::host_time_ms() - start;
}

// A block that needs most of the shared memory has an SM for itself; the machine has 8.
TEST_F(ModelTest, BlocksRunInWaves) {
  constexpr int kShared = 200 * 1024;
  require(cudaFuncSetAttribute(work<float>, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared));
  const cudaStream_t stream = new_stream();
  const auto time_of = [&](int blocks) {
    return elapsed(stream, [&] { work<float><<<blocks, 32, kShared, stream>>>(nullptr, kRounds); });
  };
  const float one = time_of(1), two_waves = time_of(9), three_waves = time_of(17);
  EXPECT_NEAR(time_of(7), one, 0.01 * one);
  EXPECT_NEAR(time_of(8), one, 0.01 * one);
  EXPECT_GT(two_waves, 1.5 * one);
  EXPECT_NEAR(time_of(16), two_waves, 0.01 * two_waves);
  EXPECT_GT(three_waves, two_waves + 0.5 * one);
  EXPECT_NEAR(time_of(24), three_waves, 0.01 * three_waves);
}

TEST_F(ModelTest, HalfTheWorkTakesHalfTheTime) {
  const cudaStream_t stream = new_stream();
  const auto time_of = [&](int blocks, int rounds) {
    return elapsed(stream, [&] { work<float><<<blocks, 128, 0, stream>>>(nullptr, rounds); });
  };
  const float whole = time_of(64, kRounds);
  EXPECT_NEAR(time_of(64, kRounds / 2), whole / 2, 0.1 * whole);
  EXPECT_NEAR(time_of(32, kRounds), whole / 2, 0.1 * whole);
}

// One stream of small kernels against two: a GPU that is not full runs both at once.
TEST_F(ModelTest, SmallKernelsOfTwoStreamsOverlap) {
  const cudaStream_t first = new_stream(), second = new_stream();
  const auto run = [&](cudaStream_t other) {
    return host_time([&] {
      for (int i = 0; i < 4; ++i) work<float><<<2, 128, 0, i % 2 == 0 ? first : other>>>(nullptr, kRounds);
    });
  };
  EXPECT_LT(run(second), 0.7 * run(first));
}

TEST_F(ModelTest, GpusWorkAtTheSameTime) {
  const auto run = [&](int gpus) {
    const double start = vgpu::host_time_ms();
    for (int i = 0; i < gpus; ++i) {
      require(cudaSetDevice(i));
      work<float><<<64, 128>>>(nullptr, kRounds);
    }
    for (int i = 0; i < gpus; ++i) {
      require(cudaSetDevice(i));
      require(cudaDeviceSynchronize());
    }
    return vgpu::host_time_ms() - start;
  };
  const double one = run(1);
  EXPECT_LT(run(4), 1.5 * one);
}

using CopyModelTest = CopyTest<1 << 20>;

TEST_F(CopyModelTest, CopiesOverlapWithKernels) {
  const double copy = host_time([&] { copy_in(0); });
  const auto kernel = [&] { work<float><<<8, 128, 0, streams[1]>>>(nullptr, kRounds); };
  const double compute = host_time(kernel);
  const double both = host_time([&] {
    copy_in(0);
    kernel();
  });
  EXPECT_LT(both, 0.9 * (copy + compute));
  EXPECT_GE(both, std::max(copy, compute) * 0.99);
}

TEST_F(CopyModelTest, CopiesOfOneDirectionTakeTurnsAndOfTwoOverlap) {
  const double one = host_time([&] { copy_in(0); });
  const double same = host_time([&] {
    copy_in(0);
    copy_in(1);
  });
  const double opposite = host_time([&] {
    copy_in(0);
    copy_out(1);
  });
  EXPECT_GT(same, 1.9 * one);
  EXPECT_LT(opposite, 1.2 * one);
}

TEST_F(CopyModelTest, TwiceTheBytesTakeLonger) {
  const auto run = [&](std::size_t bytes) {
    return elapsed(streams[0], [&] {
      require(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, streams[0]));
    });
  };
  EXPECT_GT(run(kBytes), 1.5 * run(kBytes / 2));
}

TEST_F(CopyModelTest, PeerAccessShortensCopiesOverNvlink) {
  vgpu::reset();
  vgpu::use_machine("h100-nvlink");
  allocate();
  require(cudaSetDevice(1));
  char* there = device_room<char>(kBytes);
  const cudaStream_t stream = new_stream();
  const auto run = [&] {
    return elapsed(stream, [&] { require(cudaMemcpyPeerAsync(there, 1, device, 0, kBytes, stream)); });
  };
  const float through_the_host = run();
  require(cudaDeviceEnablePeerAccess(0, 0));
  EXPECT_LT(run(), 0.8 * through_the_host);
}

TEST_F(CopyModelTest, BytesAndCopiesAreCounted) {
  const auto expect_traffic = [](int from, int to, std::uint64_t bytes, std::uint64_t copies) {
    EXPECT_EQ(vgpu::traffic(from, to).bytes, bytes) << from << " to " << to;
    EXPECT_EQ(vgpu::traffic(from, to).copies, copies) << from << " to " << to;
  };
  require(cudaSetDevice(1));
  char* there = device_room<char>(1000);
  expect_traffic(vgpu::kHost, 0, 0, 0);
  copy_in(0);
  copy_in(1);
  copy_out(0);
  require(cudaMemcpyPeer(there, 1, device, 0, 100));
  require(cudaMemcpy2D(there, 100, device, 50, 30, 3, cudaMemcpyDeviceToDevice));
  require(cudaMemset(there, 0, 1000));
  for (int gpu = 0; gpu < 2; ++gpu) {
    require(cudaSetDevice(gpu));
    require(cudaDeviceSynchronize());
  }
  expect_traffic(vgpu::kHost, 0, 2 * kBytes, 2);
  expect_traffic(0, vgpu::kHost, kBytes, 1);
  expect_traffic(0, 1, 190, 2);
  expect_traffic(1, 0, 0, 0);
  vgpu::reset();
  expect_traffic(0, 1, 0, 0);
}

/// Without __nanosleep(): block 0 polls a plain word that block 1 sets.
__global__ void raw_spin(volatile int* word, int* out) {
  if (blockIdx.x == 0) {
    while (*word == 0) {
    }
    *out = *word;
  } else {
    double sum = 0;
    for (int i = 1; i < 300000; ++i) sum += 1.0 / i;  // longer than a thread's time slice
    *word = sum > 13.18 && sum < 13.19 ? 42 : 1;
  }
}

TEST_F(ModelTest, SpinsWithoutAPauseAreInterrupted) {
  int* memory = device_words(2, 0);
  raw_spin<<<2, 1>>>(memory, memory + 1);
  CUDA_OK(cudaDeviceSynchronize());
  EXPECT_EQ(word(memory + 1), 42);
}

/// Doubles in many threads keep their values across many preemptions.
__global__ void interrupted_sums(double* out) {
  double sum = static_cast<double>(threadIdx.x);
  for (int i = 0; i < 50; ++i) {
    sum = sum * 0.5 + static_cast<double>(i);
    if (i % 3 == 0) __nanosleep(10);
    if (i % 7 == 0) __syncthreads();
  }
  out[threadIdx.x] = sum;
}

TEST_F(ModelTest, DoublesSurviveInterruptions) {
  double* out = device_words(100, 0.0);
  interrupted_sums<<<1, 100>>>(out);
  for (int thread = 0; thread < 100; ++thread) {
    double expected = thread;
    for (int i = 0; i < 50; ++i) expected = expected * 0.5 + i;
    EXPECT_EQ(word(out + thread), expected) << thread;
  }
}

}  // namespace
}  // namespace virtual_only
