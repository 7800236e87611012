// Chapter 18: the ring without a barrier at the end of a step. In ring_in_kernel.cuh a step uses a shard only
// when all of it has arrived, so each step ends with a hand-shake of all blocks. Here each word counts a
// piece of A, a quarter of k in a row of tiles; and a separate thread sends, so that no wgmma waits for a
// copy:
//
//   producer thread      tiles of all steps in order; waits for a piece of A before it loads from it
//   consumer groups      as in chapter 16
//   sending thread       also a reader of the stages of its turn: sends them to the left neighbour, and
//                        counts each there once it has arrived
//
// A block continues with the next shard's tiles while other blocks still compute this shard's.
#pragma once

#include <cuda_runtime.h>

#include "18_ring_in_kernel/shards.cuh"

namespace overlap::ring_in_kernel {

/// Split of a shard's A into pieces, each with a word: a row of tiles times a quarter of k. While one quarter
/// is multiplied the next one arrives, so blocks wait only for late pieces.
struct Pieces {
  static constexpr int kParts = 4;

  int along_m;  ///< rows of tiles of the largest shard, at least one
  int along_k;
  int depth;  ///< k-blocks of a piece; the last one may have fewer

  /// The pieces of a shard with this tiling.
  static constexpr Pieces of(Tiling largest) {
    return {std::max(1, largest.along_m), largest.along_k, (largest.along_k + kParts - 1) / kParts};
  }
  /// Number of words of a step.
  __host__ __device__ constexpr int words() const { return along_m * kParts; }
  /// Index of the receiver's word for a k-block in row `m` of tiles of the shard of `step`.
  __host__ __device__ constexpr int word(int step, int m, int block) const {
    return step * words() + m * kParts + block / depth;
  }
  /// Number of counts of that word per call: one per k-block of the piece.
  __host__ __device__ constexpr std::uint32_t counts(int block) const {
    const int left = along_k - block / depth * depth;
    return static_cast<std::uint32_t>(left < depth ? left : depth);
  }
};

/// The producer thread's waits for the pieces of a row `m` of tiles in `step`, in order.
struct AwaitedPieces {
  const Pieces& pieces;
  const Arrivals& arrivals;
  int next = 0;  ///< first k-block of the next piece

  /// Before the first load: waits for the first piece. The shard of step 0 is in place.
  __device__ __forceinline__ void begin(int step, int m) {
    next = step == 0 ? pieces.along_k : 0;
    before(0, step, m);
  }
  /// Waits if a piece begins with k-block `block`. Called after the load of the block before, when the thread
  /// would only wait for a stage.
  __device__ __forceinline__ void before(int block, int step, int m) {
    // [task await_piece: which loads wait, and for whose word?]
    if (block != next || block == pieces.along_k) return;
    await_arrival(arrivals, pieces.word(step - 1, m, block), pieces.counts(block));
    next += pieces.depth;
    // [/task]
  }
};

/// Called by one thread of one block: passes on shards without rows, which have no tile, by one count each.
/// The end of a call then implies that all ranks have begun it (see Shards).
__device__ inline void pass_on_empty_shards(const Steps& steps, const Pieces& pieces,
                                            const Arrivals& arrivals) {
  for (int step = 0; step < steps.count; ++step) {
    if (steps.along_m[step] > 0) continue;
    if (step > 0) await_arrival(arrivals, pieces.word(step - 1, 0, 0), 1);
    if (steps.sends(step)) count_arrival(arrivals, pieces.word(step, 0, 0));
  }
}

/// A tile of C, by shard.
struct ShardTile {
  int step;         ///< of the shard
  TilePlace place;  ///< in the shard
};

/// The tiles of all steps, one after the other.
struct AllShardsOrder {
  const Steps& steps;  ///< the shards
  Tiling tiling;       ///< of the largest one
  Tuning tuning;       ///< order within a shard, and its senders

