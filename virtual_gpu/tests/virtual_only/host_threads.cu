// Host threads: state per thread, scheduling, and the report when all of them wait.
#include <cuda.h>

#include <set>
#include <utility>
#include <vector>

#include "virtual_test.hpp"

namespace virtual_only {
namespace {

class HostThreadsTest : public InSchedules<VirtualTest> {};
using HostThreadOrderTest = VirtualTest;
INSTANTIATE_TEST_SUITE_P(Schedules, HostThreadsTest, testing::Values(0, 1, 2, 3));

TEST_P(HostThreadsTest, EachHasItsOwnDeviceAndLastError) {
  require(cudaSetDevice(5));
  vgpu::HostBarrier barrier(4);
  vgpu::run_host_threads(4, [&](int thread) {
    EXPECT_EQ(vgpu::host_thread(), thread);
    int device = -1;
    require(cudaGetDevice(&device));
    EXPECT_EQ(device, 0) << "as a new thread's in CUDA";
    require(cudaSetDevice(thread));
    if (thread == 2) {
      EXPECT_EQ(cudaSetDevice(99), cudaErrorInvalidDevice);
    }
    EXPECT_TRUE(barrier.wait());
    require(cudaGetDevice(&device));
    EXPECT_EQ(device, thread);
    EXPECT_EQ(cudaGetLastError(), thread == 2 ? cudaErrorInvalidDevice : cudaSuccess);
  });
  EXPECT_EQ(vgpu::host_thread(), -1);
  int device = -1;
  require(cudaGetDevice(&device));
  EXPECT_EQ(device, 5);
}

TEST_P(HostThreadsTest, EachCountsItsOwnWaitsForGpus) {
  vgpu::run_host_threads(2, [&](int thread) {
    const auto own = static_cast<std::uint64_t>(thread);
    require(cudaSetDevice(thread));  // its default stream has no other work
    int* memory = nullptr;
    int value = 0;
    require(cudaMalloc(&memory, sizeof value));
    require(cudaMemsetAsync(memory, 0, sizeof value, nullptr));
    EXPECT_EQ(vgpu::host_waits(), 0u) << "so far it only enqueues";
    for (int i = 0; i < thread; ++i) require(cudaDeviceSynchronize());
    EXPECT_EQ(vgpu::host_waits(), own);
    require(cudaMemcpy(&value, memory, sizeof value, cudaMemcpyDeviceToHost));
    EXPECT_EQ(vgpu::host_waits(), own + 1);
    require(cudaStreamQuery(nullptr));
    EXPECT_EQ(vgpu::host_waits(), own + 2);
    require(cudaFree(memory));
    EXPECT_EQ(vgpu::host_waits(), own + 3);
  });
}

TEST_P(HostThreadsTest, ClocksMeetAtABarrierAndAtTheEnd) {
  const double start = vgpu::host_time_ms();
  vgpu::HostBarrier barrier(3);
  std::vector<double> before(3), after(3);
  vgpu::run_host_threads(3, [&](int thread) {
    int device = 0;
    for (int i = 0; i < 1000 * thread; ++i) require(cudaGetDeviceCount(&device));  // each call takes time
    before[thread] = vgpu::host_time_ms();
    EXPECT_TRUE(barrier.wait());
    after[thread] = vgpu::host_time_ms();
  });
  EXPECT_LT(before[0], before[1]);
  EXPECT_LT(before[1], before[2]);
  for (int thread = 0; thread < 3; ++thread) EXPECT_DOUBLE_EQ(after[thread], before[2]);
  EXPECT_GE(vgpu::host_time_ms(), before[2]);
  EXPECT_GT(before[2], start);
}

TEST_P(HostThreadsTest, WorkOfAllThreadsRunsWhileTheyWait) {
  std::vector<float> results(8);
  vgpu::run_host_threads(8, [&](int thread) {
    require(cudaSetDevice(thread));
    float* word = device_words(1, 0.0f);
    set<<<1, 1>>>(word, 1.5f + thread);
    results[thread] = virtual_only::word(word);
  });
  for (int thread = 0; thread < 8; ++thread) EXPECT_EQ(results[thread], 1.5f + thread);
}

// In time order, a thread that waits for a long kernel lets the others finish theirs.
TEST_F(HostThreadOrderTest, WhoIsDoneFirstGoesOnFirst) {
  std::vector<int> order;
  vgpu::run_host_threads(3, [&](int thread) {
    require(cudaSetDevice(thread));
    int* word = device_words(1, 0);
    for (int i = 0; i < 10 * (3 - thread); ++i) set<<<1, 1>>>(word, i);
    require(cudaDeviceSynchronize());
    order.push_back(thread);
  });
  EXPECT_EQ(order, (std::vector<int>{2, 1, 0}));
}

TEST_P(HostThreadsTest, QueriesLetTheOthersGoOn) {
  int* flag = pinned_word();
  vgpu::run_host_threads(2, [&](int thread) {
    if (thread == 0) {
      while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) == 0) require(cudaStreamQuery(nullptr));
    } else {
      require(cudaDeviceSynchronize());
      __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
    }
  });
}

TEST_P(HostThreadsTest, ExceptionOfTheFirstThreadComesBack) {
  std::vector<int> ended(3);
  try {
    vgpu::run_host_threads(3, [&](int thread) {
      ended[thread] = 1;
      if (thread > 0) throw std::runtime_error("of " + std::to_string(thread));
    });
    FAIL() << "nothing came";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "of 1");
  }
  EXPECT_EQ(ended, (std::vector<int>{1, 1, 1}));
}

