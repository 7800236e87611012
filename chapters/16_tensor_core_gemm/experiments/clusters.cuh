// Experiment of chapter 16: two blocks whose tiles are neighbours along m form a cluster. They need the same
// columns of B, so each block loads half of them for both, by multicast.
//
// Why along m: a tile of 128 x 256 has twice as much of B as of A. If the blocks share B, each loads 32 KB of
// a stage's 48 KB; if they shared A, each would load 40 KB.
#pragma once

#include <cuda.h>

#include <algorithm>
#include <cstdint>
#include <cuda/ptx>

#include "16_tensor_core_gemm/operands.cuh"
#include "16_tensor_core_gemm/ring_of_stages.cuh"
#include "16_tensor_core_gemm/specialised.cuh"
#include "16_tensor_core_gemm/split_k.cuh"
#include "16_tensor_core_gemm/store_tile.cuh"

namespace overlap::tensor_core_gemm {

inline constexpr int kPair = 2;  ///< blocks of a cluster

/// Barrier of all threads of both blocks.
__device__ __forceinline__ void meet_cluster() {
  arrive_at_cluster();
  await_cluster();
}

/// A block's ring. Copies of either block fill the stages of both, so a stage is empty only after the
/// consumer warps of both blocks have read it.
template <SixteenBit T, typename Shape>
struct PairRing : Ring<T, Shape> {
  /// Called by a consumer warp that has read the stage: one lane arrives at the `empty` barriers of both
  /// blocks.
  __device__ __forceinline__ void release(int stage) {
    if (wgmma::elect_one()) {
      for (unsigned rank = 0; rank < kPair; ++rank) wgmma::arrive_in_block(&this->empty[stage], rank);
    }
    __syncwarp();
  }
};

/// Pairs of tiles in the order of place_of(); each block of a cluster takes one tile of the pair. If the
/// number of rows of tiles is odd, the last pairs have a tile outside C: TMA loads zeros for its A, and
/// stores nothing of it.
struct PairedOrder {
  Tiling tiling;
  int group;  ///< rows of tiles, see place_of()

  /// C's tiling in pairs of tiles.
  __host__ __device__ constexpr Tiling pairs() const {
    return {(tiling.along_m + kPair - 1) / kPair, tiling.along_n, tiling.along_k};
  }
  /// Number of tiles, including those outside C.
  __host__ __device__ constexpr int tiles() const { return kPair * pairs().tiles(); }
  /// Place of tile number `index` of the order. The two blocks of a cluster take the two tiles of a pair.
  __host__ __device__ constexpr TilePlace operator()(int index) const {
    const TilePlace pair = place_of(index / kPair, pairs(), group / kPair);
    return {pair.m * kPair + index % kPair, pair.n};
  }
};

/// Called by one thread of each block. As load_stage(), but the block of rank r in the cluster loads only
/// half r of B's columns, for both blocks.
template <Major B, SixteenBit T, typename Tile>
__device__ __forceinline__ void load_stage_of_pair(Stage<T, Tile>& stage, const CUtensorMap& a,
                                                   const CUtensorMap& b, Corner from, int block,
                                                   std::uint64_t* full) {
  constexpr int kColumns = Tile::kN / kPair;
  constexpr std::uint16_t kBoth = 0b11;
  static_assert(kColumns % kSpan == 0);
  const int rank = static_cast<int>(ptx::get_sreg_cluster_ctarank());
  const int k = block * kSpan;
  // The other block's half may arrive before this line: the phase stays open until this arrival.
  ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, full, sizeof stage);
  ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, stage.a, &a, {k, from.row}, full);
  const int column = from.column + rank * kColumns;
  T* half = stage.b + rank * kColumns * kSpan;
  if constexpr (B == Major::kK) {
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, half, &b, {k, column}, full, kBoth);
  } else {
    for (int box = 0; box < kColumns / kSpan; ++box) {
      ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, half + box * kSpan * kSpan, &b,
                                {column + box * kSpan, k}, full, kBoth);
    }
  }
}

/// C = A B; see ClusterMulticast.
template <typename Store, SixteenBit T, typename Tile, Major B>
__global__ __cluster_dims__(kPair, 1, 1)
    __launch_bounds__((Tile::kGroups + 1) * wgmma::kThreads,
                      1) void multiply_in_pairs(const __grid_constant__ CUtensorMap a,
                                                const __grid_constant__ CUtensorMap b,
                                                const __grid_constant__ CUtensorMap c_map, T* c, int m, int n,
                                                PairedOrder order) {
  extern __shared__ __align__(1024) unsigned char memory[];
  auto& shared = *reinterpret_cast<SharedMemory<T, Tile, Store, PairRing<T, Tile>>*>(memory);
  if (threadIdx.x == 0) shared.ring.init(kPair);
  meet_cluster();  // no block arrives at the other one's mbarriers before they are initialised
  const int group = static_cast<int>(threadIdx.x) / wgmma::kThreads;
  if (group == Tile::kGroups) {
    wgmma::registers_down<kLoaderRegisters>();
    if (threadIdx.x / 32 % 4 == 0 && wgmma::elect_one()) {
      load_tiles(shared.ring, order, order.tiling.along_k,
                 [&](Stage<T, Tile>& stage, TilePlace tile, int block, std::uint64_t* full) {
                   load_stage_of_pair<B>(stage, a, b, tile.corner<Tile>(), block, full);
                 });
    }
    __syncwarp();
  } else {
    wgmma::registers_up<kMultiplierRegisters>();
    multiply_tiles<B>(shared.ring, order, order.tiling.along_k, group,
                      [&](const Fragment<Tile::kN>& sum, TilePlace tile) {
                        const Corner corner = tile.corner<Tile>();
                        Store::template store<Tile>(sum, c, c_map, &shared.staging[group],
                                                    corner.row + group * kGroupRows, corner.column, m, n);
                      });
    Store::finish();
  }
  meet_cluster();  // no block exits while the other one may still arrive at its mbarriers
}

/// Clusters of two blocks, each of which loads half of the columns of B for both. A cluster needs two free
/// multiprocessors of the same GPC; if there are none, it starts when another cluster has ended.
template <typename Shape = Tile<128, 256, 4>>
struct ClusterMulticast : StoredByTma<Shape> {
  using Tile = Shape;

  /// Blocks of the grid.
  static int blocks(Tiling tiling, int multiprocessors) {
    return std::min(PairedOrder{tiling, kPair}.tiles(), std::max(1, multiprocessors / kPair) * kPair);
  }
  /// The kernel.
  template <SixteenBit T, Major B>
  static constexpr auto kernel = multiply_in_pairs<TmaStore, T, Tile, B>;
  /// Enqueues the kernel.
  template <Major B, SixteenBit T>
  static void launch(int blocks, const T* a, const T* b, T* c, MatmulShape shape, cudaStream_t stream) {
    const OperandMaps<T, Tile, B> maps(a, b, shape, kPair);
    const CUtensorMap c_map = tensor_map(c, shape.m, shape.n, kGroupRows);
    multiply_in_pairs<TmaStore, T, Tile, B>
        <<<blocks, ClusterMulticast::kThreads, ClusterMulticast::template shared_bytes<T>(), stream>>>(
            maps.a, maps.b, c_map, c, static_cast<int>(shape.m), static_cast<int>(shape.n),
            PairedOrder{tiling_of<Tile>(shape), ClusterMulticast::kTileGroup});
  }
};

}  // namespace overlap::tensor_core_gemm