  /// Number of tiles.
  __device__ int tiles() const { return steps.all_along_m * tiling.along_n; }
  /// Tile number `index` of the order.
  __device__ ShardTile operator()(int index) const {
    int step = 0;
    for (; index >= steps.along_m[step] * tiling.along_n; ++step)
      index -= steps.along_m[step] * tiling.along_n;
    const ShardOrder shard{{steps.along_m[step], tiling.along_n, tiling.along_k}, tuning};
    return {step, shard(index)};
  }
  /// Distance of a tile's turns, in k-blocks.
  __device__ int senders() const { return min(tuning.senders, tiling.along_n); }
  /// The first k-block of its A that a tile sends; along_k if it sends none. (Turns, without a division for
  /// each k-block.)
  __device__ int first_turn(ShardTile tile) const {
    return steps.sends(tile.step) && tile.place.n < senders() ? tile.place.n : tiling.along_k;
  }
};

/// The sending thread: sends the A of each stage of its tiles' turns to the left neighbour. It may wait for
/// each copy, because the producer arrives in its place at the stages that are not sent. `begun`: mbarriers
/// of the stages, at which the producer arrives when it has begun a load that is to be sent.
template <typename Stages>
__device__ __forceinline__ void send_turns(Stages& ring, std::uint64_t* begun, const AllShardsOrder& order,
                                           const Pieces& pieces, const Arrivals& arrivals) {
  using Tile = typename Stages::Tile;
  int first = 0;       // number of the tile's first k-block among all that the block loads
  unsigned sends = 0;  // bit i: parity of the number of sends from stage i
  for_each_tile(order, [&](ShardTile tile) {
    for (int block = order.first_turn(tile); block < order.tiling.along_k; block += order.senders()) {
      const int load = first + block, stage = load % Tile::kStages;
      // [task turn: from when on does a stage hold the k-block, and where is it sent?]
      // The stage's earlier k-blocks complete phases of the same parity: first the load must have begun.
      await_phase(&begun[stage], sends >> stage & 1);
      sends ^= 1U << stage;
      await_phase(&ring.full[stage], static_cast<std::uint32_t>(load / Tile::kStages % 2));
      ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &order.steps.to[tile.step],
                                {block * kSpan, tile.place.m * Tile::kM}, ring.stages[stage].a);
      ptx::cp_async_bulk_commit_group();
      // [/task]
      // [task give_back: what must be over before the stage is filled again?]
      ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>{});
      ptx::mbarrier_arrive(&ring.empty[stage]);
      // [/task]
      // [task count: what must be over before the neighbour is told?]
      ptx::cp_async_bulk_wait_group(ptx::n32_t<0>{});
      count_arrival(arrivals, pieces.word(tile.step, tile.place.m, block));
      // [/task]
    }
    first += order.tiling.along_k;
  });
}

