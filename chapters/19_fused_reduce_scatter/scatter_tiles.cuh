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

/// A warpgroup's buffer for a part of the result, from which TMA stores it to C; see TmaStore::store_parts().
template <SixteenBit T>
struct ResultBuffer {
  static constexpr int kBuffers = 1;
  alignas(1024) T buffers[kBuffers][kGroupRows * kSpan];  ///< swizzled
};

/// A block's shared memory.
template <typename Landing, SixteenBit T, typename Shape>
struct SharedMemory {
  using Tile = Shape;
  tensor_core_gemm::Ring<T, Tile> ring;
  PartBuffers parts[Tile::kGroups];
  ResultBuffer<T> results[Tile::kGroups];
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

/// Called by all threads of a warpgroup for an own tile: adds all ranks' summands and stores the sums at
/// `row` and `column` of the rank's C.
template <typename W, typename Tile, SixteenBit T, typename Landing>
__device__ __forceinline__ void add_and_store(const Fragment<Tile::kN>& sum, Exchanger<W, Tile>& exchanger,
                                              const Exchange& exchange, const Landing& landing,
                                              const typename Landing::Shared& shared, int row, int column,
                                              const CUtensorMap& c, ResultBuffer<T>& buffer) {
  const auto write = [&](T* to, int part, int thread) {
    constexpr int kValues = TmaStore::kPartValues;
    float total[kValues] = {};
    exchanger.add_parts(sum.value + part * kValues, exchange, total);
    TmaStore::write(total, to, thread);
  };
  const auto copy = [&](const T* from, int part) {  // called after a barrier: all threads have added
    ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &c, {column + part * kSpan, row}, from);
    landing.template make_ready<W>(shared, column + part * kSpan, row);
  };
  TmaStore::store_parts<Tile::kN / kSpan>(buffer, write, copy);
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
      ExchangingThread<W, Landing, Tile> thread{exchange, order, shared.parts, shared.barriers,
                                                shared.progress};
      thread.run();
    }
    return;
  }
  wgmma::registers_up<tensor_core_gemm::kMultiplierRegisters>();
  Exchanger<W, Tile> exchanger{shared.parts[group], shared.barriers[group]};
  tensor_core_gemm::multiply_tiles<Major::kMN>(
      shared.ring, order, owners.along_k, group, [&](Fragment<Tile::kN>& sum, OwnedTile tile) {
        if (owners.rows(tile.owner) == 0) return;  // an exchange of flags alone
        const Corner corner = tile.place.corner<Tile>();
        if (tile.owner == order.rank) {
          add_and_store<W, Tile, T>(sum, exchanger, exchange, landing, shared.landing,
                                    corner.row + group * kGroupRows, corner.column, c, shared.results[group]);
        } else {
          exchanger.template hand_out<Wire, T>(sum);
        }
      });
  TmaStore::finish();
}

}  // namespace overlap::fused_reduce_scatter