TEST_P(HostThreadsTest, ThreadsCannotStartThreads) {
  vgpu::run_host_threads(2,
                         [](int) { EXPECT_THROW(vgpu::run_host_threads(2, [](int) {}), std::logic_error); });
  EXPECT_THROW(vgpu::run_host_threads(0, [](int) {}), std::logic_error);
}

TEST_P(HostThreadsTest, DeadlockNamesEveryThreadAndWhatItWaitsFor) {
  testing::internal::CaptureStderr();
  vgpu::HostBarrier barrier(3);
  std::vector<cudaError_t> codes(3);
  vgpu::run_host_threads(3, [&](int thread) {
    require(cudaSetDevice(thread));
    unsigned* word = device_words(1, 41u);
    if (thread == 2) {
      EXPECT_FALSE(barrier.wait());
      codes[thread] = cudaDeviceSynchronize();
      return;
    }
    EXPECT_EQ(cuStreamWaitValue32(nullptr, reinterpret_cast<CUdeviceptr>(word), 42, CU_STREAM_WAIT_VALUE_EQ),
              CUDA_SUCCESS);
    codes[thread] = cudaStreamSynchronize(nullptr);
  });
  const std::string report = testing::internal::GetCapturedStderr();
  for (const cudaError_t code : codes) EXPECT_EQ(code, cudaErrorLaunchTimeout);
  EXPECT_TRUE(vgpu::failure_reported());
  expect_parts(report, {"deadlock", "gpu0/stream0 (default): wait until a word is 42: it is 41",
                        "gpu1/stream0 (default): wait until a word is 42: it is 41",
                        "inside a cudaMalloc of 4 bytes on GPU 1",
                        "host thread 0 (GPU 0): waits for work that was enqueued",
                        "host thread 1 (GPU 1): waits for work that was enqueued",
                        "host thread 2 (GPU 2): waits for all 3 threads to reach a barrier"});
}

TEST_P(HostThreadsTest, StopEndsAllWaitsAndDiscardsAllWork) {
  int* untouched = device_words(1, 7);
  vgpu::HostBarrier never(3);
  std::vector<cudaError_t> codes(3, cudaSuccess);
  vgpu::run_host_threads(3, [&](int thread) {
    require(cudaSetDevice(thread));
    unsigned* word = device_words(1, 0u);
    const cudaStream_t stream = new_stream();
    if (thread == 0) {
      for (int i = 0; i < 20; ++i) EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess);  // the others wait by now
      vgpu::stop_host_threads();
      set<<<1, 1, 0, stream>>>(untouched, 8);  // no work is enqueued after the stop
      codes[0] = cudaStreamSynchronize(stream);
      EXPECT_FALSE(never.wait());
    } else if (thread == 1) {
      require(
          static_cast<cudaError_t>(cuStreamWaitValue32(stream, reinterpret_cast<CUdeviceptr>(word), 1, 0)));
      codes[1] = cudaStreamSynchronize(stream);
      require(cudaFree(word));  // and no call waits
    } else {
      EXPECT_FALSE(never.wait());
    }
  });
  EXPECT_EQ(codes[0], cudaSuccess) << "a call after the stop does not wait";
  EXPECT_NE(codes[1], cudaSuccess) << "a call that waited when the stop came";
  EXPECT_FALSE(vgpu::failure_reported());
  require(cudaSetDevice(0));
  EXPECT_EQ(word(untouched), 7);
  set<<<1, 1>>>(untouched, 9);
  EXPECT_EQ(word(untouched), 9) << "afterwards all is as ever";
}

TEST_P(HostThreadsTest, StopEndsRunningKernelsToo) {
  int* flag = device_words(1, 0);
  vgpu::run_host_threads(2, [&](int thread) {
    if (thread == 0) {
      await<<<8, 64>>>(flag);
      EXPECT_NE(cudaDeviceSynchronize(), cudaSuccess);
    } else {
      for (int i = 0; i < 20; ++i) (void)cudaStreamQuery(new_stream());
      vgpu::stop_host_threads();
    }
  });
  require(cudaSetDevice(0));
  set<<<1000, 32>>>(flag, 3);  // the SMs are free again
  EXPECT_EQ(word(flag), 3);
}

/// The same seed gives the same order of threads; different seeds, different ones.
TEST_F(HostThreadOrderTest, SeedsDecideTheOrderOfThreads) {
  const auto order_of = [](std::uint64_t seed) {
    start_over(seed);
    std::vector<int> order;
    vgpu::run_host_threads(6, [&](int thread) {
      for (int i = 0; i < 3; ++i) {
        require(cudaDeviceSynchronize());
        order.push_back(thread);
      }
    });
    return std::pair(order, vgpu::schedule_hash());
  };
  std::set<std::vector<int>> orders;
  std::set<std::uint64_t> hashes;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto [order, hash] = order_of(seed);
    EXPECT_EQ(order_of(seed), std::pair(order, hash));
    orders.insert(order);
    hashes.insert(hash);
  }
  EXPECT_GT(orders.size(), 15u);
  EXPECT_EQ(hashes.size(), orders.size());
}

TEST_P(HostThreadsTest, DeepStacksFit) {
  struct Deep {
    static int call(int depth) {
      volatile char frame[4096];
      frame[0] = static_cast<char>(depth);
      return depth == 0 ? frame[0] : call(depth - 1) + 1;
    }
  };
  vgpu::run_host_threads(2, [](int) { EXPECT_EQ(Deep::call(400), 400); });
}

}  // namespace
}  // namespace virtual_only
