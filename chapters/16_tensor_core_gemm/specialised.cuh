// Chapter 16, fourth to seventh rung. Fourth: a producer thread only loads, consumer warpgroups only
// multiply. Fifth: a larger tile. Sixth: one persistent block per multiprocessor computes tile after tile.
// Seventh: TMA stores the results.
#pragma once

#include <cuda.h>

#include <algorithm>
#include <cstdint>
#include <cuda/atomic>
#include <cuda/ptx>

#include "16_tensor_core_gemm/operands.cuh"
#include "16_tensor_core_gemm/ring_of_stages.cuh"
#include "16_tensor_core_gemm/store_tile.cuh"

namespace overlap::tensor_core_gemm {

inline constexpr int kLoaderRegisters = 40;       ///< of a thread of the producer's warpgroup
inline constexpr int kMultiplierRegisters = 232;  ///< of a consumer's thread; see static_assert below

/// A block's shared memory.
template <SixteenBit T, typename Tile, typename Store, typename Stages = Ring<T, Tile>>
struct SharedMemory {
  Stages ring;
  alignas(1024) typename Store::template Staging<T, Tile> staging[Tile::kGroups];
};

/// Calls body(place of the tile) for the block's tiles: numbers blockIdx.x, blockIdx.x + gridDim.x, ...
template <typename Order, typename Body>
__device__ __forceinline__ void for_each_tile(const Order& order, const Body& body) {
  for (int index = static_cast<int>(blockIdx.x); index < order.tiles(); index += static_cast<int>(gridDim.x))
    body(order(index));
}

/// The producer: for each k-block of all the block's tiles, waits for the next stage to be empty and
/// calls load(stage, place of the tile, number of the k-block, `full` barrier of the stage). Starts at
/// `place` of the ring, and returns the place after the last stage filled.
template <typename Stages, typename Order, typename Load, typename Place = RingPlace<Stages::Tile::kStages>>
__device__ __forceinline__ Place load_tiles(Stages& ring, const Order& order, int along_k, const Load& load,
                                            Place place = {}) {
  for_each_tile(order, [&](const auto& tile) {
    for (int block = 0; block < along_k; ++block) {
      // [task load_tiles: when may a stage be filled for the first time, and when again?]
      // A fresh mbarrier counts the phase before its first one as complete, so the first round does not wait.
      ring.await_empty(place.stage, place.parity ^ 1);
      load(ring.stages[place.stage], tile, block, &ring.full[place.stage]);
      // [/task]
      place.advance();
    }
  });
  return place;
}

/// Progress of the producer, for a thread that keeps step with it (chapter 19). Relaxed: it orders no memory.
struct Progress {
  int loads;  ///< k-blocks whose load has begun so far

