// Bulk copies and mbarriers beyond their documentation: when they complete, modelled costs, errors.
#include <cuda.h>

#include <cuda/ptx>
#include <set>
#include <string>
#include <vector>

#include "phases.cuh"
#include "virtual_test.hpp"

namespace virtual_only {
namespace {

namespace ptx = cuda::ptx;
using phases::await_phase, phases::expect_bytes;
using BulkCopyTest = VirtualTest;

/// `seen`: shared memory right after the issue of a load, and after the wait.
__global__ void look_at_load(int* from, int* seen) {
  __shared__ std::uint64_t barrier;
  alignas(16) __shared__ int words[4];
  words[0] = 7;
  ptx::mbarrier_init(&barrier, 1);
  ptx::fence_proxy_async();
  ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, words, from, sizeof words, &barrier);
  from[0] = 9;  // a planted error: the source may still be read
  seen[0] = words[0];
  expect_bytes(&barrier, sizeof words);
  await_phase(&barrier, 0);
  seen[1] = words[0];
}

std::vector<int> seen_of_load() {
  int* memory = device_words(8, 8);
  look_at_load<<<1, 1>>>(memory, memory + 4);
  return {word(memory + 4), word(memory + 5)};
}

TEST_F(BulkCopyTest, LoadsAreDoneAtTheWait) { EXPECT_EQ(seen_of_load(), (std::vector<int>{7, 9})); }

TEST_F(BulkCopyTest, WithASeedLoadsAreDoneAtAnyTime) {
  EXPECT_EQ(in_random_orders(seen_of_load), (std::set<std::vector<int>>{{7, 9}, {8, 8}}));
}

/// `seen`: global memory after `.read`, and after the full wait.
__global__ void look_at_store(int* to, int* seen) {
  alignas(16) __shared__ int words[4];
  words[0] = 5;
  ptx::fence_proxy_async();
  ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, to, words, sizeof words);
  ptx::cp_async_bulk_commit_group();
  ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
  words[0] = 6;
  seen[0] = to[0];
  ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
  seen[1] = to[0];
}

TEST_F(BulkCopyTest, StoresReadFirstAndWriteAtTheFullWait) {
  int* memory = device_words(8, 1);
  look_at_store<<<1, 1>>>(memory, memory + 4);
  EXPECT_EQ(word(memory + 4), 1) << "only read";
  EXPECT_EQ(word(memory + 5), 5) << "what the source held then";
}

/// Block `largest` adds 2048, each other block 1.
__global__ void add_one_of_three(const __grid_constant__ CUtensorMap map, int largest) {
  alignas(128) __shared__ std::uint16_t words[8];
  constexpr std::uint16_t k2048 = 0x6800, kOne = 0x3c00;  // as half
  for (std::uint16_t& word : words) word = static_cast<int>(blockIdx.x) == largest ? k2048 : kOne;
  ptx::fence_proxy_async();
  const std::int32_t at[1] = {0};
  ptx::cp_reduce_async_bulk_tensor(ptx::space_global, ptx::space_shared, ptx::op_add, &map, at, words);
  ptx::cp_async_bulk_commit_group();
  ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
}

