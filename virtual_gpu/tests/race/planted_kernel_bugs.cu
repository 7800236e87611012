// Kernels that race, deadlock or access memory that is not allocated. Command line: planted.hpp. Marks as in
// planted_bugs.cu; race_test.py has the words of each report.
#include <cuda_runtime.h>

#include <cuda/atomic>
#include <cuda/ptx>
#include <vector>

#include "overlap/gpu/check.hpp"
#include "overlap/gpu/graph.hpp"
#include "overlap/gpu/stream.hpp"
#include "planted.hpp"

namespace {

using overlap::DeviceBuffer;
using overlap::Graph;
using overlap::Stream;
using DeviceWord = cuda::atomic_ref<int, cuda::thread_scope_device>;

/// The case that runs the kernel with `count` words that are 0, and waits for it.
planted::Case case_of(void (*kernel)(int*, bool), dim3 grid, dim3 block, std::size_t count = planted::kCount,
                      std::size_t dynamic = 0) {
  return [=](bool fixed) {
    DeviceBuffer<int> words(0, count);
    cudaMemset(words.data(), 0, words.bytes());
    kernel<<<grid, block, dynamic>>>(words.data(), fixed);
    CUDA_CHECK(cudaDeviceSynchronize());
  };
}

// ---- warp: a lane reads a cell that another lane of its warp writes -------------------------------------
__global__ void pass_on(int* words, bool fixed) {
  __shared__ int unused, cells[64];
  if (threadIdx.x == 37) cells[37] = 1;  // @warp
  if (fixed) __syncwarp();
  if (threadIdx.x == 35) words[0] = cells[37];  // @warp
  if (threadIdx.x == 0) unused = 0;
}

// ---- block: the same between two warps, after barriers in a call, when threads share a call stack --------
__device__ __noinline__ void meet() { __syncthreads(); }
__global__ void pass_on_later(int* words, bool fixed) {
  extern __shared__ int cells[];
  for (int i = 0; i < 3; ++i) meet();
  if (threadIdx.x == 2 && threadIdx.y == 1) cells[7] = 1;  // @block
  if (fixed) meet();
  if (threadIdx.x == 15 && threadIdx.y == 9) words[0] = cells[7];  // @block
}

// ---- blocks: blocks add to one word without an atomic ---------------------------------------------------
__global__ void add_up(int* words, bool fixed) {
  if (fixed) {
    atomicAdd(words, 1);
  } else {
    *words += 1;  // @blocks @blocks
  }
}

// ---- cluster: a block reads its neighbour's shared memory after a relaxed arrive ------------------------
__global__ void __cluster_dims__(2, 1, 1) read_neighbour(int* words, bool fixed) {
  __shared__ int cell;
  if (threadIdx.x == 0) cell = 1;  // @cluster
  cuda::ptx::barrier_cluster_arrive(cuda::ptx::sem_relaxed);
  cuda::ptx::barrier_cluster_wait(cuda::ptx::sem_acquire);
  if (fixed) {
    cuda::ptx::barrier_cluster_arrive(cuda::ptx::sem_release);
    cuda::ptx::barrier_cluster_wait(cuda::ptx::sem_acquire);
  }
  const int* neighbour = static_cast<int*>(__cluster_map_shared_rank(&cell, blockIdx.x ^ 1));
  if (threadIdx.x == 1) words[blockIdx.x] = *neighbour;  // @cluster
  cuda::ptx::barrier_cluster_arrive(cuda::ptx::sem_release);
  cuda::ptx::barrier_cluster_wait(cuda::ptx::sem_acquire);
}

// ---- plain_beside_atomic: blocks add atomically, and one block reads with an ordinary load ---------------
__global__ void count_and_look(int* words, bool fixed) {
  if (blockIdx.x > 0) {
    atomicAdd(words, 1);  // @plain_beside_atomic
  } else {
    words[1] = fixed ? atomicAdd(words, 0) : *words;  // @plain_beside_atomic
  }
}

// ---- flags: a word hands data to another block without release, or without acquire -----------------------
__global__ void store_relaxed(int* words, bool fixed) {
  const DeviceWord flag(words[1]);
  if (blockIdx.x == 0) {
    words[0] = 42;  // @no_release
    flag.store(1, fixed ? cuda::memory_order_release : cuda::memory_order_relaxed);
  } else {
    while (flag.load(cuda::memory_order_acquire) == 0) {
    }
    words[2] = words[0];  // @no_release
  }
}

__global__ void load_relaxed(int* words, bool fixed) {
  const DeviceWord flag(words[1]);
  if (blockIdx.x == 0) {
    words[0] = 42;  // @no_acquire
    flag.store(1, cuda::memory_order_release);
  } else {
    while (flag.load(fixed ? cuda::memory_order_acquire : cuda::memory_order_relaxed) == 0) {
    }
    words[2] = words[0];  // @no_acquire
  }
}

// ---- lock: atomicCAS and atomicExch keep the other blocks out, but order no accesses ---------------------
__global__ void count_under_lock(int* words, bool fixed) {
  while (atomicCAS(&words[1], 0, 1) != 0) {
  }
  if (fixed) __threadfence();
  words[0] += 1;  // @lock @lock
  if (fixed) __threadfence();
  atomicExch(&words[1], 0);
}

// ---- pageable_source: a stream's host function fills what the next copy reads in its call ----------------
void pageable_source(bool fixed) {
  static std::vector<int> source;
  source.assign(planted::kCount, 0);
  DeviceBuffer<int> data(0, planted::kCount);
  const Stream stream(0);
  const auto fill = [](void*) { source[3] = 1; };  // @pageable_source
  cudaLaunchHostFunc(stream, fill, nullptr);
  if (fixed) cudaStreamSynchronize(stream);
  int* to = data.data();
  cudaMemcpyAsync(to, source.data(), planted::kBytes, cudaMemcpyDefault, stream);  // @pageable_source
  cudaStreamSynchronize(stream);
}

// ---- stuck_flag, stuck_lock: no thread writes the awaited word. Deadlocks --------------------------------
__global__ void await_flag(int* words, bool fixed) {
  const DeviceWord flag(words[2]);
  if (fixed) flag.store(7);
  while (flag.load(cuda::memory_order_acquire) != 7) {  // @stuck_flag @stuck_flag
  }
}

__global__ void keep_lock(int* words, bool fixed) {
  while (atomicCAS(words, 0, 1) != 0) {  // @stuck_lock @stuck_lock
  }
  __threadfence();
  if (fixed) atomicExch(words, 0);
}

// ---- too_many_blocks: each block waits for all, and one block does not fit. A deadlock -------------------
__global__ void wait_for_all(int* words) {
  const DeviceWord arrived(words[0]);
  arrived.fetch_add(1);
  while (arrived.load() < static_cast<int>(gridDim.x)) {  // @too_many_blocks @too_many_blocks
  }
}
void too_many_blocks(bool fixed) {
  constexpr std::size_t kShared = 48 * 1024;
  DeviceBuffer<int> words(0, 1);
  cudaMemset(words.data(), 0, words.bytes());
  int on_each = 0, multiprocessors = 0;
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&on_each, wait_for_all, 1, kShared);
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0);
  const int room = on_each * multiprocessors;
  wait_for_all<<<fixed ? room : room + 1, 1, kShared>>>(words.data());
  CUDA_CHECK(cudaDeviceSynchronize());
}

