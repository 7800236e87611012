// Kernels that each misuse an mbarrier, a bulk copy or a proxy fence, and the same kernels without the bug.
// Command line: planted.hpp. Marks as in planted_bugs.cu.
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cuda/atomic>
#include <cuda/ptx>
#include <stdexcept>
#include <string>

#include "hopper_test.hpp"
#include "overlap/gpu/stream.hpp"
#include "planted.hpp"

namespace {

using overlap::DeviceBuffer;
using overlap::Event;
using overlap::Stream;
using planted::fill;
using semantics::await_phase, semantics::start_barrier;
namespace ptx = cuda::ptx;
using ptx::scope_cta, ptx::sem_release, ptx::space_cluster, ptx::space_global, ptx::space_shared;

constexpr int kItems = 128;  // of a tile; also the threads of a block
constexpr int kTiles = 6, kStages = 2, kCount = kTiles * kItems;
constexpr std::uint32_t kTileBytes = kItems * sizeof(int);

using Kernel = void (*)(int* from, int* to, unsigned* flag, bool fixed);

/// The case that runs the kernel on two independent streams.
planted::Case on_two_streams(Kernel kernel, int blocks = 1) {
  return [kernel, blocks](bool fixed) {
    struct Setting {
      DeviceBuffer<int> from{0, kCount}, to{0, kCount};
      DeviceBuffer<unsigned> flag{0, 1};
      Stream stream{0};
    } settings[2];
    for (Setting& s : settings) {
      cudaMemsetAsync(s.from.data(), 0, s.from.bytes(), s.stream);
      cudaMemsetAsync(s.flag.data(), 0, s.flag.bytes(), s.stream);
      kernel<<<blocks, kItems, 0, s.stream>>>(s.from.data(), s.to.data(), s.flag.data(), fixed);
    }
    if (cudaDeviceSynchronize() != cudaSuccess) throw std::runtime_error("the kernels failed");
  };
}

__device__ inline void expect(std::uint64_t* barrier) { semantics::expect_bytes(barrier, kTileBytes); }

// ---- bulk_wait: a tile is read before its copy has completed ---------------------------------------------
__global__ void use_tile(int* from, int* to, unsigned* /*flag*/, bool fixed) {
  __shared__ std::uint64_t full;
  alignas(128) __shared__ int tile[kItems];
  start_barrier(&full, 1);
  if (threadIdx.x == 0) {
    expect(&full);
    ptx::cp_async_bulk(space_cluster, space_global, tile, from, kTileBytes, &full);  // @bulk_wait
  }
  if (fixed) await_phase(&full, 0);
  to[threadIdx.x] = tile[threadIdx.x];  // @bulk_wait
  if (!fixed) await_phase(&full, 0);
}

// ---- bulk_init: no fence publishes the initialised mbarrier to bulk copies. Refused -----------------------
__global__ void load_after_init(int* from, int* to, unsigned* /*flag*/, bool fixed) {
  __shared__ std::uint64_t full;
  alignas(128) __shared__ int tile[kItems];
  if (threadIdx.x == 32) {
    ptx::mbarrier_init(&full, 1);  // @bulk_init
    if (fixed) ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    expect(&full);
    ptx::cp_async_bulk(space_cluster, space_global, tile, from, kTileBytes, &full);  // @bulk_init
  }
  await_phase(&full, 0);
  to[threadIdx.x] = tile[threadIdx.x];
}

// ---- bulk_refill: a stage is refilled before its consumers have released it ------------------------------
__global__ void refill(int* from, int* to, unsigned* /*flag*/, bool fixed) {
  __shared__ std::uint64_t full[kTiles], empty[kStages];  // one phase of full[] for each tile
  alignas(128) __shared__ int stage[kStages][kItems];
  for (std::uint64_t& barrier : full) start_barrier(&barrier, 1);
  for (std::uint64_t& barrier : empty) start_barrier(&barrier, kItems);
  const auto fetch = [&](int tile) {
    const int s = tile % kStages;
    if (fixed) await_phase(&empty[s], tile / kStages + 1);
    expect(&full[tile]);
    ptx::cp_async_bulk(space_cluster, space_global, stage[s], from, kTileBytes, &full[tile]);  // @bulk_refill
  };
  if (threadIdx.x == 0) fetch(0);
  for (int tile = 0; tile < kTiles; ++tile) {
    if (threadIdx.x == 0 && tile + 1 < kTiles) fetch(tile + 1);
    await_phase(&full[tile], 0);
    to[tile * kItems + threadIdx.x] = stage[tile % kStages][threadIdx.x];  // @bulk_refill
    ptx::fence_proxy_async(space_shared);
    ptx::mbarrier_arrive(&empty[tile % kStages]);
  }
}

// ---- bulk_parity: the wait names the parity of the phase before, which is complete -----------------------
__global__ void wait_for_parity(int* from, int* to, unsigned* /*flag*/, bool fixed) {
  __shared__ std::uint64_t full;
  alignas(128) __shared__ int tile[kItems];
  start_barrier(&full, 1);
  if (threadIdx.x == 0) {
    expect(&full);
    ptx::cp_async_bulk(space_cluster, space_global, tile, from, kTileBytes, &full);  // @bulk_parity
  }
  await_phase(&full, fixed ? 0 : 1);
  to[threadIdx.x] = tile[threadIdx.x];  // @bulk_parity
  await_phase(&full, 0);
}

// ---- bulk_count: the mbarrier expects more bytes than the copy delivers. A deadlock ----------------------
__global__ void expect_too_much(int* from, int* to, unsigned* /*flag*/, bool fixed) {
  __shared__ std::uint64_t full;
  alignas(128) __shared__ int tile[kItems];
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&full, 1);  // @bulk_count
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    const std::uint32_t n = fixed ? kTileBytes : kTileBytes + 16;
    ptx::mbarrier_arrive_expect_tx(sem_release, scope_cta, space_shared, &full, n);  // @bulk_count
    ptx::cp_async_bulk(space_cluster, space_global, tile, from, kTileBytes, &full);
  }
  await_phase(&full, 0);
  to[threadIdx.x] = tile[threadIdx.x];
}

