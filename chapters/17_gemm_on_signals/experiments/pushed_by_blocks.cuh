// Chapter 17, few rows: a copy engine takes longer to start and to signal than the shard takes on the link,
// so here blocks of the kernel push, on multiprocessors that have no tile:
//
//   block of a tile:     await piece 0 of the rows, its k-blocks | await piece 1, its k-blocks | ...
//   block that pushes:   a piece to d-1, d-2, ..., raise | another piece to d-1, d-2, ..., raise | ...
//
// All tiles are computed at the same time, one a block, and all begin at k = 0. So a shard is pushed in the
// order of k, a piece to all ranks at a time, and a tile follows a few k-blocks behind. The first pieces are
// short, because tiles wait for them.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cuda/ptx>
#include <string>

#include "16_tensor_core_gemm/tensor_core_gemm.cuh"
#include "17_gemm_on_signals/gemm_kernel.cuh"
#include "overlap/gpu/kernel_signals.hpp"
#include "overlap/gpu/signals.hpp"
#include "overlap/gpu/slots.hpp"
#include "overlap/gpu/timeline.hpp"

namespace overlap::gemm_on_signals {

/// Where the rank's shard goes. A kernel parameter.
struct Receivers {
  static constexpr int kMost = 16;  ///< limit set by the size of the kernel's parameters

  int count;
  CUtensorMap shard[kMost];       ///< the shard's place in the receiver's gathered A
  std::uint32_t* signals[kMost];  ///< the receiver's signals
};

inline constexpr int kMostPieces = 64;  ///< of a shard

/// At most kMostPieces pieces: four of a k-block (or of a few, if k is long), four of two, four of three, ...
inline Pieces growing_pieces(int along_k) {
  Pieces pieces{1, 1, 1, 4};
  while (pieces.begin(pieces.count) < along_k) {
    if (++pieces.count > kMostPieces) pieces = {1, pieces.blocks + 1, pieces.blocks + 1, 4};
  }
  return pieces;
}

/// A block's shared memory.
template <SixteenBit T, typename Tile>
struct PushMemory : SharedMemory<T, Tile, TmaStore> {
  std::uint64_t here[kMostPieces];  ///< mbarriers: the piece of the tile's rows has arrived
};

/// An acquire load of a signal takes more than half a microsecond, as long as three k-blocks take, even if
/// the piece is here. So three other warps await the signals ahead, and the thread that loads awaits an
/// mbarrier for each piece.
struct ArrivalsAhead : Arrivals {
  std::uint64_t* here;

  /// Called by the thread that loads.
  __device__ __forceinline__ void await_rows(int /*first*/, int /*last*/, int piece) const {
    tensor_core_gemm::await_phase(&here[piece], 0);
  }
  /// Called by a thread of each of the warps 1 to 3: awaits every third piece of the block's only tile.
  template <typename Tile, typename Order>
  __device__ __forceinline__ void await_ahead(const Order& order, int warp) const {
    const int first = order(static_cast<int>(blockIdx.x)).template corner<Tile>().row;
    const int last = min(first + Tile::kM, shards.rows);
    if (shards.hold(rank, first, last)) return;
    for (int piece = warp - 1; piece < pieces.count; piece += 3) {
      for (int row = first; row < last; row = shards.end(shards.owner(row)))
        await(pieces.signal(shards.owner(row), piece));  // also of own rows
      ptx::fence_proxy_async(ptx::space_global);         // as Arrivals::await_rows()
      ptx::mbarrier_arrive(&here[piece]);
    }
  }
};

/// Called by one thread of pushing block `index` of `blocks`: pushes every `blocks`-th piece of the shard to
/// all receivers, and raises its signal there. `shard`: its map; `along_k`: k-blocks of a row.
template <typename Stages>
__device__ __forceinline__ void push_pieces(Stages& ring, const CUtensorMap& shard,
                                            const Receivers& receivers, const Arrivals& arrivals, int along_k,
                                            int index, int blocks) {
  using Tile = typename Stages::Tile;
  const Pieces& pieces = arrivals.pieces;
  const int rows = arrivals.shards.end(arrivals.rank) - arrivals.shards.begin(arrivals.rank);
  const int along_m = (rows + Tile::kM - 1) / Tile::kM;
  const auto corner = [&](int box) {  // a box has a tile's rows of a k-block
    return Corner{box % along_m * Tile::kM, box / along_m * tensor_core_gemm::kSpan};
  };
  tensor_core_gemm::RingPlace<Tile::kStages> place;
  for (int piece = index; piece < pieces.count; piece += blocks) {
    const int end = min(pieces.begin(piece + 1), along_k) * along_m;
    for (int box = pieces.begin(piece) * along_m; box < end;) {
      const int next = min(box + Tile::kStages, end);  // as many boxes as there are stages, at once
      auto loading = place;
      for (int i = box; i < next; ++i, loading.advance()) {
        auto& stage = ring.stages[loading.stage].a;
        std::uint64_t* full = &ring.full[loading.stage];
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, full,
                                       sizeof stage);
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, stage, &shard,
                                  {corner(i).column, corner(i).row}, full);
      }
      for (; box < next; ++box, place.advance()) {
        tensor_core_gemm::await_phase(&ring.full[place.stage], place.parity);
        for (int i = 0; i < receivers.count; ++i) {
          ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &receivers.shard[i],
                                    {corner(box).column, corner(box).row}, ring.stages[place.stage].a);
        }
      }
      ptx::cp_async_bulk_commit_group();
      ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>{});  // the stages may be filled again
    }
    ptx::cp_async_bulk_wait_group(ptx::n32_t<0>{});  // the piece has arrived
    for (int i = 0; i < receivers.count; ++i)
      raise_signal(receivers.signals[i] + pieces.signal(arrivals.rank, piece), arrivals.epoch);
  }
}

