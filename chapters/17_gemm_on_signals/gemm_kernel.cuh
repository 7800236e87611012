// Chapter 17: the kernel. Chapter 16's pipeline, whose producer thread waits for a tile's rows of A before it
// loads them.
#pragma once

#include <cuda.h>

#include <climits>
#include <cstdint>
#include <cuda/atomic>
#include <cuda/ptx>

#include "16_tensor_core_gemm/specialised.cuh"
#include "17_gemm_on_signals/arrival_order.cuh"

namespace overlap::gemm_on_signals {

namespace ptx = cuda::ptx;
using tensor_core_gemm::Corner;
using tensor_core_gemm::Fragment;
using tensor_core_gemm::Major;
using tensor_core_gemm::SharedMemory;
using tensor_core_gemm::Stage;
using tensor_core_gemm::TmaStore;

/// The shards that arrive during the kernel, and their signals. A kernel parameter.
struct Arrivals {
  Shards shards;
  int rank;                      ///< this rank: its own rows need no signal
  std::uint32_t* words;          ///< this rank's signals
  std::uint32_t epoch;           ///< their value in this call
  unsigned* stop;                ///< Rank::abort_flag()
  Pieces pieces = {1, INT_MAX};  ///< by default whole shards

  // ---- A kernel waits for a signal ------------------------------------------------------------------------
  // Later chapters use these lines from overlap/gpu/kernel_signals.hpp.
  /// Called by one thread: waits until the signal is raised. The raiser's earlier writes are then visible to
  /// this thread's ordinary loads. Also returns if the run is stopped; the result is then discarded.
  __device__ __forceinline__ void await(int signal) const {
    // Another GPU writes the word: a scope below system would not include that GPU.
    const cuda::atomic_ref<std::uint32_t, cuda::thread_scope_system> word(words[signal]);
    const cuda::atomic_ref<unsigned, cuda::thread_scope_system> stopped(*stop);
    // [task await: when has the signal of this call been raised, and what must the load order?]
    // Words grow and may overflow, so compare their signed difference. ">= epoch", not "==": the raising rank
    // may be a call ahead.
    for (unsigned looks = 1; static_cast<std::int32_t>(word.load(cuda::memory_order_acquire) - epoch) < 0;
         ++looks) {
      // `stop` lies in host memory. Frequent reads of it slow down NCCL and signals (chapter 20 has the
      // times), so read it every ten milliseconds.
      if (looks % 16384 == 0 && stopped.load(cuda::memory_order_acquire) != 0) return;
    }
    // [/task]
  }

  /// Waits for the piece of all rows from `first` to `last`, also on behalf of TMA's loads.
  __device__ __forceinline__ void await_rows(int first, int last, int piece) const {
    // [task await_rows: which signals tell that all of these rows are here, and for whose reads?]
    for (int row = first; row < last;) {
      const int owner = shards.owner(row);
      if (owner != rank) await(pieces.signal(owner, piece));
      row = shards.end(owner);
    }
    // The acquire orders ordinary loads only; TMA reads through the async proxy, which needs the fence.
    ptx::fence_proxy_async(ptx::space_global);
    // [/task]
  }

  /// Hook for the other warps of the loader's warpgroup, 1 to 3, called by a thread of each; see
  /// experiments/pushed_by_blocks.cuh. Does nothing.
  template <typename Tile, typename Order>
  __device__ __forceinline__ void await_ahead(const Order& /*order*/, int /*warp*/) const {}
};

/// Called by all threads of a block: computes its tiles of C; see multiply_on_signals().
template <SixteenBit T, typename Tile, Major B, typename Order, typename Awaited>
__device__ __forceinline__ void multiply_as_rows_arrive(const CUtensorMap& own_a,
                                                        const CUtensorMap& gathered_a, const CUtensorMap& b,
                                                        const CUtensorMap& c, const Order& order,
                                                        const Awaited& arrivals) {
  extern __shared__ __align__(1024) unsigned char memory[];
  auto& shared = *reinterpret_cast<SharedMemory<T, Tile, TmaStore>*>(memory);
  if (threadIdx.x == 0) shared.ring.init();
  __syncthreads();
  const int group = static_cast<int>(threadIdx.x) / wgmma::kThreads;
  if (group == Tile::kGroups) {
    wgmma::registers_down<tensor_core_gemm::kLoaderRegisters>();
    const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
    if (warp > 0 && wgmma::elect_one()) arrivals.template await_ahead<Tile>(order, warp);
    if (warp == 0 && wgmma::elect_one()) {
      const Shards& shards = arrivals.shards;
      const CUtensorMap* a = &gathered_a;  // the tile's map of A, and the tile's corner in it
      Corner from{};
      int end = 0;              // one past the tile's last row
      int piece = 0, next = 0;  // the next piece to wait for, and its first k-block; -1: none
      const auto load = [&](Stage<T, Tile>& stage, TilePlace tile, int block, std::uint64_t* full) {
        // [task load: from which of the two maps does this tile read, and what must have come before?]
        if (block == 0) {  // once per tile: a k-block of a small tile takes no longer than these divisions
          from = tile.corner<Tile>();
          end = min(from.row + Tile::kM, shards.rows);
          const bool own = shards.hold(arrivals.rank, from.row, end);
          a = own ? &own_a : &gathered_a;
          piece = 0;
          next = own ? -1 : 0;
          if (own) from.row -= shards.begin(arrivals.rank);
        }
        if (block == next) {
          arrivals.await_rows(from.row, end, piece);
          next = arrivals.pieces.begin(++piece);
        }
        // [/task]
        load_stage<B>(stage, *a, b, from, block, full);
      };
      load_tiles(shared.ring, order, order.tiling.along_k, load);
    }
  } else {
    wgmma::registers_up<tensor_core_gemm::kMultiplierRegisters>();
    const auto store = [&](const Fragment<Tile::kN>& sum, TilePlace tile) {
      const Corner corner = tile.corner<Tile>();
      TmaStore::store<Tile, T>(sum, nullptr, c, &shared.staging[group],
                               corner.row + group * tensor_core_gemm::kGroupRows, corner.column, 0, 0);
    };
    multiply_tiles<B>(shared.ring, order, order.tiling.along_k, group, store);
    TmaStore::finish();
  }
}

/// C = A B, where only the own rows of A are present when the kernel starts; see GemmOnSignals. `order` maps
/// a number to a tile, as ArrivalOrder does.
template <SixteenBit T, typename Tile, Major B, typename Order = ArrivalOrder>
__global__ __launch_bounds__((Tile::kGroups + 1) * wgmma::kThreads, 1) void multiply_on_signals(
    const __grid_constant__ CUtensorMap own_a, const __grid_constant__ CUtensorMap gathered_a,
    const __grid_constant__ CUtensorMap b, const __grid_constant__ CUtensorMap c,
    const __grid_constant__ Order order, const __grid_constant__ Arrivals arrivals) {
  multiply_as_rows_arrive<T, Tile, B>(own_a, gathered_a, b, c, order, arrivals);
}

}  // namespace overlap::gemm_on_signals