  /// Called by the producer thread.
  __device__ void tell(int now) {
    cuda::atomic_ref<int, cuda::thread_scope_block>(loads).store(now, cuda::memory_order_relaxed);
  }
  /// Called by another thread: waits until the loads of `number` k-blocks have begun.
  __device__ void await(int number) {
    const cuda::atomic_ref<int, cuda::thread_scope_block> now(loads);
    while (now.load(cuda::memory_order_relaxed) < number) {
    }
  }
};

/// Hook for a second reader of a stage while wgmma reads it; does nothing. Chapter 18 sends the stage on.
struct NoOtherUse {
  /// Called after the wgmma of k-block `block` is issued: starts the other use.
  template <typename Stage, typename Tile>
  __device__ __forceinline__ void begin(const Stage&, const Tile&, int /*block*/) const {}
  /// Called before a stage is released: waits until all uses but the last `Pending` have read their stages.
  template <int Pending>
  __device__ __forceinline__ void wait() const {}
};

/// A consumer warpgroup: waits for each stage to be full and multiplies it. Calls store(the warpgroup's sums,
/// place of the tile) after a tile. Starts at `place` of the ring, and returns the place after the last
/// stage multiplied.
template <Major B, typename Stages, typename Order, typename Store, typename OtherUse = NoOtherUse,
          typename Place = RingPlace<Stages::Tile::kStages>>
__device__ __forceinline__ Place multiply_tiles(Stages& ring, const Order& order, int along_k, int group,
                                                const Store& store, Place place = {},
                                                const OtherUse& other = {}) {
  using Tile = typename Stages::Tile;
  for_each_tile(order, [&](const auto& tile) {
    Fragment<Tile::kN> sum;
    int last = 0;
    for (int block = 0; block < along_k; ++block) {
      await_phase(&ring.full[place.stage], place.parity);
      multiply_stage<B>(sum, ring.stages[place.stage], group, block > 0);
      other.begin(ring.stages[place.stage], tile, block);
      // [task release: which stage has been read by now?]
      if (block > 0) {
        other.template wait<1>();
        wgmma::wait<1>(sum);  // the wgmma of the stage before
        ring.release(last);
      }
      // [/task]
      last = place.stage;
      place.advance();
    }
    other.template wait<0>();
    wgmma::wait<0>(sum);
    ring.release(last);
    store(sum, tile);
  });
  return place;
}

/// C = A B; see Specialised.
template <typename Store, SixteenBit T, typename Tile, Major B>
__global__ __launch_bounds__((Tile::kGroups + 1) * wgmma::kThreads,
                             1) void multiply_specialised(const __grid_constant__ CUtensorMap a,
                                                          const __grid_constant__ CUtensorMap b,
                                                          const __grid_constant__ CUtensorMap c_map, T* c,
                                                          int m, int n, GroupedOrder order) {
  extern __shared__ __align__(1024) unsigned char memory[];
  auto& shared = *reinterpret_cast<SharedMemory<T, Tile, Store>*>(memory);
  if (threadIdx.x == 0) shared.ring.init();
  __syncthreads();
  // Consumer warpgroups have the first numbers, so that `group` is also the index of their rows.
  const int group = static_cast<int>(threadIdx.x) / wgmma::kThreads;
  if (group == Tile::kGroups) {
    wgmma::registers_down<kLoaderRegisters>();
    // [task loader: which of these 128 threads loads?]
    if (threadIdx.x / 32 % 4 == 0 && wgmma::elect_one()) {
      load_tiles(shared.ring, order, order.tiling.along_k,
                 [&](Stage<T, Tile>& stage, TilePlace tile, int block, std::uint64_t* full) {
                   load_stage<B>(stage, a, b, tile.corner<Tile>(), block, full);
                 });
    }
    // [/task]
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
}

/// The fourth rung: one block per tile, tiles row by row.
template <typename Shape = Tile<128, 128, 4>, typename Store = PlainStore>
struct Specialised {
  using Tile = Shape;
  static constexpr int kThreads = (Tile::kGroups + 1) * wgmma::kThreads;
  static constexpr int kTileGroup = 1;
  static constexpr const char* kName = "specialised";
  static_assert(kLoaderRegisters * wgmma::kThreads + kMultiplierRegisters * wgmma::kThreads * Tile::kGroups <=
                65536);

  /// Bytes of dynamic shared memory.
  template <SixteenBit T>
  static constexpr int shared_bytes() {
    return sizeof(SharedMemory<T, Tile, Store>);
  }
  /// Blocks of the grid.
  static int blocks(Tiling tiling, int /*multiprocessors*/) { return tiling.tiles(); }
  /// The kernel.
  template <SixteenBit T, Major B>
  static constexpr auto kernel = multiply_specialised<Store, T, Tile, B>;
  /// Enqueues the kernel.
  template <Major B, SixteenBit T>
  static void launch(int blocks, const T* a, const T* b, T* c, MatmulShape shape, cudaStream_t stream) {
    launch_in_groups<B>(kTileGroup, blocks, a, b, c, shape, stream);
  }

 protected:
  /// Enqueues the kernel with groups of `group` rows of tiles; see place_of().
  template <Major B, SixteenBit T>
  static void launch_in_groups(int group, int blocks, const T* a, const T* b, T* c, MatmulShape shape,
                               cudaStream_t stream) {
    const OperandMaps<T, Tile, B> maps(a, b, shape);
    const CUtensorMap c_map = tensor_map(c, shape.m, shape.n, kGroupRows);
    multiply_specialised<Store, T, Tile, B><<<blocks, kThreads, shared_bytes<T>(), stream>>>(
        maps.a, maps.b, c_map, c, static_cast<int>(shape.m), static_cast<int>(shape.n),
        GroupedOrder{tiling_of<Tile>(shape), group});
  }
};

/// The fifth rung: a tile with twice as many columns.
struct LargerTile : Specialised<Tile<128, 256, 4>> {
  static constexpr const char* kName = "larger_tile";
};

/// The sixth rung: one block per multiprocessor, tiles in groups. While a tile is stored, the producer loads
/// the stages of the next one.
template <typename Shape = Tile<128, 256, 4>, typename Store = PlainStore>
struct Persistent : Specialised<Shape, Store> {
  static constexpr int kTileGroup = 8;
  static constexpr const char* kName = "persistent";

  /// Blocks of the grid.
  static int blocks(Tiling tiling, int multiprocessors) { return std::min(tiling.tiles(), multiprocessors); }
  /// Enqueues the kernel.
  template <Major B, SixteenBit T>
  static void launch(int blocks, const T* a, const T* b, T* c, MatmulShape shape, cudaStream_t stream) {
    Persistent::template launch_in_groups<B>(kTileGroup, blocks, a, b, c, shape, stream);
  }
};

/// The seventh rung: as the sixth, but TMA stores the results.
template <typename Shape = Tile<128, 256, 4>>
struct StoredByTma : Persistent<Shape, TmaStore> {
  static constexpr const char* kName = "tma_store";
};

}  // namespace overlap::tensor_core_gemm
