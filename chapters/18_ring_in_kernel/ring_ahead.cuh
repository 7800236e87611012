// Chapter 18: the same ring, ahead of the product. In ring_in_kernel.cuh a tile of A leaves when its turn in
// the product has come, and nobody may use a row of the shard before all of it is there. Here a warp of its
// own sends A on in pieces, from the first moment, and a word for each row of tiles says when that is there:
//
//   transfer warp, every block   step 0: its pieces of A to slot 0 of d - 1, each counted when it is there
//                                step i: await a row of tiles in slot i - 1; its pieces to slot i of d - 1
//   loading warp                 tiles of all steps, one after the other; await the tile's rows
//
// No step ends for anybody: a block goes on to the next shard's tiles while others still have this one's.
#pragma once

#include <cuda_runtime.h>

#include "18_ring_in_kernel/shards.cuh"

namespace overlap::ring_in_kernel {

/// What the transfer warps move: whole rows, which lie one behind the other, so no tensor map is needed.
struct Transfers {
  const std::byte* from[kMostRanks];  ///< A of the step's shard
  std::byte* to[kMostRanks];          ///< the left neighbour's slot for it
  std::int64_t bytes[kMostRanks];     ///< of the shard
  std::int64_t band;                  ///< bytes of a row of tiles, in short a band
  int bands;                          ///< of the largest shard, at least one: words of a step

  /// Bytes that one copy moves, by way of shared memory.
  static constexpr int kPiece = 16 * 1024;

  /// Bytes of that band of the shard.
  __host__ __device__ constexpr std::int64_t bytes_of(int step, int number) const {
    const std::int64_t left = bytes[step] - number * band;
    return left < band ? left : band;
  }
  /// Its pieces. A shard without rows has one, of no bytes: so the ring is closed all the same (see Shards).
  __host__ __device__ constexpr int pieces_of(int step, int number) const {
    const std::int64_t bytes_left = bytes_of(step, number);
    return bytes_left <= 0 ? number == 0 : static_cast<int>((bytes_left + kPiece - 1) / kPiece);
  }
  /// The word of that band.
  __host__ __device__ constexpr int word(int step, int number) const { return step * bands + number; }
};

/// Called by one thread: that band has come for `step`, one of those after the first.
__device__ inline void await_band(const Transfers& transfers, const Arrivals& arrivals, int step, int band) {
  await_arrival(arrivals, transfers.word(step - 1, band),
                static_cast<std::uint32_t>(transfers.pieces_of(step, band)));
}

/// What the transferring thread does: brings each of its block's pieces here, and sends it on. The blocks
/// take turns: neighbouring pieces belong to different blocks, so that a band is complete as early as can be.
__device__ inline void send_pieces(const Transfers& transfers, const Arrivals& arrivals, int steps,
                                   std::byte* piece, std::uint64_t* here) {
  std::uint32_t parity = 0;
  int turn = 0;  // whose piece it is
  for (int step = 0; step < steps - 1; ++step) {
    for (int band = 0; band < transfers.bands; ++band) {
      const int pieces = transfers.pieces_of(step, band);
      const int blocks = static_cast<int>(gridDim.x);
      const int first = (static_cast<int>(blockIdx.x) - turn + blocks) % blocks;
      turn = (turn + pieces) % blocks;
      if (first < pieces && step > 0) await_band(transfers, arrivals, step, band);
      for (int i = first; i < pieces; i += blocks) {
        const std::int64_t begin = std::int64_t{i} * Transfers::kPiece;
        const std::int64_t left = transfers.bytes_of(step, band) - begin;
        const auto bytes = static_cast<std::uint32_t>(left < Transfers::kPiece ? left : Transfers::kPiece);
        if (left > 0) {
          // [task piece: in which order: load, wait, store, wait?]
          const std::int64_t at = band * transfers.band + begin;
          ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, here, bytes);
          ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, piece, transfers.from[step] + at, bytes,
                             here);
          await_phase(here, parity);
          parity ^= 1;
          ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, transfers.to[step] + at, piece, bytes);
          ptx::cp_async_bulk_commit_group();
          ptx::cp_async_bulk_wait_group(ptx::n32_t<0>{});  // there; so the buffer is free, too
          // [/task]
        }
        count_arrival(arrivals, transfers.word(step, band));
      }
    }
  }
}