// ---- masks: the two halves of a warp call with different, overlapping masks. A deadlock ------------------
__global__ void meet_with_masks(bool fixed) {
  if (threadIdx.x < 16) {
    __syncwarp(fixed ? 0x0000ffffu : 0x0001ffffu);  // @masks
  } else {
    __syncwarp(fixed ? 0xffff0000u : 0xffff8000u);  // @masks
  }
}
void masks(bool fixed) {
  meet_with_masks<<<1, 32>>>(fixed);
  CUDA_CHECK(cudaDeviceSynchronize());
}

// ---- wild, freed: a kernel writes past its memory; memory is freed while a graph has its address ---------
__global__ void write_to(int* words, int index) {
  if (threadIdx.x == 1) words[index] = 1;  // @wild @freed
}
void wild(bool fixed) {
  DeviceBuffer<int> words(0, planted::kCount);  // @wild
  write_to<<<1, 2>>>(words.data(), fixed ? 255 : 256);
  CUDA_CHECK(cudaDeviceSynchronize());
}

void freed(bool fixed) {
  int* words = nullptr;
  CUDA_CHECK(cudaMalloc(&words, planted::kBytes));
  const Stream stream(0);
  const Graph graph = Graph::capture(stream, [&] { write_to<<<1, 2, 0, stream>>>(words, 5); });
  if (fixed) graph.launch(stream);
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaFree(words));  // @freed
  if (!fixed) graph.launch(stream);
  CUDA_CHECK(cudaDeviceSynchronize());
}

// ---- far: 1 GiB away, where ThreadSanitizer itself has no memory
__global__ void write_far(int* words, std::size_t index) { words[index] = 1; }  // @far
void far(bool fixed) {
  DeviceBuffer<int> words(0, planted::kCount);
  write_far<<<1, 1>>>(words.data(), fixed ? 0 : std::size_t{1} << 28);  // @far
  CUDA_CHECK(cudaDeviceSynchronize());
}

const planted::Cases kCases = {
    {"stuck_flag", case_of(await_flag, 6, 2, 4)},
    {"stuck_lock", case_of(keep_lock, 2, 1, 1)},
    {"too_many_blocks", too_many_blocks},
    {"masks", masks},
    {"wild", wild},
    {"far", far},
    {"freed", freed},
    {"warp", case_of(pass_on, 1, 64)},
    {"block", case_of(pass_on_later, 1, dim3(16, 16), 1, 64)},
    {"blocks", case_of(add_up, dim3(2, 2), 1)},
    {"cluster", case_of(read_neighbour, 2, 2)},
    {"plain_beside_atomic", case_of(count_and_look, 3, 1)},
    {"no_release", case_of(store_relaxed, 2, 1)},
    {"no_acquire", case_of(load_relaxed, 2, 1)},
    {"lock", case_of(count_under_lock, 4, 1)},
    {"pageable_source", pageable_source},
};

}  // namespace

int main(int argc, char** argv) { return planted::run_case(argc, argv, kCases); }
