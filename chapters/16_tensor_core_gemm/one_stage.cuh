// Chapter 16, second rung: TMA instead of the threads' copies. TMA fills the stage, two warpgroups multiply
// it, and only then TMA fills it again.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <cuda/ptx>

#include "16_tensor_core_gemm/operands.cuh"
#include "16_tensor_core_gemm/store_tile.cuh"

namespace overlap::tensor_core_gemm {

/// C = A B; see OneStage.
template <SixteenBit T, typename Tile, Major B>
__global__ __launch_bounds__(Tile::kGroups* wgmma::kThreads) void multiply_one_stage(
    const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, T* c, int m, int n,
    Tiling tiling) {
  extern __shared__ __align__(1024) unsigned char shared[];
  auto& stage = *reinterpret_cast<Stage<T, Tile>*>(shared);
  auto* full = reinterpret_cast<std::uint64_t*>(shared + sizeof stage);
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(full, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);  // makes the mbarrier visible to TMA
  }
  __syncthreads();
  const int group = static_cast<int>(threadIdx.x) / wgmma::kThreads;
  const Corner corner = place_of(static_cast<int>(blockIdx.x), tiling, 1).corner<Tile>();
  Fragment<Tile::kN> sum;
  for (int block = 0; block < tiling.along_k; ++block) {
    if (threadIdx.x == 0) load_stage<B>(stage, a, b, corner, block, full);
    __syncwarp();
    await_phase(full, block % 2);
    multiply_stage<B>(sum, stage, group, block > 0);
    wgmma::wait<0>(sum);
    __syncthreads();  // both warpgroups have read the stage
  }
  store_values<T>(sum.value, c, corner.row + group * kGroupRows, corner.column, m, n);
}

/// The second rung.
struct OneStage {
  using Tile = tensor_core_gemm::Tile<128, 128, 1>;
  static constexpr int kThreads = Tile::kGroups * wgmma::kThreads;
  static constexpr const char* kName = "one_stage";

  /// Bytes of dynamic shared memory.
  template <SixteenBit T>
  static constexpr int shared_bytes() {
    return sizeof(Stage<T, Tile>) + sizeof(std::uint64_t);
  }
  /// Blocks of the grid.
  static int blocks(Tiling tiling, int /*multiprocessors*/) { return tiling.tiles(); }
  /// The kernel.
  template <SixteenBit T, Major B>
  static constexpr auto kernel = multiply_one_stage<T, Tile, B>;
  /// Enqueues the kernel.
  template <Major B, SixteenBit T>
  static void launch(int blocks, const T* a, const T* b, T* c, MatmulShape shape, cudaStream_t stream) {
    const OperandMaps<T, Tile, B> maps(a, b, shape);
    multiply_one_stage<T, Tile, B><<<blocks, kThreads, shared_bytes<T>(), stream>>>(
        maps.a, maps.b, c, static_cast<int>(shape.m), static_cast<int>(shape.n), tiling_of<Tile>(shape));
  }
};

}  // namespace overlap::tensor_core_gemm
