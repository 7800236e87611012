// Kernels that order the accesses of blocks, or of one block's threads, by fences and flags; in each case one
// of these is missing, misplaced or of too small a scope. Command line and marks as in planted_bugs.cu.
#include <cuda.h>
#include <cuda_runtime.h>

#include <cuda/atomic>

#include "overlap/gpu/check.hpp"
#include "overlap/gpu/stream.hpp"
#include "planted.hpp"

namespace {

using overlap::DeviceBuffer;
using overlap::Stream;

/// Runs the kernel on `blocks` blocks of `threads` threads, with eight words that are 0.
template <class Kernel>
void run(Kernel kernel, bool fixed, unsigned blocks = 2, unsigned threads = 1) {
  const DeviceBuffer<int> words(0, 8);
  const Stream stream(0);
  CUDA_CHECK(cudaMemsetAsync(words.data(), 0, words.bytes(), stream));
  kernel<<<blocks, threads, 0, stream>>>(words.data(), fixed);
  CUDA_CHECK(cudaStreamSynchronize(stream));
}

__device__ bool is(volatile int& word, int value) { return word == value; }
__device__ bool is_set(int* flag) { return atomicAdd(flag, 0) != 0; }

// ---- fence_alone: both blocks execute fences, but no flag orders one block after the other ---------------
__global__ void fence_alone(int* words, bool fixed) {
  if (fixed && blockIdx.x == 1) {
    while (!is_set(&words[1])) {
    }
  }
  __threadfence();
  words[0] = static_cast<int>(blockIdx.x);  // @fence_alone @fence_alone
  __threadfence();
  if (fixed) atomicExch(&words[1], 1);
}

enum class Fence { kNone, kBlock, kDevice };
__device__ void execute(Fence fence) {
  if (fence == Fence::kBlock) __threadfence_block();
  if (fence == Fence::kDevice) __threadfence();
}

// ---- fence_release, fence_before_the_write, block_fence_release: the writer's fence is missing, precedes
// the write and does not order it, or has block scope and orders nothing between two blocks
__device__ void pass_on(int* words, Fence before_the_write, Fence release) {
  if (blockIdx.x == 0) {
    execute(before_the_write);
    words[0] = 1;  // @fence_release @fence_before_the_write @block_fence_release
    execute(release);
    atomicExch(&words[1], 1);
  } else {
    while (!is_set(&words[1])) {
    }
    __threadfence();
    words[2] = words[0];  // @fence_release @fence_before_the_write @block_fence_release
  }
}
__global__ void fence_release(int* words, bool fixed) {
  pass_on(words, Fence::kNone, fixed ? Fence::kDevice : Fence::kNone);
}
__global__ void fence_before_the_write(int* words, bool fixed) {
  fixed ? pass_on(words, Fence::kNone, Fence::kDevice) : pass_on(words, Fence::kDevice, Fence::kNone);
}
__global__ void block_fence_release(int* words, bool fixed) {
  pass_on(words, Fence::kNone, fixed ? Fence::kDevice : Fence::kBlock);
}

// ---- fence_acquire, fence_before_the_look, block_fence_acquire: the same of the reader's fence
__device__ void take_over(int* words, Fence before_the_look, Fence acquire) {
  if (blockIdx.x == 0) {
    words[0] = 1;  // @fence_acquire @fence_before_the_look @block_fence_acquire
    __threadfence();
    atomicExch(&words[1], 1);
  } else {
    execute(before_the_look);
    while (!is_set(&words[1])) {
    }
    execute(acquire);
    words[2] = words[0];  // @fence_acquire @fence_before_the_look @block_fence_acquire
  }
}
__global__ void fence_acquire(int* words, bool fixed) {
  take_over(words, Fence::kNone, fixed ? Fence::kDevice : Fence::kNone);
}
__global__ void fence_before_the_look(int* words, bool fixed) {
  fixed ? take_over(words, Fence::kNone, Fence::kDevice) : take_over(words, Fence::kDevice, Fence::kNone);
}
__global__ void block_fence_acquire(int* words, bool fixed) {
  take_over(words, Fence::kNone, fixed ? Fence::kDevice : Fence::kBlock);
}

// ---- fence_other_word: the write behind the fence is to a word that the reader does not load ------------
__global__ void fence_other_word(int* words, bool fixed) {
  if (blockIdx.x == 0) {
    if (!fixed) atomicExch(&words[1], 1);
    words[0] = 1;  // @fence_other_word
    __threadfence();
    atomicExch(&words[fixed ? 1 : 3], 1);
  } else {
    while (!is_set(&words[1])) {
    }
    __threadfence();
    words[2] = words[0];  // @fence_other_word
  }
}

// ---- lock_acquire, lock_release: a lock without the fence after it is taken, or before its release -------
__device__ void add_under_lock(int* words, bool acquire, bool release) {
  while (atomicCAS(&words[1], 0, 1) != 0) {
  }
  if (acquire) __threadfence();
  words[0] += 1;  // @lock_acquire @lock_acquire @lock_release @lock_release
  if (release) __threadfence();
  atomicExch(&words[1], 0);
}
__global__ void lock_acquire(int* words, bool fixed) { add_under_lock(words, fixed, true); }
__global__ void lock_release(int* words, bool fixed) { add_under_lock(words, true, fixed); }

// ---- last_block: the block that counts last adds the words of all blocks --------------------------------
__global__ void last_block(int* words, bool fixed) {
  words[blockIdx.x] = 1;  // @last_block
  if (fixed) __threadfence();
  if (atomicAdd(&words[4], 1) != static_cast<int>(gridDim.x) - 1) return;
  __threadfence();
  for (unsigned block = 0; block < gridDim.x; ++block) words[5] += words[block];  // @last_block
}

// ---- last_block_of_many: the same as in the CUDA guide, with a barrier instead of the second fence ------
__global__ void last_block_of_many(int* words, bool fixed) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    words[blockIdx.x] = 1;  // @last_block_of_many
    if (fixed) __threadfence();
    last = atomicAdd(&words[4], 1) == static_cast<int>(gridDim.x) - 1;
  }
  __syncthreads();
  if (last && threadIdx.x < gridDim.x) atomicAdd(&words[5], words[threadIdx.x]);  // @last_block_of_many
}