/// A tensor of `size` elements in one dimension, for boxes of 8.
CUtensorMap line_of(void* memory, CUtensorMapDataType type, cuuint64_t size = 8) {
  CUtensorMap map{};
  const cuuint64_t stride = 0;
  const cuuint32_t box = 8, one = 1;
  EXPECT_EQ(cuTensorMapEncodeTiled(&map, type, 1, memory, &size, &stride, &box, &one,
                                   CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                                   CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
            CUDA_SUCCESS);
  return map;
}

int sum_of_three(unsigned int seed) {
  start_over(seed);
  std::uint16_t* memory = device_words<std::uint16_t>(8, 0);
  add_one_of_three<<<3, 1>>>(line_of(memory, CU_TENSOR_MAP_DATA_TYPE_FLOAT16), 2);
  return word(memory);
}

// In half, 2050 is next to 2048: 2048 + 1 + 1 gives 2048, 1 + 1 + 2048 gives 2050.
TEST_F(BulkCopyTest, ASumInSixteenBitsDependsOnWhoComesFirst) {
  constexpr int k2048 = 0x6800, k2050 = 0x6801;
  std::set<int> sums;
  for (unsigned int seed = 1; seed <= 40; ++seed) {
    const int sum = sum_of_three(seed);
    EXPECT_EQ(sum, sum_of_three(seed)) << "the same seed gives the same order: " << seed;
    sums.insert(sum);
  }
  EXPECT_EQ(sums, (std::set<int>{k2048, k2050}));
}

__global__ void add_words(const __grid_constant__ CUtensorMap map, int x) {
  alignas(128) __shared__ int words[16];
  const std::int32_t at[1] = {x};
  ptx::cp_reduce_async_bulk_tensor(ptx::space_global, ptx::space_shared, ptx::op_add, &map, at, words);
  ptx::cp_async_bulk_commit_group();
  ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
}

TEST_F(BulkCopyTest, WhatCannotBeAddedStopsTheKernel) {
  add_words<<<1, 1>>>(line_of(device_words(16, 1), CU_TENSOR_MAP_DATA_TYPE_INT64), 0);
  expect_failure(cudaDeviceSynchronize(), cudaErrorLaunchFailure,
                 {"add_words", "issues a bulk addition to a tensor of 8-byte elements"});
  vgpu::reset();
  add_words<<<1, 1>>>(line_of(device_words(8, 1), CU_TENSOR_MAP_DATA_TYPE_INT32), -4);
  expect_failure(cudaDeviceSynchronize(), cudaErrorIllegalInstruction, {"negative index"});
}

/// Loads `tiles` tiles through a ring of `stages`, and computes on each.
__global__ void pipeline_of(int* memory, int tiles, int stages) {
  constexpr int kWords = 2048, kMax = 4;
  __shared__ std::uint64_t full[kMax];
  alignas(16) __shared__ int stage[kMax][kWords];
  for (int s = 0; s < stages; ++s) ptx::mbarrier_init(&full[s], 1);
  ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  const auto fetch = [&](int tile) {
    const int s = tile % stages;
    expect_bytes(&full[s], sizeof stage[s]);
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, stage[s], memory, sizeof stage[s], &full[s]);
  };
  for (int tile = 0; tile < stages; ++tile) fetch(tile);
  int sum = 0;
  for (int tile = 0; tile < tiles; ++tile) {
    const int s = tile % stages;
    await_phase(&full[s], tile / stages);
    for (int i = 0; i < 8; ++i) sum += stage[s][i];
    if (tile + stages < tiles) fetch(tile + stages);
  }
  if (sum == -1) memory[0] = sum;
}

TEST_F(BulkCopyTest, OneStageIsSlowerThanFour) {
  int* memory = device_room(4096);
  const cudaStream_t stream = new_stream();
  const float one = elapsed(stream, [&] { pipeline_of<<<1, 1, 0, stream>>>(memory, 32, 1); });
  const float four = elapsed(stream, [&] { pipeline_of<<<1, 1, 0, stream>>>(memory, 32, 4); });
  EXPECT_GT(one, 1.3f * four);
  EXPECT_GT(one, 32 * 0.7e-3f) << "milliseconds: a latency of 0.7 us for each tile";
}

// ---- errors ----------------------------------------------------------------------------------------------
enum Misuse {
  kUninitialised,
  kTooManyArrivals,
  kOddBytes,
  kOddAddress,
  kNotShared,
  kNoMap,
  kUnreadStore,
  kUnseenLoad,
  kFreed
};

__global__ void misuse(int* memory, int what) {
  __shared__ std::uint64_t barrier;
  alignas(128) __shared__ int words[8];
  if (what == kUninitialised) ptx::mbarrier_arrive(&barrier);
  ptx::mbarrier_init(&barrier, 1);
  ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  if (what == kTooManyArrivals) ptx::mbarrier_arrive(&barrier, 2);
  if (what == kOddBytes)
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, words, memory, 12, &barrier);
  if (what == kOddAddress)
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, words, memory + 1, 16, &barrier);
  if (what == kNotShared)
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, memory, memory + 4, 16, &barrier);
  const std::int32_t at[2] = {0, 0};
  if (what == kNoMap)
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, words, memory, at, &barrier);
  if (what == kUnreadStore) {
    ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, memory, words, 16);
    ptx::cp_async_bulk_commit_group();
  }
  if (what == kUnseenLoad || what == kFreed) {
    expect_bytes(&barrier, 16);
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, words, memory, 16, &barrier);
  }
  if (what == kFreed) await_phase(&barrier, 0);
}

