// Chapter 19: how partial tiles get from rank to rank while the next tile is multiplied. Neither is the
// multiplying warpgroups' business: a thread of its own, the exchanging thread, sends and fetches, part by
// part, through buffers in shared memory.
//
//   sender                                        owner
//   warpgroup: sums in registers                  exchanging thread: acquire the rank's flag, at system scope
//   -> buffer, fence.proxy.async, arrive          fence.proxy.async, TMA out of the slot into a buffer
//   exchanging thread: TMA into the owner's slot  warpgroup: await the buffer, add it to the sums
//   full wait, once all parts of the tile left    arrive: the buffer may be filled again
//   release the flag, at system scope
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cuda/atomic>
#include <cuda/ptx>

#include "16_tensor_core_gemm/specialised.cuh"
#include "19_fused_reduce_scatter/owners.cuh"
#include "19_fused_reduce_scatter/wire.cuh"
#include "overlap/gpu/kernel_signals.hpp"
#include "overlap/gpu/ranks.hpp"

namespace overlap::fused_reduce_scatter {

namespace ptx = cuda::ptx;
using tensor_core_gemm::await_phase;
using tensor_core_gemm::Corner;

/// Where partial tiles of this call go, and where those of the others come.
struct Exchange {
  CUtensorMap to[kMaxRanks];        ///< by owner: this rank's slot there
  CUtensorMap from[kMaxRanks];      ///< by summand: its slot here
  std::uint32_t* flags[kMaxRanks];  ///< by owner: flag() of them
  int summands;                     ///< that an owner adds, its own included
  int own;                          ///< which of them is its own
  int max_tiles;                    ///< of an owner
  std::uint32_t epoch;              ///< of the call
  unsigned* stop;                   ///< Rank::abort_flag()

  /// Which of an owner's flags says that `source` has sent its part of a tile. It has one writer and one
  /// reader, the blocks that have this tile.
  __device__ int flag(int source, int tile) const { return source * max_tiles + tile; }
};

/// How partial sums land: each rank has a slot with each owner, which adds what lies in them. (An experiment
/// has them added up on arrival instead. What differs then is what stands here.)
struct InSlots {
  static constexpr int slots(int ranks) { return ranks; }     ///< of an owner
  static constexpr int slot(int source) { return source; }    ///< for what `source` sends
  static constexpr int summands(int ranks) { return ranks; }  ///< that an owner adds, its own included
  static constexpr int own(int rank) { return rank; }         ///< which of them is its own

  /// Starts the copy of a part into the slot, of which it is the box at that index.
  __device__ __forceinline__ static void send(const CUtensorMap& slot, int column, int row,
                                              const std::byte* part) {
    ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &slot, {column, row}, part);
  }

  /// What makes a slot ready for the next partial sums: they overwrite what is there, so there is nothing.
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

/// Whose partial sum is added as number `index`: in the order of the ranks, whoever came first. Both sides of
/// the exchange go by it.
__device__ constexpr int summand(int index) { return index; }

/// A warpgroup's buffers. On the way out it fills them and the exchanging thread empties them; on the way in
/// it is the other way round. A block sends all that it has to send before it fetches anything, since its own
/// tiles come last.
struct PartBuffers {
  static constexpr int kCount = 4;  ///< a whole tile's, at 16 bits

  alignas(1024) std::byte parts[kCount][kPartBytes];  ///< swizzled
};

/// The mbarriers of a warpgroup's buffers.
struct PartBarriers {
  using Place = tensor_core_gemm::RingPlace<PartBuffers::kCount>;  ///< which buffer is next

  std::uint64_t filled[PartBuffers::kCount];  ///< by all threads of the warpgroup: may be sent
  std::uint64_t sent[PartBuffers::kCount];    ///< has been read, may be filled
  std::uint64_t here[PartBuffers::kCount];    ///< a part of another rank has come
  std::uint64_t added[PartBuffers::kCount];   ///< by all threads of the warpgroup: another one may come

