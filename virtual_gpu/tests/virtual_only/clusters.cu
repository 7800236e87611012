// Clusters beyond their documentation: placement of blocks, modelled costs, arrival of multicasts, errors.
#include <cuda.h>

#include <cuda/ptx>
#include <set>
#include <string>

#include "phases.cuh"
#include "virtual_test.hpp"

namespace virtual_only {
namespace {

namespace ptx = cuda::ptx;
using phases::await_phase, phases::expect_bytes;
using ClusterTest = VirtualTest;

__device__ void meet() {
  ptx::barrier_cluster_arrive();
  ptx::barrier_cluster_wait();
}

constexpr int kBox = 32;  // words

CUtensorMap map_of(int* data, cuuint32_t rows = 1) {
  const cuuint64_t sizes[] = {kBox, 256}, strides[] = {kBox * sizeof(int)};
  const cuuint32_t box[] = {kBox, rows}, steps[] = {1, 1};
  CUtensorMap map;
  if (cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_INT32, 2, data, sizes, strides, box, steps,
                             CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                             CU_TENSOR_MAP_L2_PROMOTION_NONE,
                             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS)
    throw std::runtime_error("cuTensorMapEncodeTiled refuses the tensor");
  return map;
}

/// One error by number; all else is right.
enum Error {
  kNone,
  kNoMeeting,    // an arrival before the other block has initialised its mbarrier
  kEarlyEnd,     // an arrival after the other block has exited
  kTwoArrivals,  // at the cluster barrier
  kWaitAlone,    // without an arrival
  kRank,         // of a third block
  kMask,         // with a third block
  kEmptyMask,
  kMulticastToEnd,  // to a block that has exited
  kUnseen,          // a block exits without waiting for a multicast
  kNotShared,
};

__global__ void __cluster_dims__(2, 1, 1) err(const __grid_constant__ CUtensorMap map, int* to, int error) {
  __shared__ std::uint64_t full;
  alignas(128) __shared__ int box[kBox];
  const unsigned rank = ptx::get_sreg_cluster_ctarank();
  auto* theirs = static_cast<std::uint64_t*>(__cluster_map_shared_rank(&full, rank ^ 1));
  const auto arrive = [](std::uint64_t* barrier) {
    ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cluster, ptx::space_cluster, barrier);
  };
  const auto fetch = [&](std::uint16_t mask) {
    const std::int32_t at[] = {0, 0};
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, box, &map, at, &full, mask);
  };
  if (error == kNoMeeting) arrive(theirs);
  ptx::mbarrier_init(&full, 1);
  ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  if (error == kWaitAlone) ptx::barrier_cluster_wait();
  if (error == kTwoArrivals) ptx::barrier_cluster_arrive();
  if (error == kRank) __cluster_map_shared_rank(&full, 2);
  if (error == kNotShared) __cluster_map_shared_rank(to, 1);
  meet();
  if (error == kEarlyEnd || error == kMulticastToEnd) {  // rank 1 signals rank 0, and exits
    if (rank == 1) return arrive(theirs);
    await_phase(&full, 0);
    if (error == kEarlyEnd) return arrive(theirs);
    fetch(2);
  }
  if (rank == 0) fetch(error == kMask ? 7 : error == kEmptyMask ? 0 : 3);
  if (error == kUnseen && rank == 1) return;
  expect_bytes(&full, sizeof box);
  await_phase(&full, 0);
  to[rank] = box[1];
  meet();
}

/// The message of the error's kernel.
std::string sentence_of(Error error) {
  vgpu::reset();
  int* memory = device_words(2 * kBox, 5);
  err<<<2, 1>>>(map_of(memory), memory + kBox, error);
  if (cudaDeviceSynchronize() == cudaSuccess) return "";
  return vgpu::last_error_detail();
}

TEST_F(ClusterTest, ErrorsStopTheKernelWithASentence) {
  const auto expect = [](Error error, const std::string& part) {
    const std::string sentence = sentence_of(error);
    EXPECT_NE(sentence.find(part), std::string::npos) << sentence;
  };
  EXPECT_EQ(sentence_of(kNone), "");
  expect(kNoMeeting, "uses an mbarrier of block (1,0,0) before mbarrier_init");
  expect(kEarlyEnd, "at an mbarrier of block (1,0,0), which has ended");
  expect(kTwoArrivals, "arrives at the cluster's barrier twice");
  expect(kWaitAlone, "without having arrived there");
  expect(kRank, "to rank 2 of a cluster of 2");
  expect(kMask, "to rank 2 of a cluster of 2");
  expect(kEmptyMask, "its mask is 0");
  expect(kMulticastToEnd, "to block (1,0,0), which has ended");
  expect(kNotShared, "an address that is not in its shared memory");
}

