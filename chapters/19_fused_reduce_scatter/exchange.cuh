// Chapter 19: transfer of partial tiles between ranks while the next tile is multiplied. A separate thread of
// the block, the exchanging thread, sends and fetches them part by part, through buffers in shared memory.
//
//   sender                                        owner
//   warpgroup: sums in registers                  exchanging thread: acquire the rank's flag, at system scope
//   -> buffer, fence.proxy.async, arrive          fence.proxy.async, TMA out of the slot into a buffer
//   exchanging thread: TMA into the owner's slot  warpgroup: wait for the buffer, add it to the sums
//   full wait for all parts of the tile           sums into the last buffer, fence.proxy.async, arrive
//   release the flag, at system scope             exchanging thread: TMA out of the buffer to C
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cuda/ptx>

#include "16_tensor_core_gemm/specialised.cuh"
#include "19_fused_reduce_scatter/owners.cuh"
#include "19_fused_reduce_scatter/wire.cuh"
#include "overlap/gpu/kernel_signals.hpp"
#include "overlap/gpu/ranks.hpp"

namespace overlap::fused_reduce_scatter {

using tensor_core_gemm::await_phase;
using tensor_core_gemm::Corner;
using tensor_core_gemm::Progress;

/// Slots and flags of one call. A kernel parameter.
struct Exchange {
  CUtensorMap to[kMaxRanks];        ///< [owner]: this rank's slot on it
  CUtensorMap from[kMaxRanks];      ///< [summand]: its slot on this rank
  std::uint32_t* flags[kMaxRanks];  ///< [owner]: its flags, see flag()
  int summands;                     ///< number that an owner adds, its own summand included
  int own;                          ///< index of the owner's own summand
  int max_tiles;
  std::uint32_t epoch;  ///< number of the call
  unsigned* stop;       ///< Rank::abort_flag()

  /// Index of the owner's flag for the partial tile of `source`. A flag has one writer and one reader: the
  /// blocks that compute this tile on the two ranks.
  __device__ int flag(int source, int tile) const { return source * max_tiles + tile; }
  /// Parts that a sum of kSpan columns takes: those of all other ranks; without others, empty ones of one
  /// rank.
  template <typename W>
  __device__ constexpr int parts_of_sum() const {
    return (summands == 1 ? 1 : summands - 1) * kSpan / kPartColumns<W>;
  }
};

/// Landing policy: each rank has its own slot on each owner, and the owner adds the slots. (An experiment
/// replaces this policy: there TMA adds on arrival.)
struct InSlots {
  static constexpr int slots(int ranks) { return ranks; }     ///< number of slots on an owner
  static constexpr int slot(int source) { return source; }    ///< slot of `source`
  static constexpr int summands(int ranks) { return ranks; }  ///< number that an owner adds
  static constexpr int own(int rank) { return rank; }         ///< index of the owner's own summand

  /// Starts the copy of a part to `column` and `row` of the slot.
  __device__ __forceinline__ static void send(const CUtensorMap& slot, int column, int row,
                                              const std::byte* part) {
    ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &slot, {column, row}, part);
  }

  /// Slots are overwritten, so nothing needs to be cleared.
  ///@{
  template <typename W>
  static InSlots ready(Rank&, W* /*slot*/, std::int64_t /*rows*/, std::int64_t /*columns*/) {
    return {};
  }
  struct Shared {};  ///< in each block's shared memory
  __device__ __forceinline__ static void init(Shared&) {}
  template <typename W>
  __device__ __forceinline__ void make_ready(const Shared&, int /*column*/, int /*row*/) const {}
  ///@}
};

/// Reduction order: ranks in ascending order, independent of arrival. Fetching and adding both follow it.
__device__ constexpr int summand(int index) { return index; }

/// The exchanging thread.
template <typename W, typename Landing, typename Tile>
struct ExchangingThread {
  static constexpr int kParts = Tile::kN / kPartColumns<W>;  ///< of a warpgroup's rows of a tile
  /// If all parts of a tile have a buffer, they are paced over the GEMM of the next tile. Otherwise the
  /// warpgroups wait for buffers, so parts are sent as fast as possible.
  static constexpr bool kEvenly = kParts <= PartBuffers::kCount;

  const Exchange& exchange;
  const OwnedOrder& order;
  const CUtensorMap& c;  ///< the rank's rows of C
  const Landing& landing;
  const typename Landing::Shared& landing_shared;
  PartBuffers* buffers;
  PartBarriers* barriers;
  Progress& progress;
  PartBarriers::Place out = {};  ///< next buffer to send, the same place for each warpgroup
  int fetched = 0, stored = 0;   ///< parts fetched, and sums stored, so far for each warpgroup