// ---- bulk_read: shared memory is overwritten before the bulk store has read it ---------------------------
__global__ void write_again(int* /*from*/, int* to, unsigned* /*flag*/, bool fixed) {
  alignas(128) __shared__ int tile[kItems];
  for (int i = 0; i < 2; ++i) {
    tile[threadIdx.x] = i;  // @bulk_read
    ptx::fence_proxy_async(space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
      ptx::cp_async_bulk(space_global, space_shared, to + i * kItems, tile, kTileBytes);  // @bulk_read
      ptx::cp_async_bulk_commit_group();
      if (fixed || i == 1) ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
    }
    __syncthreads();
  }
}

// ---- bulk_signal: a flag is raised before the bulk store's writes have completed -------------------------
__global__ void store_and_signal(int* from, int* to, unsigned* flag, bool fixed) {
  alignas(128) __shared__ int tile[kItems];
  const cuda::atomic_ref<unsigned, cuda::thread_scope_system> raised(*flag);
  if (blockIdx.x == 0) {
    tile[threadIdx.x] = 1;
    ptx::fence_proxy_async(space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
      ptx::cp_async_bulk(space_global, space_shared, from, tile, kTileBytes);  // @bulk_signal
      ptx::cp_async_bulk_commit_group();
      if (fixed) ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
      if (!fixed) ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
      raised.store(1, cuda::memory_order_release);
    }
  } else {
    while (raised.load(cuda::memory_order_acquire) == 0) {
    }
    to[threadIdx.x] = from[threadIdx.x];  // @bulk_signal
  }
}

// ---- bulk_add, bulk_clear: sums are read or cleared while two streams add; the additions do not race -----
constexpr int kAdders = 3;