  /// Called by one thread; Ring::init()'s fence comes behind it.
  __device__ void init() {
    for (int i = 0; i < PartBuffers::kCount; ++i) {
      ptx::mbarrier_init(&filled[i], wgmma::kThreads);
      ptx::mbarrier_init(&sent[i], 1);
      ptx::mbarrier_init(&here[i], 1);
      ptx::mbarrier_init(&added[i], wgmma::kThreads);
    }
  }
};

/// The loading thread tells the exchanging thread how far the block has come. Nothing is ordered by it.
struct Progress {
  int loads;  ///< k-blocks that have been loaded

  /// Called by the loading thread.
  __device__ void tell(int now) {
    cuda::atomic_ref<int, cuda::thread_scope_block>(loads).store(now, cuda::memory_order_relaxed);
  }
  /// Called by the exchanging thread: returns once there are so many.
  __device__ void await(int number) {
    const cuda::atomic_ref<int, cuda::thread_scope_block> now(loads);
    while (now.load(cuda::memory_order_relaxed) < number) {
    }
  }
};

/// What the exchanging thread does.
template <typename W, typename Landing, typename Tile>
struct ExchangingThread {
  static constexpr int kParts = Tile::kN / kPartColumns<W>;  ///< of a warpgroup's rows of a tile
  /// A tile whose parts all have a buffer leaves evenly while the next one is multiplied. Otherwise its
  /// warpgroups wait for buffers, and it leaves as fast as it can.
  static constexpr bool kEvenly = kParts <= PartBuffers::kCount;
  using Place = PartBarriers::Place;  ///< which buffer is next

  const Exchange& exchange;  ///< of the call
  const OwnedOrder& order;   ///< of the tiles
  PartBuffers* buffers;      ///< by warpgroup
  PartBarriers* barriers;    ///< the same
  Progress& progress;        ///< of the block's loads
  Place out = {};            ///< the next buffer of all warpgroups on the way out
  Place in = {};             ///< the same on the way in

  /// All of the block's tiles.
  __device__ __forceinline__ void run() {
    int number = 0;  // tiles before this one, of the block
    const int all = (order.tiles() - static_cast<int>(blockIdx.x) + static_cast<int>(gridDim.x) - 1) /
                    static_cast<int>(gridDim.x);
    tensor_core_gemm::for_each_tile(order, [&](OwnedTile tile) {
      ++number;
      if (tile.owner == order.rank) {
        fetch(tile);
      } else {
        send(tile, number < all ? number * order.owners.along_k : -1);
      }
    });
  }

 private:
  /// The number of a tile among its owner's.
  __device__ __forceinline__ int number_of(OwnedTile tile) const {
    return tile.place.m * order.owners.along_n + tile.place.n;
  }

  /// All parts of a tile, and its flag. `loads`: how many k-blocks the block has loaded when it begins with
  /// the tile behind it; -1: there is none.
  ///
  /// Sent all at once, the tiles of all blocks would fill the links' queues, and those of TMA behind them:
  /// the loads of the next tile's stages would stand in the same queue. So a part leaves now and then.
  __device__ __forceinline__ void send(OwnedTile tile, int loads) {
    const Corner corner = tile.place.template corner<Tile>();
    if (order.owners.rows(tile.owner) > 0) {
      for (int part = 0; part < kParts; ++part) {
        for (int group = 0; group < Tile::kGroups; ++group) {
          // [task send: when may a part leave, and when may its buffer be filled again?]
          await_phase(&barriers[group].filled[out.stage], out.parity);
          if (kEvenly && loads >= 0)
            progress.await(loads +
                           (part * Tile::kGroups + group) * order.owners.along_k / (kParts * Tile::kGroups));
          Landing::send(exchange.to[tile.owner], corner.column + part * kPartColumns<W>,
                        corner.row + group * kGroupRows, buffers[group].parts[out.stage]);
          ptx::cp_async_bulk_commit_group();
          ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>{});
          ptx::mbarrier_arrive(&barriers[group].sent[out.stage]);
          // [/task]
        }
        out.advance();
      }
    }
    // [task raise: for what does the flag wait, so that the owner finds the data where they belong?]
    ptx::cp_async_bulk_wait_group(ptx::n32_t<0>{});  // written; .read would only say that we may write
    raise_signal(exchange.flags[tile.owner] + exchange.flag(order.rank, number_of(tile)), exchange.epoch);
    // [/task]
  }