  /// Sends or fetches all of the block's tiles.
  __device__ __forceinline__ void run() {
    int number = 0;  // of the block's tiles
    const int all = (order.tiles() - static_cast<int>(blockIdx.x) + static_cast<int>(gridDim.x) - 1) /
                    static_cast<int>(gridDim.x);
    tensor_core_gemm::for_each_tile(order, [&](OwnedTile tile) {
      ++number;
      if (tile.owner == order.rank) {
        fetch_and_store(tile);
      } else {
        send(tile, number < all ? number * order.owners.along_k : -1);
      }
    });
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>{});  // a block must not end before
  }

 private:
  /// The number of a tile among its owner's tiles.
  __device__ __forceinline__ int number_of(OwnedTile tile) const {
    return tile.place.m * order.owners.along_n + tile.place.n;
  }

  /// Sends all parts of a tile and raises its flag. `loads`: number of k-blocks that the block has loaded
  /// when the next tile begins; -1: there is no next tile.
  ///
  /// Parts are paced: if all blocks sent their tiles at once, the queues of the link and of TMA would fill
  /// up, and the loads of the next tile's stages would wait in the same queue. The pace leaves the last
  /// quarter of the next tile's GEMM to the owner, which fetches the parts only when it sees the flag.
  __device__ __forceinline__ void send(OwnedTile tile, int loads) {
    const Corner corner = tile.place.template corner<Tile>();
    if (order.owners.rows(tile.owner) > 0) {
      for (int part = 0; part < kParts; ++part) {
        for (int group = 0; group < Tile::kGroups; ++group) {
          // [task send: when may a part be sent, and when may its buffer be filled again?]
          await_phase(&barriers[group].filled[out.stage], out.parity);
          if (kEvenly && loads >= 0)
            progress.await(loads + (part * Tile::kGroups + group) * order.owners.along_k * 3 /
                                       (kParts * Tile::kGroups * 4));
          Landing::send(exchange.to[tile.owner], corner.column + part * kPartColumns<W>,
                        corner.row + group * kGroupRows, buffers[group].parts[out.stage]);
          ptx::cp_async_bulk_commit_group();
          ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>{});  // TMA has read the part
          ptx::mbarrier_arrive(&barriers[group].sent[out.stage]);
          // [/task]
        }
        out.advance();
      }
    }
    // [task raise: which wait ensures that an owner that sees the flag finds the data in its slot?]
    ptx::cp_async_bulk_wait_group(ptx::n32_t<0>{});  // the slot is written; .read would only free the buffer
    raise_signal(exchange.flags[tile.owner] + exchange.flag(order.rank, number_of(tile)), exchange.epoch);
    // [/task]
  }

  /// For an own tile: fetches all other ranks' parts, in the order in which add_parts() adds them, and stores
  /// the sums to C. The buffers of a tile's last sums are still being read when it returns.
  __device__ __forceinline__ void fetch_and_store(OwnedTile tile) {
    const Owners& owners = order.owners;
    // [task await: which ranks' flags are awaited, and what orders TMA's loads after these waits?]
    for (int source = 0; source < owners.ranks; ++source) {
      if (source == order.rank) continue;
      await_signal(exchange.flags[order.rank] + exchange.flag(source, number_of(tile)), exchange.epoch,
                   exchange.stop);
    }
    ptx::fence_proxy_async(ptx::space_global);
    // [/task]
    if (owners.rows(order.rank) == 0) return;
    const Corner corner = tile.place.template corner<Tile>();
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>{});  // the sums of the tile before are read
    for (int columns = 0; columns < Tile::kN; columns += kSpan) {
      for (int i = 0; i < exchange.summands; ++i) {
        const int source = summand(i);
        if (source == exchange.own && exchange.summands > 1) continue;
        for (int part = 0; part < kSpan; part += kPartColumns<W>) {
          if (fetched - PartBuffers::kCount == last_part_of(stored)) {  // its buffer is the next one
            store_sum(corner);
            ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>{});
          }
          for (int group = 0; group < Tile::kGroups; ++group)
            fetch(source, corner.row + group * kGroupRows, corner.column + columns + part, group);
          ++fetched;
        }
      }
    }
    while (last_part_of(stored) < fetched) store_sum(corner);
  }

  /// Fetches a part for a warpgroup. A rank without others hands the empty buffer over.
  __device__ __forceinline__ void fetch(int source, int row, int column, int group) {
    // [task fetch: when may a buffer be filled, and how many bytes does its barrier expect?]
    const int stage = fetched % PartBuffers::kCount;
    PartBarriers& mine = barriers[group];
    await_phase(&mine.added[stage], parity_of(fetched) ^ 1);
    if (exchange.summands == 1) {
      ptx::mbarrier_arrive(&mine.here[stage]);
      return;
    }
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &mine.here[stage],
                                   kPartBytes);
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, buffers[group].parts[stage],
                              &exchange.from[source], {column, row}, &mine.here[stage]);
    // [/task]
  }

  /// Stores the next sum of all warpgroups, which has replaced its last part.
  __device__ __forceinline__ void store_sum(Corner corner) {
    const int item = last_part_of(stored), stage = item % PartBuffers::kCount;
    const int column = corner.column + stored % (Tile::kN / kSpan) * kSpan;
    for (int group = 0; group < Tile::kGroups; ++group) {
      const int row = corner.row + group * kGroupRows;
      // [task store: when does the buffer hold the sum?]
      await_phase(&barriers[group].added[stage], parity_of(item));
      ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &c, {column, row},
                                buffers[group].parts[stage]);
      // [/task]
      landing.template make_ready<W>(landing_shared, column, row);
    }
    ptx::cp_async_bulk_commit_group();
    ++stored;
  }

  /// Number of the last part of a sum.
  __device__ __forceinline__ int last_part_of(int sum) const {
    return (sum + 1) * exchange.template parts_of_sum<W>() - 1;
  }
  /// Parity of the phase in which part number `item` has a buffer.
  __device__ static constexpr std::uint32_t parity_of(int item) {
    return static_cast<std::uint32_t>(item / PartBuffers::kCount % 2);
  }
};