// ---- fence_volatile: the flag is volatile, and the reader's fence is missing ----------------------------
__global__ void fence_volatile(int* words, bool fixed) {
  volatile int& flag = words[1];
  if (blockIdx.x == 0) {
    words[0] = 1;  // @fence_volatile
    __threadfence();
    flag = 1;
  } else {
    while (!is(flag, 1)) {
    }
    if (fixed) __threadfence();
    words[2] = words[0];  // @fence_volatile
  }
}

// ---- volatile_flag: without a fence before it, a volatile write counts as an ordinary write -------------
__global__ void volatile_flag(int* words, bool fixed) {
  volatile int& flag = words[1];
  if (blockIdx.x == 0) {
    words[0] = 1;
    if (fixed) __threadfence();
    flag = 1;  // @volatile_flag
  } else {
    while (flag == 0) {  // @volatile_flag
    }
    __threadfence();
    words[2] = words[0];
  }
}

// ---- fence_relaxed: relaxed accesses of cuda::atomic_ref; the writer's fence is missing -----------------
__global__ void fence_relaxed(int* words, bool fixed) {
  const cuda::atomic_ref<int, cuda::thread_scope_device> flag(words[1]);
  if (blockIdx.x == 0) {
    words[0] = 1;  // @fence_relaxed
    if (fixed) cuda::atomic_thread_fence(cuda::memory_order_release, cuda::thread_scope_device);
    flag.store(1, cuda::memory_order_relaxed);
  } else {
    while (flag.load(cuda::memory_order_relaxed) == 0) {
    }
    cuda::atomic_thread_fence(cuda::memory_order_acquire, cuda::thread_scope_device);
    words[2] = words[0];  // @fence_relaxed
  }
}

// ---- fence_and_acquire: a relaxed write, read with acquire; the writer's fence is missing ---------------
__global__ void fence_and_acquire(int* words, bool fixed) {
  const cuda::atomic_ref<int, cuda::thread_scope_device> flag(words[1]);
  if (blockIdx.x == 0) {
    words[0] = 1;  // @fence_and_acquire
    if (fixed) __threadfence();
    flag.fetch_add(1, cuda::memory_order_relaxed);
  } else {
    while (flag.load(cuda::memory_order_acquire) == 0) {
    }
    words[2] = words[0];  // @fence_and_acquire
  }
}

// ---- release_and_fence: a write with release, read relaxed; the reader's fence is missing ---------------
__global__ void release_and_fence(int* words, bool fixed) {
  const cuda::atomic_ref<int, cuda::thread_scope_device> flag(words[1]);
  if (blockIdx.x == 0) {
    words[0] = 1;  // @release_and_fence
    flag.store(1, cuda::memory_order_release);
  } else {
    while (flag.load(cuda::memory_order_relaxed) == 0) {
    }
    if (fixed) __threadfence();
    words[2] = words[0];  // @release_and_fence
  }
}