template <class T>
__global__ void add_up(const __grid_constant__ CUtensorMap map, T value) {
  alignas(128) __shared__ T tile[kItems];
  tile[threadIdx.x] = value;
  ptx::fence_proxy_async(space_shared);
  __syncthreads();
  if (threadIdx.x > 0) return;
  const std::int32_t at[1] = {0};
  const auto op = ptx::op_add;
  cp_reduce_async_bulk_tensor(space_global, space_shared, op, &map, at, tile);  // @bulk_add @bulk_clear
  ptx::cp_async_bulk_commit_group();
  ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
}

__global__ void use_sums(int* sums, int* to) {
  if (to == nullptr) sums[threadIdx.x] = 0;                // @bulk_clear
  if (to != nullptr) to[threadIdx.x] = sums[threadIdx.x];  // @bulk_add
}

void run_additions(bool read, bool fixed) {
  DeviceBuffer<int> sums(0, kItems), to(0, kItems);
  Stream adding[2]{Stream{0}, Stream{0}}, using_them{0};
  Event added[2]{Event{0}, Event{0}};
  cudaMemset(sums.data(), 0, sums.bytes());
  cudaDeviceSynchronize();
  const CUtensorMap map = semantics::map_of<int>({sums.data(), {kItems}, {}, {kItems}});
  for (int i = 0; i < 2; ++i) {
    add_up<int><<<kAdders, kItems, 0, adding[i]>>>(map, 1);
    cudaEventRecord(added[i], adding[i]);
    if (fixed) cudaStreamWaitEvent(using_them, added[i], 0);
  }
  use_sums<<<1, kItems, 0, using_them>>>(sums.data(), read ? to.data() : nullptr);
  if (cudaDeviceSynchronize() != cudaSuccess) throw std::runtime_error("the kernel failed");
}
void bulk_add(bool fixed) { run_additions(true, fixed); }
void bulk_clear(bool fixed) { run_additions(false, fixed); }

// ---- bulk_fence_shared: no proxy fence between ordinary writes and the bulk store that reads them --------
__global__ void store_unfenced(int* /*from*/, int* to, unsigned* /*flag*/, bool fixed) {
  alignas(128) __shared__ int tile[kItems];
  tile[threadIdx.x] = 1;  // @bulk_fence_shared
  if (fixed) ptx::fence_proxy_async(space_shared);
  if (!fixed) ptx::fence_proxy_async(space_global);  // the wrong memory
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::cp_async_bulk(space_global, space_shared, to, tile, kTileBytes);  // @bulk_fence_shared
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
  }
}

// ---- bulk_fence_flag: no proxy fence between a flag and the bulk load of the data that it announces ------
__global__ void load_behind_flag(int* from, int* to, unsigned* flag, bool fixed) {
  __shared__ std::uint64_t full;
  alignas(128) __shared__ int tile[kItems];
  start_barrier(&full, 1);
  const cuda::atomic_ref<unsigned, cuda::thread_scope_system> raised(*flag);
  if (blockIdx.x == 0) {
    from[threadIdx.x] = 1;  // @bulk_fence_flag
    __syncthreads();
    if (threadIdx.x == 0) raised.store(1, cuda::memory_order_release);
  } else {
    if (threadIdx.x == 0) {
      while (raised.load(cuda::memory_order_acquire) == 0) {
      }
      if (fixed) ptx::fence_proxy_async(space_global);
      expect(&full);
      ptx::cp_async_bulk(space_cluster, space_global, tile, from, kTileBytes, &full);  // @bulk_fence_flag
    }
    await_phase(&full, 0);
    to[threadIdx.x] = tile[threadIdx.x];
  }
}

// ---- bulk_fence_read: no proxy fence between ordinary reads and the bulk load that overwrites the tile ----
__global__ void refill_unfenced(int* from, int* to, unsigned* /*flag*/, bool fixed) {
  __shared__ std::uint64_t full;
  alignas(128) __shared__ int tile[kItems];
  start_barrier(&full, 1);
  for (int i = 0; i < 3; ++i) {
    if (threadIdx.x == 0) {
      expect(&full);
      ptx::cp_async_bulk(space_cluster, space_global, tile, from, kTileBytes, &full);  // @bulk_fence_read
    }
    await_phase(&full, i);
    to[i * kItems + threadIdx.x] = tile[threadIdx.x];  // @bulk_fence_read
    if (fixed) ptx::fence_proxy_async(space_shared);
    if (!fixed) ptx::fence_proxy_async(space_global);  // the wrong memory
    __syncthreads();
  }
}

