// Kernels whose blocks race, although each block's threads meet at barriers or in warp functions, and the
// same kernels without the bug. Command line: planted.hpp. Marks as in planted_bugs.cu.
#include <cuda_runtime.h>

#include <cuda/atomic>
#include <stdexcept>

#include "overlap/gpu/stream.hpp"
#include "planted.hpp"

namespace {

using overlap::DeviceBuffer;

constexpr int kThreads = 64, kBlocks = 8;

void await_kernels() {
  if (cudaDeviceSynchronize() != cudaSuccess) throw std::runtime_error("a kernel failed");
}

// ---- barrier_A_B, shuffle_A_B: block B writes its sum to block A's element -------------------------------
struct Pair {
  unsigned int first, second;
};

/// The element for the block's sum; with the bug the pair's second block gets the first block's element.
__device__ inline int* place(int* sums, Pair pair, bool fixed) {
  return &sums[!fixed && blockIdx.x == pair.second ? pair.first : blockIdx.x];
}

__global__ void sum_by_barriers(int* sums, Pair pair, bool fixed) {
  __shared__ int cells[kThreads];
  cells[threadIdx.x] = static_cast<int>(threadIdx.x);
  for (unsigned int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) cells[threadIdx.x] += cells[threadIdx.x + half];
  }
  if (threadIdx.x == 0) *place(sums, pair, fixed) = cells[0];  // @barrier @barrier
}

__global__ void sum_by_shuffles(int* sums, Pair pair, bool fixed) {
  int sum = static_cast<int>(threadIdx.x);
  for (unsigned int half = 16; half > 0; half /= 2) sum += __shfl_down_sync(0xffffffff, sum, half);
  if (threadIdx.x == 0) *place(sums, pair, fixed) = sum;  // @shuffle @shuffle
}

// ---- shuffle_alone, ballot_alone: lanes meet in a function that orders no memory -------------------------
__global__ void by_shuffle(int* results, bool fixed) {
  __shared__ int cells[32];
  cells[threadIdx.x] = 1;  // @shuffle_alone
  const int next = __shfl_sync(0xffffffff, static_cast<int>(threadIdx.x), (threadIdx.x + 1) % 32);
  if (fixed) __syncwarp();
  results[threadIdx.x] = cells[next];  // @shuffle_alone
}
__global__ void by_ballot(int* results, bool fixed) {
  __shared__ int cells[32];
  cells[threadIdx.x] = 1;  // @ballot_alone
  const bool all = __ballot_sync(0xffffffff, 1) == 0xffffffff;
  if (fixed) __syncwarp();
  if (all) results[threadIdx.x] = cells[(threadIdx.x + 1) % 32];  // @ballot_alone
}
template <auto kKernel>
void in_a_warp(bool fixed) {
  const DeviceBuffer<int> results(0, 32);
  kKernel<<<1, 32>>>(results.data(), fixed);
  await_kernels();
}

template <auto kKernel, unsigned int kFirst, unsigned int kSecond>
void sum_up(bool fixed) {
  DeviceBuffer<int> sums(0, kBlocks);
  kKernel<<<kBlocks, kThreads>>>(sums.data(), {kFirst, kSecond}, fixed);
  await_kernels();
}

// ---- last_block: the block that arrives last adds all partial sums; its fences are missing ---------------
__global__ void add_up(int* partial, int* arrived, int* total, bool fixed) {
  __shared__ bool last;
  __syncthreads();
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = 1;  // @last_block
    if (fixed) __threadfence();
    last = atomicAdd(arrived, 1) == kBlocks - 1;
    if (fixed) __threadfence();
  }
  __syncthreads();
  if (last && threadIdx.x < kBlocks) atomicAdd(total, partial[threadIdx.x]);  // @last_block
}
void last_block(bool fixed) {
  DeviceBuffer<int> partial(0, kBlocks), words(0, 2);
  cudaMemset(words.data(), 0, words.bytes());
  add_up<<<kBlocks, kThreads>>>(partial.data(), words.data(), words.data() + 1, fixed);
  await_kernels();
}

// ---- relaxed_spin: a block spins on another block's flag, relaxed, before its own barrier ----------------
__global__ void hand_over(int* data, int* flag, int* results, bool fixed) {
  const cuda::atomic_ref<int, cuda::thread_scope_device> ready(*flag);
  if (blockIdx.x == 0) {
    data[threadIdx.x] = 1;  // @relaxed_spin
    __syncthreads();
    if (threadIdx.x == 0) ready.store(1, fixed ? cuda::memory_order_release : cuda::memory_order_relaxed);
  } else {
    if (threadIdx.x == 0) {
      while (ready.load(fixed ? cuda::memory_order_acquire : cuda::memory_order_relaxed) == 0) {
      }
    }
    __syncthreads();
    results[threadIdx.x] = data[threadIdx.x];  // @relaxed_spin
  }
}
void relaxed_spin(bool fixed) {
  DeviceBuffer<int> data(0, kThreads), flag(0, 1), results(0, kThreads);
  cudaMemset(flag.data(), 0, flag.bytes());
  hand_over<<<2, kThreads>>>(data.data(), flag.data(), results.data(), fixed);
  await_kernels();
}

