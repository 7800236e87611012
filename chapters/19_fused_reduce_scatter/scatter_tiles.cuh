// Chapter 19, the kernel: a partial tile goes from the epilogue to its owner, who adds those of all ranks.
//
//   sender                                       owner
//   sums in registers                            sums of its own tile in registers
//   -> shared memory, fence.proxy.async          acquire each rank's flag, at system scope
//   -> TMA into the owner's slot for this rank   barrier: all threads of the warpgroup are behind it
//   full wait, one tile later                    the ranks' partial sums, in their order, in f32
//   release the flag, at system scope            -> C, by TMA
//
// No proxy fence stands between the TMA store and the owner's loads: what completes a bulk copy is a fence
// for who has waited for it, and the flag passes on what the sender has seen (PTX ISA, "Async proxy").
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cuda/ptx>

#include "16_tensor_core_gemm/specialised.cuh"
#include "19_fused_reduce_scatter/owners.cuh"
#include "19_fused_reduce_scatter/wire.cuh"
#include "overlap/gpu/kernel_signals.hpp"

namespace overlap::fused_reduce_scatter {

using tensor_core_gemm::SharedMemory;
using wgmma::Major;

/// Where partial tiles of this call go, and where those of the others come.
template <typename W>
struct Exchange {
  CUtensorMap slot[kMostRanks];      ///< by owner: this rank's slot there
  std::uint32_t* flags[kMostRanks];  ///< by owner: flag() of them
  const W* slots;                    ///< here, by source: [rows, n] each
  std::int64_t pitch;                ///< elements from one to the next
  int most_tiles;                    ///< of an owner
  std::uint32_t epoch;               ///< of the call
  unsigned* stop;                    ///< Rank::stop_word()

  /// Which of an owner's flags says that `source` has sent a warpgroup's rows of a tile. It has one writer,
  /// and one reader: the owner's warpgroup of that number, which adds those rows and no others.
  template <typename Tile>
  __device__ int flag(int source, int tile, int group) const {
    return (source * most_tiles + tile) * Tile::kGroups + group;
  }
};

/// A flag that waits for a copy: raised one tile later, when the copies have long been done, so that a
/// warpgroup multiplies on while its partial sums are on the link.
struct PendingFlag {
  std::uint32_t* word = nullptr;  ///< null if there is none

  /// Called by the thread that has started the copies.
  __device__ __forceinline__ void raise(std::uint32_t epoch) {
    if (word == nullptr) return;
    // [task raise: for what does the flag wait, so that the owner finds the data where they belong?]
    ptx::cp_async_bulk_wait_group(ptx::n32_t<0>{});  // written; .read would only say that we may write
    // [/task]
    raise_signal(word, epoch);
    word = nullptr;
  }
};

/// Called by a warpgroup of the owner: returns when the rows that it adds are here from all ranks.
template <typename Tile, typename W>
__device__ __forceinline__ void await_partials(const Exchange<W>& exchange, int ranks, int rank, int tile,
                                               int group) {
  const int source = static_cast<int>(threadIdx.x) % wgmma::kThreads;  // a thread for each
  // [task await: which threads wait for a flag, and what makes the data known to the others?]
  if (source < ranks && source != rank)
    await_signal(exchange.flags[rank] + exchange.template flag<Tile>(source, tile, group), exchange.epoch,
                 exchange.stop);
  __syncwarp();  // the barrier wants whole warps
  wgmma::named_barrier(1 + group, wgmma::kThreads);
  // [/task]
}

/// Where the parts of an owner's tile are that a warpgroup adds.
template <typename W>
struct Summands {
  const W* slots;      ///< of rank 0, at this thread's first element
  std::int64_t pitch;  ///< from one rank's to the next
  int ranks;           ///< how many
  int rank;            ///< whose sums are in registers
  int n;               ///< elements from one row to the next
  int rows;            ///< from this thread's first element to the end of the owner's
  int columns;         ///< the same; a multiple of 8

