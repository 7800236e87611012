// Chapter 16, eighth rung: few rows of C. There are then fewer tiles than multiprocessors, so four blocks
// share the k of one tile and add their sums through distributed shared memory. A cluster takes two
// neighbouring tiles.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <cuda/ptx>

#include "16_tensor_core_gemm/operands.cuh"
#include "16_tensor_core_gemm/ring_of_stages.cuh"
#include "16_tensor_core_gemm/specialised.cuh"
#include "16_tensor_core_gemm/store_tile.cuh"

namespace overlap::tensor_core_gemm {

inline constexpr int kParts = 4;                       ///< blocks that share the k of a tile
inline constexpr int kNeighbours = 2;                  ///< tiles of a cluster
inline constexpr int kCluster = kNeighbours * kParts;  ///< its blocks: those of both tiles in turn

/// First half of a barrier of all threads of a cluster: the thread may do other work before the second one.
__device__ __forceinline__ void arrive_at_cluster() { ptx::barrier_cluster_arrive(ptx::sem_release); }

/// Second half: waits until all threads of the cluster have arrived.
__device__ __forceinline__ void await_cluster() { ptx::barrier_cluster_wait(ptx::sem_acquire); }

/// A share of a tile's k-blocks.
struct KBlocks {
  int first;
  int count;
};

/// Part `part` of a tile's k-blocks: at most one more than another part. With fewer than kParts k-blocks some
/// parts are empty.
__host__ __device__ constexpr KBlocks share_of_k(int along_k, int part) {
  // [task share_of_k: at which k-block does this block begin, and how many does it multiply?]
  // [blank] return {0, along_k};
  const int first = along_k * part / kParts;
  return {first, along_k * (part + 1) / kParts - first};
  // [/task]
}

/// Tiles column by column, two for each cluster. Mostly both are of the same column and need the same parts
/// of B, which blocks of one cluster, so of one GPC, read from the L2 cache once. If the number of tiles is
/// odd, the last one has a neighbour outside C.
struct SplitOrder {
  Tiling tiling;