void expect_misuse(Misuse what, cudaError_t code, std::initializer_list<const char*> parts) {
  in_two_orders([&] {
    int* memory = device_words(64, 1);
    if (what == kFreed) require(cudaFree(memory));
    misuse<<<1, 1>>>(memory, what);
    expect_failure(cudaDeviceSynchronize(), code, parts);
  });
}

TEST_F(BulkCopyTest, WhatIsWrongStopsTheKernelWithASentence) {
  expect_misuse(kUninitialised, cudaErrorLaunchFailure, {"misuse", "before mbarrier_init"});
  expect_misuse(kTooManyArrivals, cudaErrorLaunchFailure, {"once more than the 1 times"});
  expect_misuse(kOddBytes, cudaErrorMisalignedAddress, {"of 12 bytes", "multiple of 16"});
  expect_misuse(kOddAddress, cudaErrorMisalignedAddress, {"in global memory", "no multiple of 16"});
  expect_misuse(kNotShared, cudaErrorLaunchFailure, {"not in the shared memory of its block"});
  expect_misuse(kNoMap, cudaErrorLaunchFailure, {"an invalid tensor map"});
  expect_misuse(kFreed, cudaErrorIllegalAddress, {"touches memory that is not allocated"});
}

__global__ void load_box(const __grid_constant__ CUtensorMap map, int x) {
  __shared__ std::uint64_t barrier;
  alignas(128) __shared__ int words[8];
  ptx::mbarrier_init(&barrier, 1);
  ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  expect_bytes(&barrier, sizeof words);
  const std::int32_t at[1] = {x};
  ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, words, &map, at, &barrier);
  await_phase(&barrier, 0);
}

TEST_F(BulkCopyTest, ABoxBeginsAtAMultipleOf16Bytes) {
  for (const int x : {8, -4, 3, -1}) {
    vgpu::reset();
    load_box<<<1, 1>>>(line_of(device_words(64, 1), CU_TENSOR_MAP_DATA_TYPE_INT32, 64), x);
    if (x % 4 == 0) {
      EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess) << x;
    } else {
      expect_failure(cudaDeviceSynchronize(), cudaErrorIllegalInstruction,
                     {("at byte " + std::to_string(4 * x)).c_str(), "no multiple of 16"});
    }
  }
}

TEST_F(BulkCopyTest, ABlockDoesNotLeaveCopiesBehind) {
  expect_misuse(kUnreadStore, cudaErrorLaunchFailure,
                {"block (0,0,0) ends", "may still read its shared memory"});
  expect_misuse(kUnseenLoad, cudaErrorLaunchFailure,
                {"block (0,0,0) ends", "no thread has waited", "phase 0"});
}

__global__ void wait_for_ever(int* sink, std::uint32_t count, std::uint32_t bytes) {
  __shared__ std::uint64_t barrier;
  if (threadIdx.x == 0) ptx::mbarrier_init(&barrier, count);
  __syncthreads();
  if (threadIdx.x == 0) expect_bytes(&barrier, bytes);
  await_phase(&barrier, 0);
  *sink = 1;
}

TEST_F(BulkCopyTest, DeadlockReportsSayWhatAnMbarrierLacks) {
  wait_for_ever<<<1, 64>>>(device_words(1, 0), 3, 48);
  expect_parts(deadlock_of(cudaDeviceSynchronize),
               {"deadlock",
                "64 waiting for the mbarrier at shared address 0x400 (phase 0: 2 of 3 arrivals and 48 "
                "bytes missing)"});
}

}  // namespace
}  // namespace virtual_only