/// The tiles of all steps, one after the other: TilePlace::m counts on over the shards, `along_m` to each.
struct AllShardsOrder {
  const Steps& steps;  ///< the shards
  Tiling tiling;       ///< of the largest one
  Tuning tuning;       ///< order within a shard

  /// How many tiles there are.
  __device__ int tiles() const {
    int rows = 0;
    for (int step = 0; step < steps.count; ++step) rows += steps.along_m[step];
    return rows * tiling.along_n;
  }
  /// Where the tile lies that is taken as number `index`.
  __device__ TilePlace operator()(int index) const {
    int step = 0;
    for (; index >= steps.along_m[step] * tiling.along_n; ++step)
      index -= steps.along_m[step] * tiling.along_n;
    const ShardOrder shard{{steps.along_m[step], tiling.along_n, tiling.along_k}, tuning};
    const TilePlace tile = shard(index);
    return {step * tiling.along_m + tile.m, tile.n};
  }
  /// Whose tile it is.
  __device__ int step_of(TilePlace tile) const { return tile.m / tiling.along_m; }
  /// Where it lies in its shard.
  __device__ TilePlace within(TilePlace tile) const { return {tile.m % tiling.along_m, tile.n}; }
};

/// What the block holds in shared memory.
template <SixteenBit T, typename Tile>
struct SharedMemoryAhead {
  SharedMemory<T, Tile, TmaStore> product;          ///< of the GEMM
  alignas(128) std::byte piece[Transfers::kPiece];  ///< on its way
  std::uint64_t here;                               ///< mbarrier: the piece is in shared memory
};

/// See RingAhead.
template <SixteenBit T, typename Tile>
__global__ __launch_bounds__((Tile::kGroups + 1) * wgmma::kThreads, 1) void multiply_behind_transfers(
    const __grid_constant__ Steps steps, const __grid_constant__ CUtensorMap b,
    const __grid_constant__ Transfers transfers, Tiling tiling, Tuning tuning, Arrivals arrivals) {
  extern __shared__ __align__(1024) unsigned char memory[];
  auto& shared = *reinterpret_cast<SharedMemoryAhead<T, Tile>*>(memory);
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&shared.here, 1);
    shared.product.ring.init();
  }
  __syncthreads();
  const AllShardsOrder order{steps, tiling, tuning};
  const int group = static_cast<int>(threadIdx.x) / wgmma::kThreads;
  const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
  if (group == Tile::kGroups) {
    wgmma::registers_down<kLoaderRegisters>();
    if (warp == 0 && wgmma::elect_one()) {
      load_tiles(shared.product.ring, order, tiling.along_k,
                 [&](Stage<T, Tile>& stage, TilePlace tile, int block, std::uint64_t* full) {
                   const int step = order.step_of(tile);
                   const TilePlace place = order.within(tile);
                   if (block == 0 && step > 0) await_band(transfers, arrivals, step, place.m);
                   load_stage<Major::kMN>(stage, steps.from[step], b, place.corner<Tile>(), block, full);
                 });
      // A last shard without rows has no tile that would wait for it.
      const int last = steps.count - 1;
      if (last > 0 && steps.along_m[last] == 0) await_band(transfers, arrivals, last, 0);
    }
    if (warp == 1 && wgmma::elect_one())
      send_pieces(transfers, arrivals, steps.count, shared.piece, &shared.here);
  } else {
    wgmma::registers_up<kMultiplierRegisters>();
    multiply_tiles<Major::kMN>(
        shared.product.ring, order, tiling.along_k, group,
        [&](const Fragment<Tile::kN>& sum, TilePlace tile) {
          const Corner corner = order.within(tile).template corner<Tile>();
          TmaStore::store<Tile, T>(sum, nullptr, steps.c[order.step_of(tile)], &shared.product.staging[group],
                                   corner.row + group * kGroupRows, corner.column, 0, 0);
        });
    TmaStore::finish();
  }
}