// ---- in_one_block, in_shared_memory: a fence of block scope suffices between two warps of a block -------
__device__ void between_warps(int* flag, int* words, bool fixed) {
  if (threadIdx.x == 0) {
    words[0] = 1;  // @in_one_block @in_shared_memory
    if (fixed) __threadfence_block();
    atomicExch_block(flag, 1);
  } else if (threadIdx.x == 32) {
    while (atomicAdd_block(flag, 0) == 0) {
    }
    __threadfence_block();
    words[2] = words[0];  // @in_one_block @in_shared_memory
  }
}
__global__ void in_one_block(int* words, bool fixed) { between_warps(&words[1], words, fixed); }
__global__ void in_shared_memory(int* words, bool fixed) {
  __shared__ int flag;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  between_warps(&flag, words, fixed);
}

// ---- fences_and_a_barrier: all threads of a block fence, meet, and one counts; only that one has a fence --
__global__ void fences_and_a_barrier(int* words, bool fixed) {
  __shared__ bool last;
  const unsigned other = (threadIdx.x + 1) % blockDim.x;
  words[blockIdx.x * blockDim.x + threadIdx.x] = 1;  // @fences_and_a_barrier
  if (fixed || threadIdx.x == 0) __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(&words[7], 1) == static_cast<int>(gridDim.x) - 1;
  __syncthreads();
  if (!last) return;
  __threadfence();
  int sum = 0;
  for (unsigned block = 0; block < gridDim.x; ++block)
    sum += words[block * blockDim.x + other];  // @fences_and_a_barrier
  if (sum == 0) atomicAdd(&words[6], 1);
}

// ---- stream_wait: a stream waits for a word; the kernel that writes it lacks its fence ------------------
__global__ void write_word(int* words, bool fixed) {
  words[0] = 1;  // @stream_wait
  if (fixed) __threadfence_system();
  atomicExch_system(&words[1], 1);
}
void stream_wait(bool fixed) {
  const DeviceBuffer<int> words(0, 8);
  const Stream writing(0), waiting(0);
  CUDA_CHECK(cudaMemset(words.data(), 0, words.bytes()));
  CUDA_CHECK(cudaDeviceSynchronize());
  write_word<<<1, 1, 0, writing>>>(words.data(), fixed);
  CU_CHECK(cuStreamWaitValue32(waiting, reinterpret_cast<CUdeviceptr>(&words.data()[1]), 1,
                               CU_STREAM_WAIT_VALUE_GEQ));
  planted::fill<<<1, 1, 0, waiting>>>(words.data(), 2);  // @stream_wait
  CUDA_CHECK(cudaDeviceSynchronize());
}

const planted::Cases kCases = {
    {"fence_alone", [](bool fixed) { run(fence_alone, fixed); }},
    {"fence_release", [](bool fixed) { run(fence_release, fixed); }},
    {"fence_acquire", [](bool fixed) { run(fence_acquire, fixed); }},
    {"fence_before_the_write", [](bool fixed) { run(fence_before_the_write, fixed); }},
    {"fence_before_the_look", [](bool fixed) { run(fence_before_the_look, fixed); }},
    {"fence_other_word", [](bool fixed) { run(fence_other_word, fixed); }},
    {"lock_acquire", [](bool fixed) { run(lock_acquire, fixed, 3); }},
    {"lock_release", [](bool fixed) { run(lock_release, fixed, 3); }},
    {"last_block", [](bool fixed) { run(last_block, fixed, 3); }},
    {"last_block_of_many", [](bool fixed) { run(last_block_of_many, fixed, 3, 3); }},
    {"fence_volatile", [](bool fixed) { run(fence_volatile, fixed); }},
    {"volatile_flag", [](bool fixed) { run(volatile_flag, fixed); }},
    {"fence_relaxed", [](bool fixed) { run(fence_relaxed, fixed); }},
    {"fence_and_acquire", [](bool fixed) { run(fence_and_acquire, fixed); }},
    {"release_and_fence", [](bool fixed) { run(release_and_fence, fixed); }},
    {"block_fence_release", [](bool fixed) { run(block_fence_release, fixed); }},
    {"block_fence_acquire", [](bool fixed) { run(block_fence_acquire, fixed); }},
    {"in_one_block", [](bool fixed) { run(in_one_block, fixed, 1, 64); }},
    {"in_shared_memory", [](bool fixed) { run(in_shared_memory, fixed, 1, 64); }},
    {"fences_and_a_barrier", [](bool fixed) { run(fences_and_a_barrier, fixed, 3, 2); }},
    {"stream_wait", stream_wait},
};

}  // namespace

int main(int argc, char** argv) { return planted::run_case(argc, argv, kCases); }
