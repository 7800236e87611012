// Experiment of chapter 19: partial sums are added on arrival. An owner has one sum per element instead of P
// slots, and TMA adds to it:
//
//   senders         TMA adds their parts to the owner's sums, in the order of arrival
//   owner           after all flags of the tile: sums + its own, rounded, to C
//                   clears the sums, for the call after the next one
//
// Everything else is the chapter's kernel.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cuda/ptx>

#include "19_fused_reduce_scatter/fused_reduce_scatter.cuh"
#include "overlap/gpu/kernel_signals.hpp"

namespace overlap::fused_reduce_scatter {

/// Replaces InSlots. Additions happen in the order of arrival, so the last bits of rounded sums may differ
/// from call to call. Each addition is atomic: PTX guarantees that among threads of one GPU; among several
/// GPUs it is what all programs that add to a peer's memory rely on.
struct AddedUp {
  static constexpr int slots(int) { return 1; }  ///< one for all senders
  static constexpr int slot(int /*source*/) { return 0; }
  /// An owner adds two summands: the sum of all other ranks, and its own.
  static constexpr int summands(int ranks) { return ranks == 1 ? 1 : 2; }
  static constexpr int own(int rank) { return rank == 0 ? 0 : 1; }  ///< index of its own

  /// The rank's sums in boxes of parts.
  CUtensorMap sums;

  /// Adds the part to the sums of an owner.
  __device__ __forceinline__ static void send(const CUtensorMap& sums, int column, int row,
                                              const std::byte* part) {
    ptx::cp_reduce_async_bulk_tensor(ptx::space_global, ptx::space_shared, ptx::op_add, &sums, {column, row},
                                     part);
  }

  // ---- Zeros, to which the next call of this set adds -----------------------------------------------------
  /// Zeros of the block.
  struct Shared {
    alignas(1024) std::uint32_t zeros[kPartBytes / sizeof(std::uint32_t)];  ///< a part, TMA's source
  };

  /// Clears the sums for the first call. Waits. Collective. Throws as require_native_atomics() does.
  template <typename W>
  static AddedUp ready(Rank& rank, W* sums, std::int64_t rows, std::int64_t columns) {
    for (int peer = 0; peer < rank.size(); ++peer) require_native_atomics(rank, peer);
    if (rows == 0 || columns == 0) return {};
    CUDA_CHECK(cudaMemsetAsync(sums, 0, static_cast<std::size_t>(rows * columns) * sizeof(W), rank.stream()));
    rank.synchronize(rank.stream());
    // A variable: without optimisation g++ 12 does not align a temporary, and a map wants 64 bytes.
    const CUtensorMap map = tensor_core_gemm::tensor_map(sums, rows, columns, kGroupRows);
    AddedUp ready;
    ready.sums = map;
    return ready;
  }

  /// Called by all threads; the caller's __syncthreads() follows.
  __device__ __forceinline__ static void init(Shared& shared) {
    constexpr unsigned kWords = sizeof shared.zeros / sizeof shared.zeros[0];
    for (unsigned i = threadIdx.x; i < kWords; i += blockDim.x) shared.zeros[i] = 0;
    ptx::fence_proxy_async(ptx::space_shared);
  }

  /// Called by one thread after a warpgroup has added its rows of the sums, kSpan columns from `row` and
  /// `column` on: clears them by TMA, through the same proxy as the reads before and the additions after.
  ///
  /// No rank adds to these sums before they are cleared. In call e all flags of the tile have been seen, and
  /// call e + 1 uses the other set. A rank that adds in call e + 2 has seen a flag of this rank's call e + 1,
  /// see exchange(); that call began after this kernel and these copies had ended.
  template <typename W>
  __device__ __forceinline__ void make_ready(const Shared& shared, int column, int row) const {
    for (int columns = 0; columns < kSpan; columns += kPartColumns<W>) {
      ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &sums, {column + columns, row},
                                shared.zeros);
    }
  }
};

/// FusedReduceScatter with sums instead of slots. A partial sum is rounded to the wire's type before it is
/// sent, and again in each sum that contains it: at most P - 1 roundings.
template <SixteenBit T, typename Wire = SixteenBitWire, typename Shape = tensor_core_gemm::Tile<128, 256, 3>>
using ReduceAdd = FusedReduceScatter<T, Wire, Shape, AddedUp>;

}  // namespace overlap::fused_reduce_scatter
