// Kernels with one atomic access of too small a scope: two atomic accesses race unless the scope of each
// includes both threads. Command line and marks as in planted_bugs.cu.
#include <cuda.h>
#include <cuda_runtime.h>

#include <cuda/atomic>

#include "overlap/gpu/check.hpp"
#include "overlap/gpu/stream.hpp"
#include "planted.hpp"

namespace {

using overlap::DeviceBuffer;
using overlap::Stream;
template <cuda::thread_scope Scope>
using Word = cuda::atomic_ref<int, Scope>;
constexpr auto kSystem = cuda::thread_scope_system, kDevice = cuda::thread_scope_device,
               kBlock = cuda::thread_scope_block;

/// Eight words of GPU 1 that are 0; GPU 0 has peer access to them.
DeviceBuffer<int> shared_words() {
  DeviceBuffer<int> words(1, 8);
  CUDA_CHECK(cudaSetDevice(0));
  CUDA_CHECK(cudaDeviceEnablePeerAccess(1, 0));
  CUDA_CHECK(cudaSetDevice(1));
  CUDA_CHECK(cudaMemset(words.data(), 0, words.bytes()));
  CUDA_CHECK(cudaDeviceSynchronize());
  return words;
}

/// Runs the kernel on GPUs `first_gpu` to 1 at the same time.
template <class Kernel>
void run(Kernel kernel, bool fixed, int first_gpu, unsigned blocks) {
  const DeviceBuffer<int> words = shared_words();
  const Stream streams[] = {Stream(0), Stream(1)};
  for (int gpu = first_gpu; gpu < 2; ++gpu) {
    CUDA_CHECK(cudaSetDevice(gpu));
    kernel<<<blocks, 1, 0, streams[gpu]>>>(words.data(), gpu, fixed);
  }
  for (int gpu = first_gpu; gpu < 2; ++gpu) CUDA_CHECK(cudaStreamSynchronize(streams[gpu]));
}
template <class Kernel>
planted::Case on_one_gpu(Kernel kernel) {
  return [kernel](bool fixed) { run(kernel, fixed, 1, 2); };
}
template <class Kernel>
planted::Case on_two_gpus(Kernel kernel) {
  return [kernel](bool fixed) { run(kernel, fixed, 0, 1); };
}

// ---- block_add: two blocks add to one word at block scope -----------------------------------------------
__global__ void block_add(int* words, int, bool fixed) {
  if (fixed) {
    atomicAdd(words, 1);
  } else {
    atomicAdd_block(words, 1);  // @block_add @block_add
  }
}

// ---- block_add_once: only one of the two blocks adds at block scope -------------------------------------
__global__ void block_add_once(int* words, int, bool fixed) {
  if (fixed || blockIdx.x == 0) {
    atomicAdd(words, 1);  // @block_add_once
  } else {
    atomicAdd_block(words, 1);  // @block_add_once
  }
}

// ---- block_load: a flag is stored at device scope, and another block loads it at block scope ------------
template <cuda::thread_scope Scope>
__device__ int load(int* word) {
  return Word<Scope>(*word).load(cuda::memory_order_acquire);  // @block_load
}
__global__ void block_load(int* words, int, bool fixed) {
  if (blockIdx.x == 0) {
    Word<kDevice>(words[1]).store(1, cuda::memory_order_release);  // @block_load
  } else {
    while ((fixed ? load<kDevice>(&words[1]) : load<kBlock>(&words[1])) == 0) {
    }
  }
}

// ---- block_lock: two blocks share a lock of block scope -------------------------------------------------
__global__ void block_lock(int* words, int, bool fixed) {
  while ((fixed ? atomicCAS(&words[1], 0, 1) : atomicCAS_block(&words[1], 0, 1)) != 0) {  // @block_lock
  }
  __threadfence();
  words[0] += 1;
  __threadfence();
  fixed ? atomicExch(&words[1], 0) : atomicExch_block(&words[1], 0);  // @block_lock
}

// ---- device_add: two GPUs add to one word at device scope -----------------------------------------------
__global__ void device_add(int* words, int, bool fixed) {
  if (fixed) {
    atomicAdd_system(words, 1);
  } else {
    atomicAdd(words, 1);  // @device_add @device_add
  }
}

// ---- device_raise: GPU 0 raises a signal of GPU 1 at device scope ---------------------------------------
template <cuda::thread_scope Scope>
__device__ void raise(int* word) {
  Word<Scope>(*word).fetch_add(1, cuda::memory_order_release);  // @device_raise
}
__global__ void device_raise(int* words, int gpu, bool fixed) {
  if (gpu == 0) {
    fixed ? raise<kSystem>(&words[1]) : raise<kDevice>(&words[1]);
  } else {
    while (Word<kSystem>(words[1]).load(cuda::memory_order_acquire) == 0) {  // @device_raise
    }
  }
}

// ---- device_fence: GPU 0 hands over to GPU 1 behind a fence of its own GPU ------------------------------
__global__ void device_fence(int* words, int gpu, bool fixed) {
  if (gpu == 0) {
    words[0] = 1;  // @device_fence
    fixed ? __threadfence_system() : __threadfence();
    atomicExch_system(&words[1], 1);
  } else {
    while (atomicAdd_system(&words[1], 0) == 0) {
    }
    __threadfence_system();
    words[2] = words[0];  // @device_fence
  }
}

// ---- device_raise_for_a_stream: the same, and a stream of GPU 1 waits for the signal --------------------
template <cuda::thread_scope Scope>
__device__ void store(int* word) {
  Word<Scope>(*word).store(1, cuda::memory_order_release);  // @device_raise_for_a_stream
}
__global__ void raise_for_a_stream(int* words, bool fixed) {
  fixed ? store<kSystem>(&words[1]) : store<kDevice>(&words[1]);
}
void device_raise_for_a_stream(bool fixed) {
  const DeviceBuffer<int> words = shared_words();
  const Stream raising(0), waiting(1);
  CUDA_CHECK(cudaSetDevice(0));
  raise_for_a_stream<<<1, 1, 0, raising>>>(words.data(), fixed);
  const auto word = reinterpret_cast<CUdeviceptr>(&words.data()[1]);
  CU_CHECK(cuStreamWaitValue32(waiting, word, 1, CU_STREAM_WAIT_VALUE_GEQ));  // @device_raise_for_a_stream
  CUDA_CHECK(cudaStreamSynchronize(waiting));
  CUDA_CHECK(cudaStreamSynchronize(raising));
}

const planted::Cases kCases = {
    {"block_add", on_one_gpu(block_add)},        {"block_add_once", on_one_gpu(block_add_once)},
    {"block_load", on_one_gpu(block_load)},      {"block_lock", on_one_gpu(block_lock)},
    {"device_add", on_two_gpus(device_add)},     {"device_raise", on_two_gpus(device_raise)},
    {"device_fence", on_two_gpus(device_fence)}, {"device_raise_for_a_stream", device_raise_for_a_stream},
};

}  // namespace

int main(int argc, char** argv) { return planted::run_case(argc, argv, kCases); }
