// Random kernels on several GPUs against a plain reference: barriers, shuffles, votes, atomics, early exits
// and signals between blocks and GPUs, between copies on other streams.
//   random_kernels FIRST COUNT    kernels of the seeds from FIRST on, each in time order and in two other
//   orders
// Exit status: 1 wrong result, 2 failed call.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda/atomic>
#include <exception>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "vgpu/control.hpp"

namespace {

constexpr int kGpus = 3, kBlocks = 2, kMaxThreads = 136, kWarps = (kMaxThreads + 31) / 32;
constexpr std::size_t kValues = kBlocks * kMaxThreads;

enum Kind { kMix, kRotate, kShuffle, kVote, kHalves, kCount, kAdd, kSum, kExit, kGrid, kRing, kKinds };
struct Op {
  int kind;
  unsigned a, b;
  unsigned alive[kBlocks][kWarps];  // active lanes, equal on each GPU
  int leader[kBlocks];              // the first active thread; kMaxThreads: none
};

__host__ __device__ unsigned hash(unsigned a, unsigned b) {
  unsigned x = (a ^ b * 0x9e3779b9u) * 0x85ebca6bu;
  x = (x ^ x >> 13) * 0xc2b2ae35u;
  return x ^ x >> 16;
}
__host__ __device__ bool leaves(const Op& op, int block, int thread) {
  return hash(op.a, static_cast<unsigned>(block * kMaxThreads + thread)) % (2 + op.b % 7) == 0;
}

/// The words of a GPU, one array after another.
struct Memory {
  unsigned* words;
  int count;  // number of operations
  __device__ unsigned* value(int block, int thread) const { return words + block * kMaxThreads + thread; }
  /// For each operation: a sum and a maximum over all threads; the number of blocks that signalled this
  /// GPU's.
  __device__ unsigned* sum(int i) const { return words + kValues + i; }
  __device__ unsigned* maximum(int i) const { return sum(count + i); }
  __device__ unsigned* spoken(int i) const { return maximum(count + i); }
  /// For each block: the value that it published; the value from the previous GPU, and its flag.
  __device__ unsigned* said(int i, int block) const { return spoken(count + i * kBlocks + block); }
  __device__ unsigned* box(int i, int block) const { return said(count + i, block); }
  __device__ unsigned* flag(int i, int block) const { return box(count + i, block); }
};

using Signal = cuda::atomic_ref<unsigned, cuda::thread_scope_system>;
using Counter = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;

template <class Word>
__device__ void wait(unsigned* word, unsigned value) {
  while (Word(*word).load(cuda::memory_order_acquire) != value) {
  }
}

__global__ void interpret(const Op* ops, Memory own, Memory next) {
  __shared__ unsigned cells[kMaxThreads], sum;
  const int thread = static_cast<int>(threadIdx.x), block = static_cast<int>(blockIdx.x), lane = thread % 32;
  unsigned v = *own.value(block, thread);
  cells[thread] = 0;
  if (thread == 0) sum = 0;
  __syncthreads();
  for (int i = 0; i < own.count; ++i) {
    const Op& op = ops[i];
    const unsigned alive = op.alive[block][thread / 32];
    const bool leads = thread == op.leader[block];
    switch (op.kind) {
      case kMix:
        v = v * op.a + op.b;
        break;
      case kRotate:
        cells[thread] = v;
        __syncthreads();
        v += cells[(thread + op.a) % blockDim.x];
        __syncthreads();
        break;
      case kShuffle: {
        const int from = (lane ^ static_cast<int>(op.a)) % 32;
        v += 3 * __shfl_sync(alive, v, (alive >> from & 1) != 0 ? from : lane);
        break;
      }
      case kVote:
        v += __ballot_sync(alive, v >> op.a % 32 & 1) + __reduce_add_sync(alive, v);
        break;
      case kHalves:
        if (lane % 2 == 0) {
          v += __ballot_sync(alive & 0x55555555, v >> op.a % 32 & 1);
        } else {
          v ^= __reduce_max_sync(alive & 0xaaaaaaaa, v);
        }
        break;
      case kCount:
        v += static_cast<unsigned>(__syncthreads_count(static_cast<int>(v >> op.a % 32 & 1)));
        break;
      case kAdd:
        atomicAdd(own.sum(i), v);
        atomicMax(own.maximum(i), v);
        break;
      case kSum:
        __syncthreads();
        atomicAdd(&sum, v);
        __syncthreads();
        v += sum;
        __syncthreads();
        if (leads) sum = 0;
        __syncthreads();
        break;
      case kExit:
        if (leaves(op, block, thread)) {
          *own.value(block, thread) = v;
          return;
        }
        break;
      case kGrid: {
        if (leads) {
          *own.said(i, block) = v;
          Counter(*own.spoken(i)).fetch_add(1, cuda::memory_order_acq_rel);
          wait<Counter>(own.spoken(i), op.b);
        }
        __syncthreads();
        for (int b = 0; b < kBlocks; ++b) v += *own.said(i, b);
        break;
      }
      case kRing:
        if (leads) {
          *next.box(i, block) = v;
          Signal(*next.flag(i, block)).store(1, cuda::memory_order_release);
          wait<Signal>(own.flag(i, block), 1);
        }
        __syncthreads();
        v += *own.box(i, block);
        break;
    }
  }
  *own.value(block, thread) = v;
}

struct Kernel {
  int threads;
  std::vector<Op> ops;
};

Kernel make_kernel(unsigned seed) {
  std::mt19937 random(seed);
  constexpr int kThreads[] = {1, 17, 32, 47, 64, 96, kMaxThreads};
  Kernel kernel{kThreads[random() % std::size(kThreads)], {}};
  std::vector<bool> left(kBlocks * kMaxThreads);
  for (int count = 4 + static_cast<int>(random() % 12); count > 0; --count) {
    Op op{static_cast<int>(random() % kKinds), static_cast<unsigned>(random() % 1000 * 2 + 1), 0, {}, {}};
    op.b = static_cast<unsigned>(random());
    unsigned blocks = 0;
    for (int block = 0; block < kBlocks; ++block) {
      op.leader[block] = kMaxThreads;
      for (int thread = kernel.threads; thread-- > 0;) {
        if (left[block * kMaxThreads + thread]) continue;
        op.alive[block][thread / 32] |= 1u << thread % 32;
        op.leader[block] = thread;
        if (op.kind == kExit && leaves(op, block, thread)) left[block * kMaxThreads + thread] = true;
      }
      blocks += op.leader[block] != kMaxThreads;
    }
    if (op.kind == kGrid) op.b = blocks;  // the number of blocks that signal
    kernel.ops.push_back(op);
  }
  return kernel;
}

/// The reference of one block: all threads finish an operation before the next begins.
struct Block {
  std::vector<unsigned> v, cells;
  std::vector<bool> alive;
};

void interpret_alone(const Op& op, int number, Block& block) {
  const std::vector<unsigned> before = block.v;
  const auto threads = static_cast<int>(before.size());
  const auto each = [&](auto action) {
    for (int thread = 0; thread < threads; ++thread) {
      if (block.alive[thread]) action(thread, block.v[thread]);
    }
  };
  /// Folds the values of the masked lanes of one warp, or of all warps.
  const auto fold = [&](int warp, unsigned mask, auto combine) {
    unsigned result = 0;
    for (int thread = 0; thread < threads; ++thread) {
      const bool meant = (warp < 0 || thread / 32 == warp) && (mask >> thread % 32 & 1) != 0;
      if (meant && block.alive[thread]) result = combine(result, thread);
    }
    return result;
  };
  const auto sum = [&](unsigned all, int thread) { return all + before[thread]; };
  const auto largest = [&](unsigned all, int thread) { return std::max(all, before[thread]); };
  const auto bits = [&](unsigned all, int thread) {
    return all | (before[thread] >> op.a % 32 & 1) << thread % 32;
  };
  switch (op.kind) {
    case kMix:
      return each([&](int, unsigned& v) { v = v * op.a + op.b; });
    case kRotate:
      each([&](int thread, unsigned& v) { block.cells[thread] = v; });
      return each([&](int thread, unsigned& v) { v += block.cells[(thread + op.a) % threads]; });
    case kShuffle:
      return each([&](int thread, unsigned& v) {
        const int from = thread / 32 * 32 + (thread % 32 ^ static_cast<int>(op.a)) % 32;
        v += 3 * before[from < threads && block.alive[from] ? from : thread];
      });
    case kVote:
      return each(
          [&](int thread, unsigned& v) { v += fold(thread / 32, ~0u, bits) + fold(thread / 32, ~0u, sum); });
    case kHalves:
      return each([&](int thread, unsigned& v) {
        if (thread % 2 == 0) {
          v += fold(thread / 32, 0x55555555, bits);
        } else {
          v ^= fold(thread / 32, 0xaaaaaaaa, largest);
        }
      });
    case kCount: {
      const unsigned count =
          fold(-1, ~0u, [&](unsigned all, int thread) { return all + (before[thread] >> op.a % 32 & 1); });
      return each([&](int, unsigned& v) { v += count; });
    }
    case kSum: {
      const unsigned all = fold(-1, ~0u, sum);
      return each([&](int, unsigned& v) { v += all; });
    }
    case kExit:
      for (int thread = 0; thread < threads; ++thread) {
        if (leaves(op, number, thread)) block.alive[thread] = false;
      }
  }
}

unsigned first_value(int gpu, int block, int thread) {
  return hash(static_cast<unsigned>(gpu), static_cast<unsigned>(block * kMaxThreads + thread));
}

/// Each GPU's first words at the end: values, sums and maxima.
std::vector<std::vector<unsigned>> expected(const Kernel& kernel) {
  const std::size_t count = kernel.ops.size();
  std::vector<std::vector<unsigned>> results(kGpus, std::vector<unsigned>(kValues + 2 * count));
  std::vector<std::vector<Block>> gpus(kGpus);
  for (int gpu = 0; gpu < kGpus; ++gpu) {
    for (int block = 0; block < kBlocks; ++block) {
      gpus[gpu].push_back(
          {{}, std::vector<unsigned>(kernel.threads), std::vector<bool>(kernel.threads, true)});
      for (int t = 0; t < kernel.threads; ++t) gpus[gpu][block].v.push_back(first_value(gpu, block, t));
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    const Op& op = kernel.ops[i];
    const auto before = gpus;
    const auto said = [&](int gpu, int block) {
      return op.leader[block] < kernel.threads ? before[gpu][block].v[op.leader[block]] : 0;
    };
    for (int gpu = 0; gpu < kGpus; ++gpu) {
      unsigned &sum = results[gpu][kValues + i], &largest = results[gpu][kValues + count + i];
      for (int number = 0; number < kBlocks; ++number) {
        Block& block = gpus[gpu][number];
        interpret_alone(op, number, block);
        for (int thread = 0; thread < kernel.threads; ++thread) {
          if (!block.alive[thread]) continue;
          unsigned& v = block.v[thread];
          if (op.kind == kAdd) sum += v, largest = std::max(largest, v);
          if (op.kind == kRing) v += said((gpu + kGpus - 1) % kGpus, number);
          for (int b = 0; op.kind == kGrid && b < kBlocks; ++b) v += said(gpu, b);
        }
      }
    }
  }
  for (int gpu = 0; gpu < kGpus; ++gpu) {
    for (int block = 0; block < kBlocks; ++block)
      std::ranges::copy(gpus[gpu][block].v, results[gpu].begin() + block * kMaxThreads);
  }
  return results;
}

void require(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(vgpu::last_error_detail());
}

/// One GPU: a stream for the kernel, and one for the copies before and after it.
struct Gpu {
  cudaStream_t work, copies;
  cudaEvent_t ready, done;
  Memory memory;
  Op* ops;
  unsigned* pinned;  // host copy of the memory
};

Gpu prepare(int number, const Kernel& kernel) {
  Gpu gpu{};
  require(cudaSetDevice(number));
  require(cudaDeviceEnablePeerAccess((number + 1) % kGpus, 0));
  for (cudaStream_t* stream : {&gpu.work, &gpu.copies})
    require(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
  for (cudaEvent_t* event : {&gpu.ready, &gpu.done}) require(cudaEventCreate(event));
  const std::size_t count = kernel.ops.size(), bytes = 4 * (kValues + count * (3 + 3 * kBlocks));
  unsigned* words = nullptr;
  require(cudaMalloc(&words, bytes));
  require(cudaMalloc(&gpu.ops, count * sizeof(Op)));
  require(cudaMallocHost(&gpu.pinned, bytes));
  gpu.memory = {words, static_cast<int>(count)};
  std::memset(gpu.pinned, 0, bytes);
  for (int i = 0; i < kBlocks * kernel.threads; ++i) {
    const int block = i / kernel.threads, thread = i % kernel.threads;
    gpu.pinned[block * kMaxThreads + thread] = first_value(number, block, thread);
  }
  require(cudaMemcpyAsync(words, gpu.pinned, bytes, cudaMemcpyDefault, gpu.copies));
  require(cudaMemcpyAsync(gpu.ops, kernel.ops.data(), count * sizeof(Op), cudaMemcpyDefault, gpu.copies));
  require(cudaEventRecord(gpu.ready, gpu.copies));
  return gpu;
}

std::vector<std::vector<unsigned>> run(const Kernel& kernel) {
  const std::size_t count = kernel.ops.size(), compared = kValues + 2 * count;
  std::vector<Gpu> gpus;
  for (int number = 0; number < kGpus; ++number) gpus.push_back(prepare(number, kernel));
  for (int number = 0; number < kGpus; ++number) {
    const Gpu &gpu = gpus[number], &next = gpus[(number + 1) % kGpus];
    require(cudaSetDevice(number));
    require(cudaStreamWaitEvent(gpu.work, gpu.ready));
    require(cudaStreamWaitEvent(gpu.work, next.ready));
    interpret<<<kBlocks, kernel.threads, 0, gpu.work>>>(gpu.ops, gpu.memory, next.memory);
    require(cudaGetLastError());
    require(cudaEventRecord(gpu.done, gpu.work));
    require(cudaStreamWaitEvent(gpu.copies, gpu.done));
    require(cudaMemcpyAsync(gpu.pinned, gpu.memory.words, compared * 4, cudaMemcpyDefault, gpu.copies));
  }
  std::vector<std::vector<unsigned>> results;
  for (const Gpu& gpu : gpus) {
    require(cudaStreamSynchronize(gpu.copies));
    results.emplace_back(gpu.pinned, gpu.pinned + compared);
  }
  return results;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s FIRST COUNT\n", argv[0]);
    return 2;
  }
  const int first = std::atoi(argv[1]), count = std::atoi(argv[2]);
  try {
    for (int seed = first; seed < first + count; ++seed) {
      const Kernel kernel = make_kernel(static_cast<unsigned>(seed));
      const auto right = expected(kernel);
      for (const char* schedule : {"time", "1", "2"}) {
        vgpu::reset();
        if (schedule[0] != 't') vgpu::use_schedule(std::stoull(schedule));
        if (run(kernel) == right) continue;
        std::printf("wrong result: kernel %d, schedule %s\n", seed, schedule);
        return 1;
      }
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
  std::printf("%d kernels, each in 3 schedules: right\n", count);
}
