// Asynchronous copies of threads beyond their documentation: when they complete, and errors.
#include <cuda_pipeline.h>

#include <cuda/pipeline>
#include <set>

#include "virtual_test.hpp"

namespace virtual_only {
namespace {

using PipelineTest = VirtualTest;

/// `seen`: a slot right after the issue, and after the wait.
__global__ void look_early(int* from, int* seen) {
  __shared__ int slot;
  slot = 7;
  auto pipeline = cuda::make_pipeline();
  cuda::memcpy_async(&slot, from, sizeof(int), pipeline);
  pipeline.producer_commit();
  *from = 9;  // a planted error: the source may still be read
  seen[0] = slot;
  pipeline.consumer_wait();
  seen[1] = slot;
}

std::vector<int> seen() {
  int* memory = device_words(3, 8);
  look_early<<<1, 1>>>(memory, memory + 1);
  return {word(memory + 1), word(memory + 2)};
}

TEST_F(PipelineTest, CopiesAreDoneAtTheWait) { EXPECT_EQ(seen(), (std::vector<int>{7, 9})); }

TEST_F(PipelineTest, WithASeedTheyAreDoneAtAnyTime) {
  EXPECT_EQ(in_random_orders(seen), (std::set<std::vector<int>>{{7, 9}, {8, 8}}));
}

__global__ void wait_without_a_stage(int* result) {
  auto pipeline = cuda::make_pipeline();
  cuda::memcpy_async(result, result + 1, sizeof(int), pipeline);
  pipeline.consumer_wait();
}

TEST_F(PipelineTest, AWaitWithoutACommitIsAnError) {
  wait_without_a_stage<<<1, 1>>>(device_words(2, 1));
  expect_failure(
      cudaDeviceSynchronize(), cudaErrorLaunchFailure,
      {"kernel 'virtual_only::{anonymous}::wait_without_a_stage", "consumer_wait() without a stage"});
}

__global__ void copy_to_odd_addresses(int* result) {
  auto pipeline = cuda::make_pipeline();
  const cuda::aligned_size_t<8> size(8);
  cuda::memcpy_async(result, result + 1, size, pipeline);
}

TEST_F(PipelineTest, AlignmentIsChecked) {
  copy_to_odd_addresses<<<1, 1>>>(device_words(4, 1));
  expect_failure(cudaDeviceSynchronize(), cudaErrorMisalignedAddress,
                 {"an asynchronous copy of 8 bytes", "no multiple of 8"});
}

__global__ void copy_three_bytes(int* result) { __pipeline_memcpy_async(result, result + 1, 3); }

TEST_F(PipelineTest, ThePrimitiveCopiesWords) {
  copy_three_bytes<<<1, 1>>>(device_words(4, 1));
  expect_failure(cudaDeviceSynchronize(), cudaErrorLaunchFailure, {"4, 8 or 16 bytes"});
}

/// Exits without a wait; the copy completes when the last thread of the block exits.
__global__ void copy_and_leave(int* to, const int* from) {
  auto pipeline = cuda::make_pipeline();
  cuda::memcpy_async(to + threadIdx.x, from + threadIdx.x, sizeof(int), pipeline);
}

TEST_F(PipelineTest, CopiesThatNobodyWaitsForAreDoneBeforeTheBlockEnds) {
  int *from = device_words(33, 5), *to = device_words(33, 1);
  copy_and_leave<<<1, 33>>>(to, from);
  for (int i = 0; i < 33; ++i) ASSERT_EQ(word(to + i), 5) << i;
}

TEST_F(PipelineTest, CopiesFromMemoryThatIsNotThereAreFaults) {
  int *to = device_words(1, 1), *freed = device_words(1, 1);
  require(cudaFree(freed));
  copy_and_leave<<<1, 1>>>(to, freed);
  expect_failure(cudaDeviceSynchronize(), cudaErrorIllegalAddress,
                 {"copy_and_leave", "memory that is not allocated"});
}

}  // namespace
}  // namespace virtual_only