/// See PushedByBlocks. Blocks without a tile push.
template <SixteenBit T, typename Tile, Major B>
__global__ __launch_bounds__((Tile::kGroups + 1) * wgmma::kThreads, 1) void push_and_multiply(
    const __grid_constant__ CUtensorMap own_a, const __grid_constant__ CUtensorMap gathered_a,
    const __grid_constant__ CUtensorMap b, const __grid_constant__ CUtensorMap c,
    const __grid_constant__ ArrivalOrder order, const __grid_constant__ Arrivals arrivals,
    const __grid_constant__ Receivers receivers) {
  extern __shared__ __align__(1024) unsigned char memory[];
  auto& shared = *reinterpret_cast<PushMemory<T, Tile>*>(memory);
  const int index = static_cast<int>(blockIdx.x) - order.tiles();
  if (index < 0) {
    if (threadIdx.x == 0) {  // before the ring's mbarriers, behind which a fence and a barrier follow
      for (int piece = 0; piece < arrivals.pieces.count; ++piece) ptx::mbarrier_init(&shared.here[piece], 1);
    }
    const ArrivalsAhead ahead{arrivals, shared.here};
    multiply_as_rows_arrive<T, Tile, B>(own_a, gathered_a, b, c, order, ahead);
  } else if (threadIdx.x == 0) {
    shared.ring.init();
    push_pieces(shared.ring, own_a, receivers, arrivals, order.tiling.along_k, index,
                static_cast<int>(gridDim.x) - order.tiles());
  }
}

/// C = A B as GemmOnSignals, for so few tiles that each has a multiprocessor, and some are left to push.
template <SixteenBit T, Major B = Major::kMN, typename Shape = tensor_core_gemm::Tile<64, 128, 8>>
class PushedByBlocks {
 public:
  /// The same with another tile.
  template <typename Other>
  using WithTile = PushedByBlocks<T, B, Other>;