/// The same product as RingInKernel, behind transfers that go ahead of it. Its tile has a stage less, to make
/// room for a piece.
template <SixteenBit T, typename Tile = tensor_core_gemm::Tile<128, 256, 3>>
class RingAhead {
 public:
  /// Collective. As RingInKernel's.
  RingAhead(Rank& rank, MatmulShape whole, Tuning tuning = {})
      : largest_(Shards<T, Tile>::largest_tiling(whole, rank.size())),
        shards_(rank, whole, bands()),
        blocks_(shards_.blocks_for(rank.size() * largest_.tiles())),
        tuning_(tuning) {
    CUDA_CHECK(cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
    require_resident(rank, kKernel, kThreads, kSharedBytes, blocks_);
    rank.barrier();  // nobody's kernel waits while another one is still loaded
  }

  /// Enqueues one call on `stream`, as RingInKernel::run() does.
  void run(const T* a, const T* b, T* c, cudaStream_t stream) {
    if (shards_.nothing_to_do()) return shards_.zero(c, stream);
    const Arrivals arrivals = shards_.begin_call();
    const Steps steps = shards_.maps(a, c);
    const CUtensorMap b_map = shards_.columns_of(b);
    multiply_behind_transfers<T, Tile><<<blocks_, kThreads, kSharedBytes, stream>>>(
        steps, b_map, transfers(a), largest_, tuning_, arrivals);
    CUDA_CHECK(cudaGetLastError());
  }

  /// What `rank` of `ranks` moves in a call. A message is a piece of up to 16 KiB.
  static Cost cost(MatmulShape whole, int ranks, int rank) {
    Cost cost = Shards<T, Tile>::cost(whole, ranks, rank);
    if (cost.launches == 0) return cost;
    for (int step = 0; step < ranks - 1; ++step) {
      const Range rows = balanced_share(whole.m, ranks, RankRing(rank, ranks).shard(step));
      for (std::int64_t row = 0; row < rows.size(); row += Tile::kM) {
        const std::int64_t bytes =
            std::min<std::int64_t>(Tile::kM, rows.size() - row) * whole.k * std::int64_t{sizeof(T)};
        cost.messages += (bytes + Transfers::kPiece - 1) / Transfers::kPiece;
      }
    }
    return cost;
  }

 private:
  static constexpr auto kKernel = multiply_behind_transfers<T, Tile>;
  static constexpr int kThreads = (Tile::kGroups + 1) * wgmma::kThreads;
  static constexpr int kSharedBytes = sizeof(SharedMemoryAhead<T, Tile>);

  int bands() const { return std::max(1, largest_.along_m); }

  Transfers transfers(const T* a) const {
    Transfers transfers{};
    transfers.bands = bands();
    transfers.band = std::int64_t{Tile::kM} * shards_.depth() * std::int64_t{sizeof(T)};
    for (int i = 0; i < shards_.steps(); ++i) {
      transfers.from[i] = reinterpret_cast<const std::byte*>(shards_.source(i, a));
      if (i < shards_.steps() - 1) transfers.to[i] = reinterpret_cast<std::byte*>(shards_.destination(i));
      transfers.bytes[i] = shards_.rows_of(i).size() * shards_.depth() * std::int64_t{sizeof(T)};
    }
    return transfers;
  }

  Tiling largest_;
  Shards<T, Tile> shards_;
  int blocks_;
  Tuning tuning_;
};

}  // namespace overlap::ring_in_kernel
