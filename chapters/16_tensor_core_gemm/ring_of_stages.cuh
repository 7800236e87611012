// Chapter 16, third rung: several stages, so that TMA fills the next ones while one is multiplied.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <cuda/ptx>

#include "16_tensor_core_gemm/operands.cuh"
#include "16_tensor_core_gemm/store_tile.cuh"

namespace overlap::tensor_core_gemm {

/// The stages of a block. A stage is full when all its bytes have arrived, and empty when every consumer warp
/// has read it.
template <SixteenBit T, typename Shape>
struct Ring {
  using Tile = Shape;
  static_assert(Tile::kStages >= 2, "a stage is released only after the next stage's wgmma are issued");
  Stage<T, Tile> stages[Tile::kStages];
  std::uint64_t full[Tile::kStages];   ///< mbarriers: one arrival, and the stage's bytes
  std::uint64_t empty[Tile::kStages];  ///< mbarriers: one arrival per consumer warp

  /// Called by one thread before any other uses the ring. Consumers of a stage: the multiplying warps of
  /// `blocks` blocks, plus `others` additional readers.
  __device__ void init(int blocks = 1, int others = 0) {
    for (int i = 0; i < Tile::kStages; ++i) {
      ptx::mbarrier_init(&full[i], 1);
      ptx::mbarrier_init(&empty[i], blocks * Tile::kGroups * wgmma::kThreads / 32 + others);
    }
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);  // makes the mbarriers visible to TMA
  }

  /// Waits until all consumers have read the stage: until the phase of `empty` with this parity is complete.
  __device__ __forceinline__ void await_empty(int stage, std::uint32_t parity) {
    await_phase(&empty[stage], parity);
  }

  /// Called by a consumer warp that has read the stage: one lane arrives.
  __device__ __forceinline__ void release(int stage) {
    if (wgmma::elect_one()) ptx::mbarrier_arrive(&empty[stage]);
    __syncwarp();
  }
};

/// Position in the ring: the next stage, and the parity of its phase.
template <int Stages>
struct RingPlace {
  int stage = 0;             ///< 0 ... Stages - 1
  std::uint32_t parity = 0;  ///< of the phase that completes when the stage is full

  /// Moves to the next stage; the parity flips after a round.
  __device__ __forceinline__ void advance() {
    if (++stage < Stages) return;
    stage = 0;
    parity ^= 1;
  }
};

/// C = A B; see RingOfStages.
template <SixteenBit T, typename Tile, Major B>
__global__ __launch_bounds__(Tile::kGroups* wgmma::kThreads) void multiply_ring(
    const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, T* c, int m, int n,
    Tiling tiling) {
  extern __shared__ __align__(1024) unsigned char shared[];
  auto& ring = *reinterpret_cast<Ring<T, Tile>*>(shared);
  if (threadIdx.x == 0) ring.init();
  __syncthreads();
  const int group = static_cast<int>(threadIdx.x) / wgmma::kThreads;
  const Corner corner = place_of(static_cast<int>(blockIdx.x), tiling, 1).corner<Tile>();
  if (threadIdx.x == 0) {
    for (int i = 0; i < Tile::kStages && i < tiling.along_k; ++i)
      load_stage<B>(ring.stages[i], a, b, corner, i, &ring.full[i]);
  }
  __syncwarp();
  Fragment<Tile::kN> sum;
  RingPlace<Tile::kStages> place, last;
  for (int block = 0; block < tiling.along_k; ++block) {
    // [task ring: while this stage is multiplied, which stage is free, and which k-block is loaded into it?]
    await_phase(&ring.full[place.stage], place.parity);
    multiply_stage<B>(sum, ring.stages[place.stage], group, block > 0);
    if (block > 0) {
      wgmma::wait<1>(sum);  // the wgmma of the stage before
      ring.release(last.stage);
      const int next = block - 1 + Tile::kStages;
      if (threadIdx.x == 0 && next < tiling.along_k) {
        await_phase(&ring.empty[last.stage], last.parity);
        load_stage<B>(ring.stages[last.stage], a, b, corner, next, &ring.full[last.stage]);
      }
      __syncwarp();
    }
    // [/task]
    last = place;
    place.advance();
  }
  wgmma::wait<0>(sum);
  store_values<T>(sum.value, c, corner.row + group * kGroupRows, corner.column, m, n);
}

/// The third rung.
struct RingOfStages {
  using Tile = tensor_core_gemm::Tile<128, 128, 4>;
  static constexpr int kThreads = Tile::kGroups * wgmma::kThreads;
  static constexpr const char* kName = "ring_of_stages";

  /// Bytes of dynamic shared memory.
  template <SixteenBit T>
  static constexpr int shared_bytes() {
    return sizeof(Ring<T, Tile>);
  }
  /// Blocks of the grid.
  static int blocks(Tiling tiling, int /*multiprocessors*/) { return tiling.tiles(); }
  /// The kernel.
  template <SixteenBit T, Major B>
  static constexpr auto kernel = multiply_ring<T, Tile, B>;
  /// Enqueues the kernel.
  template <Major B, SixteenBit T>
  static void launch(int blocks, const T* a, const T* b, T* c, MatmulShape shape, cudaStream_t stream) {
    const OperandMaps<T, Tile, B> maps(a, b, shape);
    multiply_ring<T, Tile, B><<<blocks, kThreads, shared_bytes<T>(), stream>>>(
        maps.a, maps.b, c, static_cast<int>(shape.m), static_cast<int>(shape.n), tiling_of<Tile>(shape));
  }
};

}  // namespace overlap::tensor_core_gemm