  /// What all other ranks have sent of an own tile, in the order in which add_parts() wants it.
  __device__ __forceinline__ void fetch(OwnedTile tile) {
    const Owners& owners = order.owners;
    const Corner corner = tile.place.template corner<Tile>();
    // [task await: whose flags, and what lets TMA see what they stand for?]
    for (int source = 0; source < owners.ranks; ++source) {
      if (source == order.rank) continue;
      await_signal(exchange.flags[order.rank] + exchange.flag(source, number_of(tile)), exchange.epoch,
                   exchange.stop);
    }
    ptx::fence_proxy_async(ptx::space_global);
    // [/task]
    if (owners.rows(order.rank) == 0) return;
    constexpr int kOfResult = kSpan / kPartColumns<W>;  // parts to one of C
    for (int part = 0; part < kParts; part += kOfResult) {
      for (int i = 0; i < exchange.summands; ++i) {
        const int source = summand(i);
        if (source == exchange.own) continue;
        for (int half = 0; half < kOfResult; ++half) {
          for (int group = 0; group < Tile::kGroups; ++group) {
            // [task fetch: when may a buffer be filled, and how many bytes will come?]
            PartBarriers& mine = barriers[group];
            std::byte* buffer = buffers[group].parts[in.stage];
            await_phase(&mine.added[in.stage], in.parity ^ 1);
            ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared,
                                           &mine.here[in.stage], kPartBytes);
            const int column = corner.column + (part + half) * kPartColumns<W>;
            const int row = corner.row + group * kGroupRows;
            ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, buffer, &exchange.from[source],
                                      {column, row}, &mine.here[in.stage]);
            // [/task]
          }
          in.advance();
        }
      }
    }
  }
};

/// A warpgroup's side of the exchange.
template <typename W, typename Tile>
struct Exchanger {
  using Place = PartBarriers::Place;  ///< which buffer is next

  PartBuffers& buffers;    ///< its own
  PartBarriers& barriers;  ///< the same
  Place out = {};          ///< the next buffer on the way out
  Place in = {};           ///< the same on the way in

  /// Gives its sums of a tile to the exchanging thread, part by part. All of its threads call it.
  template <typename Wire, SixteenBit T>
  __device__ __forceinline__ void hand_out(const Fragment<Tile::kN>& sum) {
    const int thread = static_cast<int>(threadIdx.x) % wgmma::kThreads;
#pragma unroll
    for (int part = 0; part < Tile::kN / kPartColumns<W>; ++part) {
      // [task hand_out: when may the buffer be filled, and what comes between that and the copy?]
      await_phase(&barriers.sent[out.stage], out.parity ^ 1);
      Wire::template write<T>(sum.value + part * kPartValues<W>, buffers.parts[out.stage], thread);
      ptx::fence_proxy_async(ptx::space_shared);  // each thread's stores, before a copy reads them
      ptx::mbarrier_arrive(&barriers.filled[out.stage]);
      // [/task]
      out.advance();
    }
  }

  /// total = partial sum of rank 0 + of rank 1 + ..., in f32 and in this order, so that it does not depend on
  /// who came first; those of the rank itself are `own`, which nothing has rounded. Of one part of C.
  template <int Count>
  __device__ __forceinline__ void add_parts(const float* own, const Exchange& exchange,
                                            float (&total)[Count]) {
    const int thread = static_cast<int>(threadIdx.x) % wgmma::kThreads;
    // [task add: whose sums are where, and what is the order?]
    for (int index = 0; index < exchange.summands; ++index) {
      if (summand(index) == exchange.own) {
#pragma unroll
        for (int i = 0; i < Count; ++i) total[i] += own[i];
        continue;
      }
#pragma unroll
      for (int first = 0; first < Count; first += kPartValues<W>) {
        await_phase(&barriers.here[in.stage], in.parity);
        add_part<W>(buffers.parts[in.stage], thread, total + first);
        // Also a load that has to come before TMA's write: without the fence a late one was seen to read what
        // came next (H200, f32 on the wire).
        ptx::fence_proxy_async(ptx::space_shared);
        ptx::mbarrier_arrive(&barriers.added[in.stage]);
        in.advance();
      }
    }
    // [/task]
  }
};

}  // namespace overlap::fused_reduce_scatter