/// A warpgroup's side of the exchange.
template <typename W, typename Tile>
struct Exchanger {
  PartBuffers& buffers;
  PartBarriers& barriers;
  PartBarriers::Place out = {}, in = {};  ///< next buffer to send, and to add

  /// Called by all threads of the warpgroup: writes its sums of a tile to part buffers for the exchanging
  /// thread.
  template <typename Wire, SixteenBit T>
  __device__ __forceinline__ void hand_out(const Fragment<Tile::kN>& sum) {
    const int thread = static_cast<int>(threadIdx.x) % wgmma::kThreads;
#pragma unroll
    for (int part = 0; part < Tile::kN / kPartColumns<W>; ++part) {
      // [task hand_out: when may the buffer be filled, and what must stand between the writes and the copy?]
      await_phase(&barriers.sent[out.stage], out.parity ^ 1);
      Wire::template write<T>(sum.value + part * kPartValues<W>, buffers.parts[out.stage], thread);
      ptx::fence_proxy_async(ptx::space_shared);  // each thread's stores, before a copy reads them
      ptx::mbarrier_arrive(&barriers.filled[out.stage]);
      // [/task]
      out.advance();
    }
  }

  /// Called by all threads of the warpgroup for kSpan columns of an own tile, with their `own` summands, not
  /// rounded: sums the summands of rank 0, rank 1, ..., in f32 and in this order, so the bits do not depend
  /// on the order of arrival. The sum replaces the last part in its buffer.
  template <SixteenBit T>
  __device__ __forceinline__ void add_parts(const float* own, const Exchange& exchange) {
    const int thread = static_cast<int>(threadIdx.x) % wgmma::kThreads;
    float total[TmaStore::kPartValues] = {};
    int left = exchange.template parts_of_sum<W>();
    // [task add: where is each rank's summand, and in which order are they added?]
    for (int index = 0; index < exchange.summands; ++index) {
      if (summand(index) == exchange.own) {
#pragma unroll
        for (int i = 0; i < TmaStore::kPartValues; ++i) total[i] += own[i];
        continue;
      }
#pragma unroll
      for (int first = 0; first < TmaStore::kPartValues; first += kPartValues<W>) {
        await_phase(&barriers.here[in.stage], in.parity);
        add_part<W>(buffers.parts[in.stage], thread, total + first);
        if (--left > 0) release();
      }
    }
    // [/task]
    for (; left > 0; --left) {
      await_phase(&barriers.here[in.stage], in.parity);  // an empty buffer: there are no others
      if (left > 1) release();
    }
    // A warp has read, and now writes, no rows but its own.
    __syncwarp();
    TmaStore::write(total, reinterpret_cast<T*>(buffers.parts[in.stage]), thread);
    release();
  }

 private:
  /// Hands the buffer back to the exchanging thread. The fence orders the thread's accesses before TMA's:
  /// without it a late load was observed to read the next part (H200, f32 on the wire).
  __device__ __forceinline__ void release() {
    ptx::fence_proxy_async(ptx::space_shared);
    ptx::mbarrier_arrive(&barriers.added[in.stage]);
    in.advance();
  }
};

}  // namespace overlap::fused_reduce_scatter
