// Kernels that each lack one wait or barrier for an asynchronous copy, for memory that a stream allocates, or
// for structures that functions get and return, and the same kernels without the bug. Command line:
// planted.hpp. Marks as in planted_bugs.cu.
#include <cuda_runtime.h>

#include <cuda/pipeline>

#include "overlap/gpu/stream.hpp"
#include "planted.hpp"

namespace {

using overlap::DeviceBuffer;
using overlap::Stream;
using planted::fill;
using planted::kCount;

constexpr int kTiles = 4, kItems = kCount / kTiles;

using Kernel = void (*)(const int* from, int* to, bool fixed);

/// The case that runs the kernel on two independent streams.
planted::Case on_two_streams(Kernel kernel) {
  return [kernel](bool fixed) {
    struct Setting {
      DeviceBuffer<int> from{0, kCount}, to{0, kCount};
      Stream stream{0};
    } settings[2];
    for (Setting& s : settings) {
      fill<<<1, kCount, 0, s.stream>>>(s.from.data(), 1);
      kernel<<<1, kItems, 0, s.stream>>>(s.from.data(), s.to.data(), fixed);
    }
    cudaDeviceSynchronize();
  };
}

// ---- copy_read_early: a thread reads its item before it waits for the copy -------------------------------
__global__ void read_early(const int* from, int* to, bool fixed) {
  __shared__ int slots[2][kItems];
  auto pipeline = cuda::make_pipeline();
  const int thread = static_cast<int>(threadIdx.x);
  for (int tile = 0; tile <= kTiles; ++tile) {
    if (tile < kTiles) {
      pipeline.producer_acquire();
      int* slot = &slots[tile % 2][thread];
      cuda::memcpy_async(slot, from + tile * kItems + thread, sizeof(int), pipeline);  // @copy_read_early
      pipeline.producer_commit();
    }
    const int now = fixed ? tile - 1 : tile;  // with the bug: still in flight
    if (now >= 0 && now < kTiles) {
      if (fixed) pipeline.consumer_wait();
      to[now * kItems + thread] = slots[now % 2][thread];  // @copy_read_early
    }
    if (!fixed && tile < kTiles) pipeline.consumer_wait();
  }
}

// ---- refilled_too_early: a slot is refilled while a neighbour still reads it -----------------------------
__global__ void refill(const int* from, int* to, bool fixed) {
  __shared__ int slots[kItems];
  auto pipeline = cuda::make_pipeline();
  const int thread = static_cast<int>(threadIdx.x);
  for (int tile = 0; tile < kTiles; ++tile) {
    pipeline.producer_acquire();
    cuda::memcpy_async(slots + thread, from + tile * kItems + thread, 4, pipeline);  // @refilled_too_early
    pipeline.producer_commit();
    pipeline.consumer_wait();
    __syncthreads();
    to[tile * kItems + thread] = slots[(thread + 1) % kItems];  // @refilled_too_early
    if (fixed) __syncthreads();
  }
}

// ---- copies_of_others: each thread waits for its own copy only, and reads its neighbour's ----------------
__global__ void share(const int* from, int* to, bool fixed) {
  __shared__ int slots[kItems];
  auto pipeline = cuda::make_pipeline();
  const int thread = static_cast<int>(threadIdx.x);
  pipeline.producer_acquire();
  cuda::memcpy_async(slots + thread, from + thread, sizeof(int), pipeline);  // @copies_of_others
  pipeline.producer_commit();
  pipeline.consumer_wait();
  if (fixed) __syncthreads();
  to[thread] = slots[(thread + 1) % kItems];  // @copies_of_others
}

// ---- source_changed: another stream overwrites the source of a copy in flight ----------------------------
__global__ void leave(const int* from, int* to, bool /*fixed*/) {
  __shared__ int slots[kItems];
  auto pipeline = cuda::make_pipeline();
  cuda::memcpy_async(&slots[threadIdx.x], from + threadIdx.x, 4, pipeline);  // @source_changed
  to[threadIdx.x] = 0;
}
void source_changed(bool fixed) {
  DeviceBuffer<int> from(0, kCount), to(0, kCount);
  fill<<<1, kCount>>>(from.data(), 1);
  cudaDeviceSynchronize();
  Stream first(0), second(0);
  leave<<<1, kItems, 0, first>>>(from.data(), to.data(), fixed);
  cudaMemsetAsync(from.data(), 0, from.bytes(), fixed ? first : second);  // @source_changed
  cudaDeviceSynchronize();
}

// ---- allocated_in_a_stream: another stream uses memory that a stream allocates, without waiting for it ---
void allocated_in_a_stream(bool fixed) {
  const Stream first(0), second(0);
  int* memory = nullptr;
  cudaMallocAsync(&memory, kCount * sizeof(int), first);  // @allocated_in_a_stream
  if (fixed) cudaStreamSynchronize(first);
  fill<<<1, kCount, 0, second>>>(memory, 1);  // @allocated_in_a_stream
  cudaDeviceSynchronize();
  cudaFree(memory);
}

// ---- structures: a stream passes and returns structures in memory that another one overwrites ------------
struct Four {
  int part[4];
};
__device__ Four sum(Four a, Four b, int times) {  // too large for the compiler to inline it on its own
  for (int i = 0; i < times; ++i) {
    for (int k = 0; k < 4; ++k) {
      a.part[k] += b.part[k] * i;
      if (a.part[k] > 1000) a.part[k] -= b.part[3 - k];
    }
  }
  return a;
}
__global__ void sum_twice(const Four* from, Four* to, int times) {
  const int i = static_cast<int>(threadIdx.x);
  to[i] = sum(sum(from[i], from[i], times), from[0], times + 1);  // @structures_read @structures_written
}
__global__ void set_parts(Four* to) {
  for (int& part : to[threadIdx.x].part) part = 1;  // @structures_read @structures_written
}
planted::Case of_structures(bool written) {
  return [written](bool fixed) {
    DeviceBuffer<Four> from(0, kCount), to(0, kCount);
    cudaMemset(from.data(), 0, from.bytes());
    cudaDeviceSynchronize();
    const Stream first(0), second(0);
    sum_twice<<<1, kCount, 0, first>>>(from.data(), to.data(), 2);
    if (fixed) cudaStreamSynchronize(first);
    set_parts<<<1, kCount, 0, second>>>(written ? to.data() : from.data());
    cudaDeviceSynchronize();
  };
}

const planted::Cases kCases = {
    {"copy_read_early", on_two_streams(read_early)},  {"refilled_too_early", on_two_streams(refill)},
    {"copies_of_others", on_two_streams(share)},      {"source_changed", source_changed},
    {"allocated_in_a_stream", allocated_in_a_stream}, {"structures_read", of_structures(false)},
    {"structures_written", of_structures(true)},
};

}  // namespace

int main(int argc, char** argv) { return planted::run_case(argc, argv, kCases); }