  /// Collective. Allocates all memory of run(), and loads the kernel, which leaves `set_aside`
  /// multiprocessors to other kernels that wait for other GPUs. Throws Skip unless all tiles and a block that
  /// pushes have a multiprocessor each; else as GemmOnSignals and multiprocessors_to_wait_on() do.
  PushedByBlocks(Rank& rank, MatmulShape whole, int set_aside = 0)
      : room_(room_for(rank, whole, set_aside)),
        rank_(rank),
        ring_(rank),
        whole_(whole),
        share_(tensor_core_gemm::share_of(whole, rank.size(), rank.id())),
        shards_(shards_of(whole, rank.size())),
        pieces_(pieces_of(whole)),
        gathered_(rank, 1, slot_elements(whole, rank.size())),
        arrived_(rank, rank.size() * pieces_.count) {
    order_ = arrival_order(shards_, tensor_core_gemm::tiling_of<Shape>(share_), Shape::kM, rank.id());
    const Edges edges = edges_of(shards_, rank.id(), Shape::kM);
    const bool has_edges = !edges.head.empty() || !edges.tail.empty();
    receivers_ = rank.size() - 1 + (has_edges ? 1 : 0);
    blocks_ = order_.tiles() + (receivers_ > 0 ? std::min(room_ - order_.tiles(), pieces_.count) : 0);
    CUDA_CHECK(cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Memory)));
    require_resident(rank, kKernel, kThreads, sizeof(Memory), blocks_);  // loads it, too
    rank.barrier();  // all ranks have loaded the kernel before any of them waits
  }

  /// Enqueues one call on `stream`, as GemmOnSignals::run() does.
  void run(const T* a, const T* b, T* c, cudaStream_t stream) {
    if (whole_.m == 0 || whole_.n == 0 || whole_.k == 0) {
      if (share_.m * share_.n > 0)  // empty sums
        CUDA_CHECK(cudaMemsetAsync(c, 0, share_.m * share_.n * sizeof(T), stream));
      return;
    }
    arrived_.begin_call();
    multiply(a, b, c, stream);
    // Each call must see a signal of every rank, see GemmOnSignals::close(). The kernel saw those of rows.
    for (int step = 1; step < rank_.size(); ++step) {
      const int owner = ring_.shard(step);
      if (shards_.begin(owner) == shards_.end(owner)) arrived_.await(pieces_.signal(owner, 0), stream);
    }
  }

  /// Cost card of one call of `rank`. A message is a piece of its shard with its signal.
  static Cost cost(MatmulShape whole, int ranks, int rank) {
    if (whole.m == 0 || whole.n == 0 || whole.k == 0) return {};
    const std::int64_t row = whole.k * std::int64_t{sizeof(T)};
    const Shards shards = shards_of(whole, ranks);
    const std::int64_t own = shards.end(rank) - shards.begin(rank);
    return {.messages = (ranks - 1) * pieces_of(whole).count,
            .bytes_out = (ranks - 1) * own * row,
            .bytes_in = (whole.m - own) * row,
            .launches = 1,
            .memory = Slots<T>::bytes(1, slot_elements(whole, ranks))};
  }

 private:
  using Memory = PushMemory<T, Shape>;
  static constexpr int kThreads = (Shape::kGroups + 1) * wgmma::kThreads;
  static constexpr auto kKernel = push_and_multiply<T, Shape, B>;

  /// The rank's multiprocessors. Throws before anything is allocated, so that other algorithms can still run.
  static int room_for(Rank& rank, MatmulShape whole, int set_aside) {
    tensor_core_gemm::require_all_sizes(whole, rank.size());
    if (rank.size() > Receivers::kMost) {
      throw Skip("the kernel's parameters have room for " + std::to_string(Receivers::kMost) +
                 " ranks, and there are " + std::to_string(rank.size()));
    }
    const MatmulShape share = tensor_core_gemm::share_of(whole, rank.size(), 0);
    const int room = tensor_core_gemm::multiprocessors_to_wait_on(rank, set_aside);
    const int tiles = tensor_core_gemm::tiling_of<Shape>(share).tiles();
    if (tiles < room) return room;
    throw Skip("each of " + std::to_string(tiles) +
               " tiles, and a block that pushes, needs a multiprocessor of " + std::to_string(room));
  }

  void multiply(const T* a, const T* b, T* c, cudaStream_t stream) {
    const TimelineScope name("push shards, and multiply as they come");
    const int own_rows = shards_.end(rank_.id()) - shards_.begin(rank_.id());
    using tensor_core_gemm::tensor_map;
    const tensor_core_gemm::OperandMaps<T, Shape, B> maps(rank_.size() == 1 ? a : gathered(rank_.id()), b,
                                                          share_);
    // A map cannot have 0 rows; if the shard is empty, no tile uses the map.
    const CUtensorMap own = own_rows > 0 ? tensor_map(a, own_rows, share_.k, Shape::kM) : maps.a;
    const CUtensorMap to_c = tensor_map(c, share_.m, share_.n, tensor_core_gemm::kGroupRows);
    const Arrivals arrivals{shards_,          rank_.id(),         arrived_.word(rank_.id(), 0),
                            arrived_.epoch(), rank_.abort_flag(), pieces_};
    push_and_multiply<T, Shape, B><<<blocks_, kThreads, sizeof(Memory), stream>>>(
        own, maps.a, maps.b, to_c, order_, arrivals, receivers());
    CUDA_CHECK(cudaGetLastError());
  }

  /// The receivers, the nearest left neighbour first. The own gathered A is the last one, if tiles with rows
  /// of others need own rows.
  Receivers receivers() const {
    Receivers to{.count = receivers_, .shard = {}, .signals = {}};
    const int begin = shards_.begin(rank_.id()), rows = shards_.end(rank_.id()) - begin;
    for (int i = 0; i < to.count; ++i) {
      const int receiver = ring_.at(-(i + 1));
      if (rows > 0) {
        T* const shard = gathered(receiver) + begin * whole_.k;
        const CUtensorMap map = tensor_core_gemm::tensor_map(shard, rows, whole_.k, Shape::kM);
        to.shard[i] = map;
      }
      to.signals[i] = arrived_.word(receiver, 0);
    }
    return to;
  }

  static Shards shards_of(MatmulShape whole, int ranks) { return {static_cast<int>(whole.m), ranks}; }
  static Pieces pieces_of(MatmulShape whole) {
    return growing_pieces(tensor_core_gemm::tiling_of<Shape>(whole).along_k);
  }
  /// All of A on every rank; a single rank needs no slot.
  static std::int64_t slot_elements(MatmulShape whole, int ranks) {
    return ranks == 1 ? 0 : whole.m * whole.k;
  }
  /// This call's half of the gathered A on that rank.
  T* gathered(int rank) const { return gathered_.on(rank, 0, arrived_.epoch()); }

  int room_;
  Rank& rank_;
  Ring ring_;
  MatmulShape whole_;
  MatmulShape share_;  // all rows, own columns
  Shards shards_;
  Pieces pieces_;
  Slots<T> gathered_;  // A[m, k], twice
  Signals arrived_;    // [owner][piece]
  ArrivalOrder order_{};
  int receivers_ = 0;
  int blocks_ = 0;
};

}  // namespace overlap::gemm_on_signals