TEST_F(ClusterTest, ABlockThatEndsUnderAMulticastIsReportedWithASeedToo) {
  std::set<std::string> found;
  for (unsigned int seed = 1; seed <= 40; ++seed) {
    start_over(seed);
    int* memory = device_words(2 * kBox, 5);
    err<<<2, 1>>>(map_of(memory), memory + kBox, kUnseen);
    EXPECT_NE(cudaDeviceSynchronize(), cudaSuccess) << seed;
    const std::string sentence = vgpu::last_error_detail();
    for (const char* part :
         {"under way into its shared memory", "no thread has waited for a bulk copy", "which has ended"}) {
      if (sentence.find(part) != std::string::npos) found.insert(part);
    }
  }
  EXPECT_EQ(found.size(), 3u) << "before, while and after the multicast is under way";
}

__global__ void __cluster_dims__(2, 1, 1) never_meet(int* to) {
  if (blockIdx.x == 0) meet();
  __shared__ std::uint64_t barrier;
  ptx::mbarrier_init(&barrier, 1);
  await_phase(&barrier, 0);
  *to = 1;
}

TEST_F(ClusterTest, ADeadlockNamesWhatEachBlockWaitsFor) {
  int* memory = device_words(1, 0);
  never_meet<<<2, 1>>>(memory);
  expect_parts(deadlock_of(cudaDeviceSynchronize),
               {"block (0,0,0): 1 in barrier_cluster_wait", "block (1,0,0): 1 waiting for the mbarrier"});
}

__global__ void __cluster_dims__(2, 1, 1) meet_and_tell(int* to) {
  meet();
  to[blockIdx.x] = 1;
}
__global__ void __cluster_dims__(3, 1, 1) meet_by_three(int* to) {
  meet();
  to[blockIdx.x] = 1;
}
__global__ void __cluster_dims__(9, 1, 1) meet_by_nine(int* to) { to[blockIdx.x] = 1; }
__global__ void __cluster_dims__(1, 2, 1) meet_along_y(int* to) { to[blockIdx.x] = 1; }

TEST_F(ClusterTest, WhatCannotBeLaunchedIsRefused) {
  int* memory = device_words(9, 0);
  meet_and_tell<<<3, 1>>>(memory);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidClusterSize);
  EXPECT_NE(vgpu::last_error_detail().find("no multiple of the cluster"), std::string::npos);
  meet_by_nine<<<9, 1>>>(memory);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidClusterSize);
  meet_along_y<<<dim3(2, 2), 1>>>(memory);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidClusterSize);
}

TEST_F(ClusterTest, ThreeBlocksMeetToo) {
  for (unsigned int seed = 0; seed < 5; ++seed) {
    start_over(seed);
    int* memory = device_words(12, 0);
    meet_by_three<<<12, 1>>>(memory);
    CUDA_OK(cudaDeviceSynchronize());
    for (int i = 0; i < 12; ++i) EXPECT_EQ(word(memory + i), 1);
  }
}

/// Loads 256 rows repeatedly: each block loads all of them, or multicasts half of them to both.
__global__ void __cluster_dims__(2, 1, 1)
    fetch_rows(const __grid_constant__ CUtensorMap map, int* to, bool halves) {
  __shared__ std::uint64_t full;
  alignas(128) __shared__ int rows[256 * kBox];
  ptx::mbarrier_init(&full, 1);
  ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  for (int round = 0; round < 8; ++round) {
    meet();
    expect_bytes(&full, sizeof rows);
    const int first = halves ? 128 * static_cast<int>(ptx::get_sreg_cluster_ctarank()) : 0;
    const std::int32_t at[] = {0, first};
    if (halves)
      ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, rows + first * kBox, &map, at, &full,
                                std::uint16_t{3});
    else
      ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, rows, &map, at, &full);
    await_phase(&full, round);
  }
  to[blockIdx.x] = rows[255 * kBox];
  meet();
}

TEST_F(ClusterTest, AMulticastTakesTheMemorysRateOnce) {
  const auto microseconds = [](bool halves) {
    vgpu::reset();
    int* memory = device_room((256 * kBox + 8));
    require(cudaMemset(memory, 0, 256 * kBox * sizeof(int)));
    require(cudaDeviceSynchronize());
    const cudaStream_t stream = new_stream();
    const CUtensorMap map = map_of(memory, halves ? 128 : 256);
    return 1e3f * elapsed(stream, [&] { fetch_rows<<<8, 1, 0, stream>>>(map, memory + 256 * kBox, halves); });
  };
  // 8 blocks share 400 bytes per ns: 32 KB take 0.66 us, half of it half of that; the latency is the same.
  const float all = microseconds(false), halves = microseconds(true);
  EXPECT_NEAR(all - halves, 8 * 32.768e3 / 2 / 50 / 1e3, 0.2 * (all - halves));
}

/// Half of a cluster alone would never end: both blocks must be resident at the same time.
TEST_F(ClusterTest, AClusterStartsWhenThereIsRoomForAllOfIt) {
  for (unsigned int seed = 0; seed < 4; ++seed) {
    start_over(seed);
    int* memory = device_words(64, 0);
    cudaStream_t first = new_stream(), second = new_stream();
    meet_and_tell<<<64, 1024, 0, first>>>(memory);
    meet_and_tell<<<64, 1024, 0, second>>>(memory);
    CUDA_OK(cudaDeviceSynchronize());
    EXPECT_EQ(word(memory + 63), 1);
  }
}

}  // namespace
}  // namespace virtual_only