  /// total = partial sum of rank 0 + of rank 1 + ..., in f32 and in this order, so that it does not depend on
  /// who came first; those of `rank` are `own`, which nothing has rounded. For `Count` values from `first`
  /// on.
  template <int Count>
  __device__ __forceinline__ void add(const float* own, int first, float (&total)[Count]) const {
    // [task add: whose sums are where, and what is the order?]
    for (int source = 0; source < ranks; ++source) {
      const W* upper = slots + source * pitch;
      const W* lower = upper + 8 * std::int64_t{n};
#pragma unroll
      for (int i = 0; i < Count; i += 4) {  // two neighbours in one row, and two eight rows below
        const int column = (first + i) / 4 * 8;
        float2 one = {own[i], own[i + 1]}, two = {own[i + 2], own[i + 3]};
        if (source != rank) {
          one = 0 < rows && column < columns ? pair_at(upper + column) : float2{};
          two = 8 < rows && column < columns ? pair_at(lower + column) : float2{};
        }
        total[i] += one.x;
        total[i + 1] += one.y;
        total[i + 2] += two.x;
        total[i + 3] += two.y;
      }
    }
    // [/task]
  }
};

/// The rank's own part of a tile, from `row` and `column` on in its [rows, n]: summed up, to C.
template <typename Tile, SixteenBit T, typename W>
__device__ __forceinline__ void add_and_store(const Fragment<Tile::kN>& sum, const Exchange<W>& exchange,
                                              int ranks, int rank, int rows, int n, int row, int column,
                                              const CUtensorMap& c, TmaStore::Staging<T, Tile>& staging) {
  const auto at = wgmma::place<Tile::kN>(static_cast<int>(threadIdx.x) % wgmma::kThreads, 0);
  const Summands<W> summands{exchange.slots + std::int64_t{row + at.row} * n + column + at.column,
                             exchange.pitch,
                             ranks,
                             rank,
                             n,
                             rows - row - at.row,
                             n - column};
  const auto write = [&](T* buffer, int part, int thread) {
    constexpr int kValues = TmaStore::kPartValues;
    float total[kValues] = {};
    summands.add(sum.value + part * kValues, part * kValues, total);
    TmaStore::write(total, buffer, thread);
  };
  const auto copy = [&](const T* buffer, int part) {
    ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &c, {column + part * kSpan, row}, buffer);
  };
  TmaStore::store_parts<Tile::kN / kSpan>(staging, write, copy);
}

/// This rank's product, whose tiles go where they belong; its own ones, summed up, to C.
template <typename Wire, SixteenBit T, typename Tile>
__global__ __launch_bounds__((Tile::kGroups + 1) * wgmma::kThreads, 1) void scatter_tiles(
    const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
    const __grid_constant__ CUtensorMap c,
    const __grid_constant__ Exchange<typename Wire::template Type<T>> exchange,
    const __grid_constant__ OwnedOrder order, int n) {
  extern __shared__ __align__(1024) unsigned char memory[];
  auto& shared = *reinterpret_cast<SharedMemory<T, Tile, TmaStore>*>(memory);
  if (threadIdx.x == 0) shared.ring.init();
  __syncthreads();
  const Owners& owners = order.owners;
  const int group = static_cast<int>(threadIdx.x) / wgmma::kThreads;
  if (group == Tile::kGroups) {
    wgmma::registers_down<tensor_core_gemm::kLoaderRegisters>();
    if (threadIdx.x / 32 % 4 == 0 && wgmma::elect_one()) {
      tensor_core_gemm::load_tiles(
          shared.ring, order, owners.along_k,
          [&](tensor_core_gemm::Stage<T, Tile>& stage, OwnedTile tile, int block, std::uint64_t* full) {
            // Behind an owner's rows the box has those of the next: they are multiplied, and go nowhere.
            auto corner = tile.place.corner<Tile>();
            corner.row += owners.first_row[tile.owner];
            tensor_core_gemm::load_stage<Major::kMN>(stage, a, b, corner, block, full);
          });
    }
    return;
  }
  wgmma::registers_up<tensor_core_gemm::kMultiplierRegisters>();
  const bool first = threadIdx.x % wgmma::kThreads == 0;  // which starts the warpgroup's copies
  auto& staging = shared.staging[group];
  PendingFlag pending;
  tensor_core_gemm::multiply_tiles<Major::kMN>(
      shared.ring, order, owners.along_k, group, [&](Fragment<Tile::kN>& sum, OwnedTile tile) {
        if (first) pending.raise(exchange.epoch);  // of the tile before
        const auto corner = tile.place.corner<Tile>();
        const int row = corner.row + group * kGroupRows, rows = owners.rows(tile.owner);
        const int number = tile.place.m * owners.along_n + tile.place.n;
        if (tile.owner == order.rank) {
          await_partials<Tile>(exchange, owners.ranks, order.rank, number, group);
          if (rows == 0) return;
          add_and_store<Tile, T>(sum, exchange, owners.ranks, order.rank, rows, n, row, corner.column, c,
                                 staging);
        } else {
          if (rows > 0)
            Wire::template send<Tile, T>(sum, exchange.slot[tile.owner], staging, row, corner.column);
          pending.word = exchange.flags[tile.owner] + exchange.template flag<Tile>(order.rank, number, group);
        }
      });
  if (first) pending.raise(exchange.epoch);
  TmaStore::finish();
}

}  // namespace overlap::fused_reduce_scatter