/// See RingAhead.
template <SixteenBit T, typename Tile>
__global__ __launch_bounds__((Tile::kGroups + 1) * wgmma::kThreads,
                             1) void multiply_ahead(const __grid_constant__ Steps steps,
                                                    const __grid_constant__ CUtensorMap b, Pieces pieces,
                                                    Tiling tiling, Tuning tuning, Arrivals arrivals) {
  extern __shared__ __align__(1024) unsigned char memory[];
  auto& shared = *reinterpret_cast<SharedMemory<T, Tile, TmaStore>*>(memory);
  __shared__ std::uint64_t begun[Tile::kStages];
  if (threadIdx.x == 0) {
    for (std::uint64_t& barrier : begun) ptx::mbarrier_init(&barrier, 1);
    shared.ring.init(1, 1);  // one additional reader: the sending thread
  }
  __syncthreads();
  const AllShardsOrder order{steps, tiling, tuning};
  const int group = static_cast<int>(threadIdx.x) / wgmma::kThreads;
  const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
  if (group == Tile::kGroups) {
    wgmma::registers_down<kLoaderRegisters>();
    if (warp == 0 && wgmma::elect_one()) {
      int turn = 0;
      AwaitedPieces awaited{pieces, arrivals};
      load_tiles(shared.ring, order, tiling.along_k,
                 [&](Stage<T, Tile>& stage, ShardTile tile, int block, std::uint64_t* full) {
                   if (block == 0) {
                     turn = order.first_turn(tile);
                     awaited.begin(tile.step, tile.place.m);
                   }
                   load_stage<Major::kMN>(stage, steps.from[tile.step], b, tile.place.corner<Tile>(), block,
                                          full);
                   const auto number = full - shared.ring.full;  // of the stage; from &stage 1.3 % slower
                   const bool sent = block == turn;
                   ptx::mbarrier_arrive(sent ? &begun[number] : &shared.ring.empty[number]);
                   if (sent) turn += order.senders();
                   awaited.before(block + 1, tile.step, tile.place.m);
                 });
    }
    if (warp == 1 && wgmma::elect_one()) send_turns(shared.ring, begun, order, pieces, arrivals);
    if (warp == 2 && blockIdx.x == 0 && wgmma::elect_one()) pass_on_empty_shards(steps, pieces, arrivals);
  } else {
    wgmma::registers_up<kMultiplierRegisters>();
    multiply_tiles<Major::kMN>(
        shared.ring, order, tiling.along_k, group, [&](const Fragment<Tile::kN>& sum, ShardTile tile) {
          const Corner corner = tile.place.corner<Tile>();
          TmaStore::store<Tile, T>(sum, nullptr, steps.c[tile.step], &shared.staging[group],
                                   corner.row + group * kGroupRows, corner.column, 0, 0);
        });
    TmaStore::finish();
  }
}

/// As RingInKernel, by pieces.
template <SixteenBit T, typename Tile = tensor_core_gemm::Tile<128, 256, 4>>
class RingAhead {
 public:
  /// The same with another tile.
  template <typename Other>
  using WithTile = RingAhead<T, Other>;

  /// Collective. As RingInKernel's.
  RingAhead(Rank& rank, MatmulShape whole, Tuning tuning = {}, int set_aside = 0)
      : largest_(Shards<T, Tile>::largest_tiling(whole, rank.size())),
        pieces_(Pieces::of(largest_)),
        shards_(rank, whole, pieces_.words(), set_aside),
        blocks_(shards_.blocks_for(rank.size() * largest_.tiles())),
        tuning_(tuning) {
    CUDA_CHECK(cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
    require_resident(rank, kKernel, kThreads, kSharedBytes, blocks_);
    rank.barrier();  // all ranks have loaded the kernel before any of them waits
  }

  /// Enqueues one call on `stream`, as RingInKernel::run() does.
  void run(const T* a, const T* b, T* c, cudaStream_t stream) {
    if (shards_.nothing_to_do()) return shards_.zero(c, stream);
    const Arrivals arrivals = shards_.begin_call();
    const Steps steps = shards_.maps(a, c);
    const CUtensorMap b_map = shards_.columns_of(b);
    multiply_ahead<T, Tile>
        <<<blocks_, kThreads, kSharedBytes, stream>>>(steps, b_map, pieces_, largest_, tuning_, arrivals);
    CUDA_CHECK(cudaGetLastError());
  }

  /// Shards::cost().
  static Cost cost(MatmulShape whole, int ranks, int rank) {
    return Shards<T, Tile>::cost(whole, ranks, rank);
  }

 private:
  static constexpr auto kKernel = multiply_ahead<T, Tile>;
  static constexpr int kThreads = (Tile::kGroups + 1) * wgmma::kThreads;
  static constexpr int kSharedBytes = sizeof(SharedMemory<T, Tile, TmaStore>);

  Tiling largest_;
  Pieces pieces_;
  Shards<T, Tile> shards_;
  int blocks_;
  Tuning tuning_;
};

}  // namespace overlap::ring_in_kernel
