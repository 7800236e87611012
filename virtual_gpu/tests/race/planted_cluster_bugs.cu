// Kernels of clusters of two or eight blocks whose accesses to the cluster's shared memory lack an order, and
// the same kernels without the bug. Command line: planted.hpp. Marks as in planted_bugs.cu.
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cuda/ptx>
#include <stdexcept>

#include "hopper_test.hpp"
#include "overlap/gpu/stream.hpp"
#include "planted.hpp"

namespace {

using overlap::DeviceBuffer;
using overlap::Stream;
using semantics::await_phase;
namespace ptx = cuda::ptx;
using ptx::scope_cluster, ptx::sem_acquire, ptx::sem_release, ptx::space_cluster, ptx::space_global;

constexpr int kItems = 128;  // of a tile; also the threads of a block
constexpr int kTiles = 6, kStages = 2, kCount = kTiles * kItems;
constexpr std::uint32_t kTileBytes = kItems * sizeof(int);
constexpr std::uint16_t kBoth = 0b11;

using Kernel = void (*)(const CUtensorMap map, int* to, bool fixed);

/// Runs the kernel on two independent streams; each row of the tensor is a tile.
void run(Kernel kernel, bool fixed, int blocks = 2) {
  struct Setting {
    DeviceBuffer<int> from{0, kCount}, to{0, 2 * kCount};
    Stream stream{0};
  } settings[2];
  for (Setting& s : settings) {
    cudaMemsetAsync(s.from.data(), 0, s.from.bytes(), s.stream);
    const auto map = semantics::map_of<int>({s.from.data(), {kItems, kTiles}, {kItems}, {kItems, 1}});
    kernel<<<blocks, kItems, 0, s.stream>>>(map, s.to.data(), fixed);
  }
  if (cudaDeviceSynchronize() != cudaSuccess) throw std::runtime_error("the kernels failed");
}

__device__ inline void meet() {
  ptx::barrier_cluster_arrive(sem_release);
  ptx::barrier_cluster_wait(sem_acquire);
}

/// The mbarrier of the block of that rank that corresponds to `mine`.
__device__ inline std::uint64_t* barrier_of(std::uint64_t* mine, unsigned rank) {
  return static_cast<std::uint64_t*>(__cluster_map_shared_rank(mine, rank));
}

/// Thread 0 of each block initialises the mbarriers of all tiles and lets each expect its tile's bytes.
__device__ inline void start_tiles(std::uint64_t* full) {
  if (threadIdx.x == 0) {
    for (int tile = 0; tile < kTiles; ++tile) {
      ptx::mbarrier_init(&full[tile], 1);
      semantics::expect_bytes(&full[tile], kTileBytes);
    }
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  meet();
}

// ---- cluster_wait: the other block reads a multicast tile before the copy has completed ------------------
__global__ void __cluster_dims__(2, 1, 1)
    use_multicast(const __grid_constant__ CUtensorMap map, int* to, bool fixed) {
  __shared__ std::uint64_t full[kTiles];
  alignas(128) __shared__ int tile[kItems];
  start_tiles(full);
  if (threadIdx.x == 0 && blockIdx.x == 0) {
    const std::int32_t at[] = {0, 0};
    ptx::cp_async_bulk_tensor(space_cluster, space_global, tile, &map, at, full, kBoth);  // @cluster_wait
  }
  if (fixed || blockIdx.x == 0) await_phase(full, 0);
  to[blockIdx.x * kItems + threadIdx.x] = tile[threadIdx.x];  // @cluster_wait
  await_phase(full, 0);
  meet();
}
void cluster_wait(bool fixed) { run(use_multicast, fixed); }

// ---- cluster_stage: a block releases a stage to itself, not to the block that fills it ------------------
__global__ void __cluster_dims__(2, 1, 1)
    share_stages(const __grid_constant__ CUtensorMap map, int* to, bool fixed) {
  __shared__ std::uint64_t full[kTiles], empty[kStages];
  alignas(128) __shared__ int stage[kStages][kItems];
  if (threadIdx.x == 0) {
    for (std::uint64_t& barrier : empty) ptx::mbarrier_init(&barrier, fixed ? 2 * kItems : kItems);
  }
  start_tiles(full);
  for (int tile = 0; tile < kTiles; ++tile) {
    const int s = tile % kStages;
    if (threadIdx.x == 0 && blockIdx.x == 0) {
      const std::uint32_t parity = (tile / kStages + 1) & 1;
      while (!ptx::mbarrier_try_wait_parity(sem_acquire, scope_cluster, &empty[s], parity)) {
      }
      const std::int32_t at[] = {0, tile};
      std::uint64_t* came = &full[tile];
      ptx::cp_async_bulk_tensor(space_cluster, space_global, stage[s], &map, at, came,  // @cluster_stage
                                kBoth);
    }
    await_phase(&full[tile], 0);
    to[blockIdx.x * kCount + tile * kItems + threadIdx.x] = stage[s][threadIdx.x];  // @cluster_stage
    ptx::fence_proxy_async(ptx::space_shared);
    const unsigned filler = fixed ? 0 : blockIdx.x;
    ptx::mbarrier_arrive(sem_release, scope_cluster, space_cluster, barrier_of(&empty[s], filler));
  }
  meet();
}
void cluster_stage(bool fixed) { run(share_stages, fixed); }

// ---- cluster_exit: a block exits before the other block has arrived at its mbarrier ----------------------
__global__ void __cluster_dims__(2, 1, 1)
    end_early(const __grid_constant__ CUtensorMap /*map*/, int* /*to*/, bool fixed) {
  __shared__ std::uint64_t barrier;
  if (threadIdx.x == 0) ptx::mbarrier_init(&barrier, 1);
  meet();
  std::uint64_t* theirs = barrier_of(&barrier, blockIdx.x ^ 1);
  if (threadIdx.x == 0) {
    if (blockIdx.x == 0) await_phase(&barrier, 0);
    ptx::mbarrier_arrive(sem_release, scope_cluster, space_cluster, theirs);  // @cluster_exit @cluster_exit
  }
  if (fixed) meet();
}
void cluster_exit(bool fixed) { run(end_early, fixed); }

// ---- cluster_lanes: two threads of a block in a cluster write one cell of its shared memory --------------
template <int kFirst, int kSecond>
__device__ inline void write_one_cell(bool fixed) {
  __shared__ int cells[kItems];
  const bool writes = threadIdx.x == kFirst || threadIdx.x == kSecond;
  if (writes) cells[fixed ? threadIdx.x : 0] = 1;  // @cluster_lanes @cluster_lanes
  meet();
}
__global__ void __cluster_dims__(2, 1, 1)
    write_in_pairs(const __grid_constant__ CUtensorMap /*map*/, int* /*to*/, bool fixed) {
  write_one_cell<0, 96>(fixed);
}
void cluster_lanes(bool fixed) { run(write_in_pairs, fixed); }
__global__ void __cluster_dims__(8, 1, 1)
    write_in_eights(const __grid_constant__ CUtensorMap /*map*/, int* /*to*/, bool fixed) {
  write_one_cell<0, 1>(fixed);
}
void cluster_lanes_8(bool fixed) { run(write_in_eights, fixed, 8); }

// ---- cluster_pair: a block reads another block's shared memory before that block has written it ----------
__global__ void __cluster_dims__(8, 1, 1)
    read_cell(const __grid_constant__ CUtensorMap /*map*/, int* to, bool fixed) {
  __shared__ int cell;
  if (threadIdx.x == 0) cell = 1;  // @cluster_pair
  if (fixed) meet();
  __syncthreads();
  const int* theirs = static_cast<const int*>(__cluster_map_shared_rank(&cell, blockIdx.x ^ 4));
  if (threadIdx.x == 1) to[blockIdx.x] = *theirs;  // @cluster_pair
  meet();
}
void cluster_pair(bool fixed) { run(read_cell, fixed, 8); }

// ---- cluster_end: a block exits while the other block still reads its shared memory ----------------------
__global__ void __cluster_dims__(2, 1, 1)
    read_late(const __grid_constant__ CUtensorMap /*map*/, int* to, bool fixed) {  // @cluster_end
  __shared__ int cell;
  if (threadIdx.x == 0) cell = 1;
  meet();
  const int* theirs = static_cast<int*>(__cluster_map_shared_rank(&cell, 1));
  if (blockIdx.x == 0) to[threadIdx.x] = *theirs;  // @cluster_end
  if (fixed) meet();
}
void cluster_end(bool fixed) { run(read_late, fixed); }

const planted::Cases kCases = {
    {"cluster_lanes", cluster_lanes}, {"cluster_lanes_8", cluster_lanes_8}, {"cluster_pair", cluster_pair},
    {"cluster_wait", cluster_wait},   {"cluster_stage", cluster_stage},     {"cluster_exit", cluster_exit},
    {"cluster_end", cluster_end},
};

}  // namespace

int main(int argc, char** argv) { return planted::run_case(argc, argv, kCases); }