  /// Number of clusters.
  __host__ __device__ constexpr int clusters() const {
    return (tiling.tiles() + kNeighbours - 1) / kNeighbours;
  }
  /// Number of blocks.
  __host__ __device__ constexpr int tiles() const { return kCluster * clusters(); }
  /// Place of the tile of block `index`.
  __host__ __device__ constexpr TilePlace operator()(int index) const {
    const int tile = index / kCluster * kNeighbours + index % kNeighbours;
    return {tile % tiling.along_m, tile / tiling.along_m};
  }
};

/// A block's shared memory. The block adds up and stores a quarter of the tile's columns; `sums` are those of
/// these columns, by the part of k that they are of.
template <SixteenBit T, typename Tile>
struct SplitMemory {
  static constexpr int kValues = Tile::kN / 2 / kParts;  ///< of a thread, for such a part of the columns
  Ring<T, Tile> ring;
  float4 sums[kParts][kValues / 4][Tile::kGroups * wgmma::kThreads];
};

/// Called by all consumer threads with the sums of their block's share of k; all threads of the cluster have
/// arrived before, and the producer's warpgroup does await_cluster(), arrive_at_cluster() and
/// await_cluster(). Sends to each block of the tile the sums of its columns; returns in `total` those of this
/// block's columns, added in the order of the parts. `along_k`: k-blocks of the tile; an empty part has no
/// sums. `rank`: of the block in its cluster.
template <typename Memory, int N>
__device__ __forceinline__ void add_up(Memory& shared, const Fragment<N>& sum, int along_k, int rank,
                                       float (&total)[Memory::kValues]) {
  const int thread = static_cast<int>(threadIdx.x), tile = rank % kNeighbours, own = rank / kNeighbours;
  // [task add_up: in which block's memory does each sum belong, and what must have happened before it is
  // written there, and before it is read?]
  await_cluster();  // all blocks have started: their shared memory is there
#pragma unroll
  for (int part = 0; part < kParts; ++part) {
    if (share_of_k(along_k, own).count == 0) break;
    auto& there = *static_cast<Memory*>(__cluster_map_shared_rank(&shared, part * kNeighbours + tile));
#pragma unroll
    for (int i = 0; i < Memory::kValues; i += 4) {
      const float* four = sum.value + part * Memory::kValues + i;
      there.sums[own][i / 4][thread] = float4{four[0], four[1], four[2], four[3]};
    }
  }
  arrive_at_cluster();
  await_cluster();  // all sums have been sent; from here on no block accesses another one's memory
#pragma unroll
  for (int i = 0; i < Memory::kValues; i += 4) {
    float4 four = {};
    for (int from = 0; from < kParts; ++from) {
      if (share_of_k(along_k, from).count == 0) continue;
      const float4 more = shared.sums[from][i / 4][thread];
      four = {four.x + more.x, four.y + more.y, four.z + more.z, four.w + more.w};
    }
    total[i] = four.x, total[i + 1] = four.y, total[i + 2] = four.z, total[i + 3] = four.w;
  }
  // [/task]
}

/// C = A B; see SplitK.
template <SixteenBit T, typename Tile, Major B>
__global__ __cluster_dims__(kCluster, 1, 1)
    __launch_bounds__((Tile::kGroups + 1) * wgmma::kThreads,
                      1) void multiply_split_k(const __grid_constant__ CUtensorMap a,
                                               const __grid_constant__ CUtensorMap b, T* c, int m, int n,
                                               SplitOrder order) {
  extern __shared__ __align__(1024) unsigned char memory[];
  auto& shared = *reinterpret_cast<SplitMemory<T, Tile>*>(memory);
  if (threadIdx.x == 0) shared.ring.init();
  __syncthreads();
  arrive_at_cluster();
  const int group = static_cast<int>(threadIdx.x) / wgmma::kThreads;
  const int rank = static_cast<int>(ptx::get_sreg_cluster_ctarank());
  const int part = rank / kNeighbours;
  const KBlocks own = share_of_k(order.tiling.along_k, part);
  if (group == Tile::kGroups) {
    wgmma::registers_down<kLoaderRegisters>();
    if (threadIdx.x / 32 % 4 == 0 && wgmma::elect_one()) {
      load_tiles(shared.ring, order, own.count,
                 [&](Stage<T, Tile>& stage, TilePlace tile, int block, std::uint64_t* full) {
                   load_stage<B>(stage, a, b, tile.corner<Tile>(), own.first + block, full);
                 });
    }
    __syncwarp();
    await_cluster();  // as add_up()
    arrive_at_cluster();
    await_cluster();
  } else {
    wgmma::registers_up<kMultiplierRegisters>();
    multiply_tiles<B>(shared.ring, order, own.count, group,
                      [&](const Fragment<Tile::kN>& sum, TilePlace tile) {
                        float total[Tile::kN / 2 / kParts] = {};
                        add_up(shared, sum, order.tiling.along_k, rank, total);
                        const Corner corner = tile.corner<Tile>();
                        store_values<T>(total, c, corner.row + group * kGroupRows,
                                        corner.column + part * (Tile::kN / kParts), m, n);
                      });
  }
}

/// Part of the eighth rung: a cluster for two tiles, and each block with a share of k.
struct SplitK {
  using Tile = tensor_core_gemm::Tile<128, 128, 5>;
  static constexpr int kThreads = (Tile::kGroups + 1) * wgmma::kThreads;

  /// Bytes of dynamic shared memory.
  template <SixteenBit T>
  static constexpr int shared_bytes() {
    return sizeof(SplitMemory<T, Tile>);
  }
  /// Blocks of the grid.
  static int blocks(Tiling tiling, int /*multiprocessors*/) { return SplitOrder{tiling}.tiles(); }
  /// The kernel.
  template <SixteenBit T, Major B>
  static constexpr auto kernel = multiply_split_k<T, Tile, B>;
  /// Clusters that the current GPU runs at once. Each needs eight multiprocessors of one GPC.
  template <SixteenBit T, Major B>
  static int clusters_at_once() {
    CUDA_CHECK(
        cudaFuncSetAttribute(kernel<T, B>, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes<T>()));
    cudaLaunchConfig_t config = {};
    config.gridDim = kCluster;
    config.blockDim = kThreads;
    config.dynamicSmemBytes = shared_bytes<T>();
    int clusters = 0;
    CUDA_CHECK(cudaOccupancyMaxActiveClusters(&clusters, kernel<T, B>, &config));
    return clusters;
  }
  /// Enqueues the kernel.
  template <Major B, SixteenBit T>
  static void launch(int blocks, const T* a, const T* b, T* c, MatmulShape shape, cudaStream_t stream) {
    const OperandMaps<T, Tile, B> maps(a, b, shape);
    multiply_split_k<T, Tile, B><<<blocks, kThreads, shared_bytes<T>(), stream>>>(
        maps.a, maps.b, c, static_cast<int>(shape.m), static_cast<int>(shape.n),
        SplitOrder{tiling_of<Tile>(shape)});
  }
};

}  // namespace overlap::tensor_core_gemm