// ---- bulk_elected: one thread arrives for all, without a barrier before it -------------------------------
__global__ void elected(int* from, int* to, unsigned* /*flag*/, bool fixed) {
  __shared__ std::uint64_t full, empty;
  alignas(128) __shared__ int tile[kItems];
  start_barrier(&full, 1);
  start_barrier(&empty, 1);
  for (int i = 0; i < 3; ++i) {
    if (threadIdx.x == 0) {
      await_phase(&empty, i + 1);
      expect(&full);
      ptx::cp_async_bulk(space_cluster, space_global, tile, from, kTileBytes, &full);  // @bulk_elected
    }
    await_phase(&full, i);
    to[i * kItems + threadIdx.x] = tile[threadIdx.x];  // @bulk_elected
    ptx::fence_proxy_async(space_shared);
    if (fixed) __syncthreads();
    if (threadIdx.x == 0) ptx::mbarrier_arrive(&empty);
  }
}

// ---- bulk_swizzle: a swizzled tile is read as if it had no swizzle. A wrong result -----------------------
constexpr int kColumns = 32, kRows = 8;  // rows of 128 bytes

__global__ void read_swizzled(const __grid_constant__ CUtensorMap map, int* to, bool fixed) {
  __shared__ std::uint64_t full;
  alignas(1024) __shared__ int tile[kRows][kColumns];
  start_barrier(&full, 1);
  if (threadIdx.x == 0) {
    const std::int32_t at[2] = {0, 0};
    ptx::mbarrier_arrive_expect_tx(sem_release, scope_cta, space_shared, &full, sizeof tile);
    ptx::cp_async_bulk_tensor(space_cluster, space_global, tile, &map, at, &full);
  }
  await_phase(&full, 0);
  const int row = static_cast<int>(threadIdx.x) / kColumns, column = static_cast<int>(threadIdx.x) % kColumns;
  const int chunk = fixed ? (column / 4) ^ row : column / 4;
  to[threadIdx.x] = tile[row][4 * chunk + column % 4];
}
void bulk_swizzle(bool fixed) {
  DeviceBuffer<int> from(0, kRows * kColumns), to(0, kRows * kColumns);
  fill<<<1, kRows * kColumns>>>(from.data(), 1);
  const CUtensorMap map = semantics::map_of<int>(
      {from.data(), {kColumns, kRows}, {kColumns}, {kColumns, kRows}, CU_TENSOR_MAP_SWIZZLE_128B});
  read_swizzled<<<1, kRows * kColumns>>>(map, to.data(), fixed);
  int got[kRows * kColumns];
  cudaMemcpy(got, to.data(), sizeof got, cudaMemcpyDeviceToHost);
  for (int i = 0; i < kRows * kColumns; ++i) {
    if (got[i] != 1 + i) throw std::runtime_error("wrong result: element " + std::to_string(i));
  }
}

const planted::Cases kCases = {
    {"bulk_wait", on_two_streams(use_tile)},
    {"bulk_refill", on_two_streams(refill)},
    {"bulk_parity", on_two_streams(wait_for_parity)},
    {"bulk_count", on_two_streams(expect_too_much)},
    {"bulk_init", on_two_streams(load_after_init)},
    {"bulk_read", on_two_streams(write_again)},
    {"bulk_signal", on_two_streams(store_and_signal, 2)},
    {"bulk_add", bulk_add},
    {"bulk_clear", bulk_clear},
    {"bulk_fence_shared", on_two_streams(store_unfenced)},
    {"bulk_fence_flag", on_two_streams(load_behind_flag, 2)},
    {"bulk_fence_read", on_two_streams(refill_unfenced)},
    {"bulk_elected", on_two_streams(elected)},
    {"bulk_swizzle", bulk_swizzle},
};

}  // namespace

int main(int argc, char** argv) { return planted::run_case(argc, argv, kCases); }