// ---- neighbour_cell: a block reads a cell that the next block updates in the same sweep ------------------
__global__ void sweep(const int* from, int* to, int cells) {
  const int cell = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
  __shared__ int sums[kThreads];
  sums[threadIdx.x] = from[(cell + 1) % cells];  // @neighbour_cell
  __syncthreads();
  to[cell] = sums[threadIdx.x] + sums[threadIdx.x ^ 1];  // @neighbour_cell
}
void neighbour_cell(bool fixed) {
  constexpr int kCells = 4 * kThreads;
  DeviceBuffer<int> from(0, kCells), to(0, kCells);
  cudaMemset(from.data(), 0, from.bytes());
  sweep<<<4, kThreads>>>(from.data(), fixed ? to.data() : from.data(), kCells);
  await_kernels();
}

// ---- grid_barrier: each thread waits for all threads of the grid, relaxed --------------------------------
__global__ void shift_by_a_block(int* data, int* arrived, int* results, bool fixed) {
  const int threads = static_cast<int>(gridDim.x * blockDim.x);
  const int self = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const cuda::atomic_ref<int, cuda::thread_scope_device> count(*arrived);
  data[self] = self;  // @grid_barrier
  count.fetch_add(1, fixed ? cuda::memory_order_release : cuda::memory_order_relaxed);
  while (count.load(fixed ? cuda::memory_order_acquire : cuda::memory_order_relaxed) < threads) {
  }
  results[self] = data[(self + static_cast<int>(blockDim.x)) % threads];  // @grid_barrier
}
void grid_barrier(bool fixed) {
  constexpr int kBlock = 1024;
  const int grid = fixed ? 16 : 4;  // with more waiting threads, ThreadSanitizer forgets the first access
  DeviceBuffer<int> data(0, grid * kBlock), arrived(0, 1), results(0, grid * kBlock);
  cudaMemset(arrived.data(), 0, arrived.bytes());
  shift_by_a_block<<<grid, kBlock>>>(data.data(), arrived.data(), results.data(), fixed);
  await_kernels();
}

// ---- shared_flags: the grid barriers of two streams' kernels share one counter ---------------------------
__global__ void swap_cells(int* cells, int* arrived) {
  const cuda::atomic_ref<int, cuda::thread_scope_device> count(*arrived);
  const int blocks = static_cast<int>(gridDim.x), self = static_cast<int>(blockIdx.x);
  cells[self] = self;  // @shared_flags
  count.fetch_add(1, cuda::memory_order_acq_rel);
  while (count.load(cuda::memory_order_acquire) < blocks) {
  }
  cells[blocks + self] = cells[blocks - 1 - self];  // @shared_flags
}
void shared_flags(bool fixed) {
  constexpr int kPair = 2;
  DeviceBuffer<int> cells[2] = {{0, 2 * kPair}, {0, 2 * kPair}}, arrived(0, 2);
  cudaMemset(arrived.data(), 0, arrived.bytes());
  await_kernels();
  const overlap::Stream streams[2] = {overlap::Stream(0), overlap::Stream(0)};
  for (int i = 0; i < 2; ++i)
    swap_cells<<<kPair, 1, 0, streams[i]>>>(cells[i].data(), arrived.data() + (fixed ? i : 0));
  await_kernels();
}

const planted::Cases kCases = {
    {"barrier_0_1", sum_up<sum_by_barriers, 0, 1>},
    {"barrier_0_2", sum_up<sum_by_barriers, 0, 2>},
    {"barrier_1_3", sum_up<sum_by_barriers, 1, 3>},
    {"barrier_0_7", sum_up<sum_by_barriers, 0, 7>},
    {"shuffle_0_1", sum_up<sum_by_shuffles, 0, 1>},
    {"shuffle_0_2", sum_up<sum_by_shuffles, 0, 2>},
    {"shuffle_1_3", sum_up<sum_by_shuffles, 1, 3>},
    {"shuffle_0_7", sum_up<sum_by_shuffles, 0, 7>},
    {"shuffle_alone", in_a_warp<by_shuffle>},
    {"ballot_alone", in_a_warp<by_ballot>},
    {"last_block", last_block},
    {"relaxed_spin", relaxed_spin},
    {"neighbour_cell", neighbour_cell},
    {"grid_barrier", grid_barrier},
    {"shared_flags", shared_flags},
};

}  // namespace

int main(int argc, char** argv) { return planted::run_case(argc, argv, kCases); }
