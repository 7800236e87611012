// Chapter 19, the kernel: chapter 16's pipeline with an epilogue that sends tiles to their owners. One thread
// loads, two warpgroups multiply and add, one thread exchanges.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>

#include "16_tensor_core_gemm/specialised.cuh"
#include "19_fused_reduce_scatter/exchange.cuh"

namespace overlap::fused_reduce_scatter {

using wgmma::Major;

/// A block's shared memory.
template <typename Landing, SixteenBit T, typename Shape>
struct SharedMemory {
  using Tile = Shape;
  tensor_core_gemm::Ring<T, Tile> ring;
  PartBuffers parts[Tile::kGroups];
  PartBarriers barriers[Tile::kGroups];
  Progress progress;
  typename Landing::Shared landing;
};

/// Number of stages that fit into shared memory beside a block's other members.
template <typename Tile>
constexpr int stages_beside_buffers() {
  constexpr int kRoom = 227 * 1024;  // bytes of shared memory of a block, at most (compute capability 9.0)
  using OneStage = tensor_core_gemm::Stage<__half, Tile>;
  using TwoStages = tensor_core_gemm::Tile<Tile::kM, Tile::kN, 2>;
  constexpr int kBesides = sizeof(SharedMemory<InSlots, __half, TwoStages>) - 2 * sizeof(OneStage);
  return std::min<int>(Tile::kStages, (kRoom - kBesides) / int{sizeof(OneStage)});
}

/// The rank's GEMM: sends tiles to their owners, and stores the sums of its own tiles to C.
template <typename Wire, typename Landing, SixteenBit T, typename Tile>
__global__ __launch_bounds__((Tile::kGroups + 1) * wgmma::kThreads, 1) void scatter_tiles(
    const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
    const __grid_constant__ CUtensorMap c, const __grid_constant__ Exchange exchange,
    const __grid_constant__ Landing landing, const __grid_constant__ OwnedOrder order) {
  using W = typename Wire::template Type<T>;
  extern __shared__ __align__(1024) unsigned char memory[];
  auto& shared = *reinterpret_cast<SharedMemory<Landing, T, Tile>*>(memory);
  Landing::init(shared.landing);
  if (threadIdx.x == 0) {
    for (PartBarriers& barriers : shared.barriers) barriers.init();
    shared.progress.tell(0);
    shared.ring.init();
  }
  __syncthreads();
  const Owners& owners = order.owners;
  const int group = static_cast<int>(threadIdx.x) / wgmma::kThreads;
  if (group == Tile::kGroups) {
    wgmma::registers_down<tensor_core_gemm::kLoaderRegisters>();
    const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
    if (warp == 0 && wgmma::elect_one()) {
      int loads = 0;
      bool backwards = true;
      tensor_core_gemm::load_tiles(
          shared.ring, order, owners.along_k,
          [&](tensor_core_gemm::Stage<T, Tile>& stage, OwnedTile tile, int block, std::uint64_t* full) {
            // The TMA box may extend into the next owner's rows; those results are computed and discarded.
            auto corner = tile.place.corner<Tile>();
            corner.row += owners.first_row[tile.owner];
            // Each wave of tiles may read all of B again. So every second one goes through k backwards, and
            // begins with the k-blocks that the L2 cache got last.
            if (block == 0) backwards = !backwards;
            const int k_block = backwards ? owners.along_k - 1 - block : block;
            tensor_core_gemm::load_stage<Major::kMN>(stage, a, b, corner, k_block, full);
            shared.progress.tell(++loads);
          });
    }
    if (warp == 1 && wgmma::elect_one()) {
      ExchangingThread<W, Landing, Tile> thread{
          exchange, order, c, landing, shared.landing, shared.parts, shared.barriers, shared.progress};
      thread.run();
    }
    return;
  }
  wgmma::registers_up<tensor_core_gemm::kMultiplierRegisters>();
  Exchanger<W, Tile> exchanger{shared.parts[group], shared.barriers[group]};
  tensor_core_gemm::multiply_tiles<Major::kMN>(
      shared.ring, order, owners.along_k, group, [&](Fragment<Tile::kN>& sum, OwnedTile tile) {
        if (owners.rows(tile.owner) == 0) return;  // an exchange of flags alone
        if (tile.owner != order.rank) return exchanger.template hand_out<Wire, T>(sum);
#pragma unroll
        for (int column = 0; column < Tile::kN; column += kSpan)
          exchanger.template add_parts<T>(sum.value + column / 2, exchange);
      });
}

}  // namespace overlap::fused_reduce_scatter
