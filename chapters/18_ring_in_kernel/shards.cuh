// Chapter 18, the ring of both kernels: source and destination of each step's shard, and the words that count
// arrivals.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cuda/atomic>
#include <string>

#include "16_tensor_core_gemm/tensor_core_gemm.cuh"
#include "overlap/data/cost.hpp"
#include "overlap/data/matrix.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/gpu/kernel_signals.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/ring.hpp"
#include "overlap/gpu/signals.hpp"
#include "overlap/gpu/slots.hpp"

namespace overlap::ring_in_kernel {

using namespace tensor_core_gemm;  // NOLINT(google-build-using-namespace): this kernel is that one, and more
/// Of ranks; chapter 16's Ring is of stages.
using RankRing = overlap::Ring;
/// Of stages in shared memory.
template <SixteenBit T, typename Tile>
using StageRing = tensor_core_gemm::Ring<T, Tile>;

/// Limit set by the size of the kernel's parameters.
inline constexpr int kMaxRanks = 16;

/// Side of C along which consecutive tiles lie.
enum class Minor { kM, kN };

/// Order of a shard's tiles (the article's grid_minor_dim and grid_tile_width), and number of tiles that
/// send.
struct Tuning {
  Minor minor = Minor::kM;  ///< consecutive tiles lie along this side, in strips
  int width = 8;            ///< tiles across a strip
  int senders = 16;         ///< tiles of a row that share the sends of its A; 1: the article's form
};

/// Every tile of C in a row loads the same A, but only one of them sends it: the first `senders` tiles of the
/// row take turns, k-block by k-block.
struct Turns {
  int senders;  ///< at most the number of columns of tiles

  /// Whether the tile in column `n` sends this k-block.
  __host__ __device__ constexpr bool sends(int n, int block) const { return block % senders == n; }
};

/// The order of one shard's tiles.
struct ShardOrder {
  Tiling tiling;  ///< of the shard
  Tuning tuning;

  /// Number of tiles; 0 if the shard has no rows.
  __host__ __device__ constexpr int tiles() const { return tiling.tiles(); }
  /// Place of tile number `index` of the order.
  __host__ __device__ constexpr TilePlace operator()(int index) const {
    const bool along_m = tuning.minor == Minor::kM;
    const Tiling turned{tiling.along_n, tiling.along_m, tiling.along_k};
    const TilePlace place = place_of(index, along_m ? tiling : turned, tuning.width);
    return along_m ? place : TilePlace{place.n, place.m};
  }
};

/// The steps of a call; a kernel parameter. Step i multiplies shard (rank + i) mod P. Every map ends with its
/// shard: rows outside are loaded as zeros and not stored, so a partial tile does not write the next shard's
/// rows.
struct Steps {
  CUtensorMap from[kMaxRanks];  ///< source of A: in place, then the rank's slots
  CUtensorMap to[kMaxRanks];    ///< the left neighbour's slot for it
  CUtensorMap c[kMaxRanks];     ///< the shard's rows of C
  int along_m[kMaxRanks];       ///< the shard's rows of tiles
  int all_along_m;              ///< their sum
  int count;                    ///< steps: P

  /// Whether the step's shard is sent on. The last one is not: it has visited all ranks.
  __device__ bool sends(int step) const { return step < count - 1; }
};

/// The words that count arrivals. They only grow, over all calls.
struct Arrivals {
  std::uint32_t* here;   ///< this rank's words, incremented by its right neighbour
  std::uint32_t* there;  ///< the left neighbour's words
  std::uint32_t call;    ///< number of the call, from 1 on
  unsigned* stop;        ///< Rank::abort_flag()
};

/// Called by one thread: waits until the word has all of its `counts` of this call; also on behalf of TMA.
/// The acquire orders ordinary loads only; TMA reads through the async proxy, which needs the fence.
__device__ inline void await_arrival(const Arrivals& arrivals, int word, std::uint32_t counts) {
  // [task await: which value says that all have counted in this call, and what lets TMA see what they sent?]
  await_signal(arrivals.here + word, arrivals.call * counts, arrivals.stop);
  ptx::fence_proxy_async(ptx::space_global);
  // [/task]
}

/// Called by a thread after its copies to the left neighbour are complete.
__device__ inline void count_arrival(const Arrivals& arrivals, int word) {
  // An addition, because several blocks count; `release` orders it after the copies that this thread waited
  // for.
  const cuda::atomic_ref<std::uint32_t, cuda::thread_scope_system> signal(arrivals.there[word]);
  signal.fetch_add(1, cuda::memory_order_release);
}

/// A rank's slots and words, and their addresses in a call. `Tile` is the kernel's tile.
template <SixteenBit T, typename Tile>
class Shards {
 public:
  /// Collective. Allocates `words` words for each step but the last. Throws UsageError for more than
  /// kMaxRanks ranks; else as require_sizes(), PeerBuffer, Signals and multiprocessors_to_wait_on() do.
  Shards(Rank& rank, MatmulShape whole, int words, int set_aside)
      : rank_(rank),
        ring_(rank),
        whole_(whole),
        share_(share_of(whole, rank.size(), rank.id())),
        slots_(rank, rank.size() - 1, largest_shard(whole, rank.size()) * whole.k),
        arrived_(rank, std::max(1, (rank.size() - 1) * words)) {
    if (rank.size() > kMaxRanks) {
      throw UsageError("the kernel's parameters have room for " + std::to_string(kMaxRanks) +
                       " ranks, and there are " + std::to_string(rank.size()));
    }
    require_sizes(share_);
    require_native_atomics(rank, rank.previous());  // for count_arrival()
    // The same number of blocks on all ranks, because a receiver must know how many blocks will count.
    multiprocessors_ = multiprocessors_to_wait_on(rank, set_aside);
  }

  /// Rows of the largest shard.
  static std::int64_t largest_shard(MatmulShape whole, int ranks) {
    return balanced_share(whole.m, ranks, 0).size();
  }
  /// Its tiling, the same on all ranks: shares of columns differ by at most one and are multiples of 8, so
  /// equal.
  static Tiling largest_tiling(MatmulShape whole, int ranks) {
    return tiling_of<Tile>({largest_shard(whole, ranks), balanced_share(whole.n, ranks, 0).size(), whole.k});
  }
  /// Number of blocks for `tiles` tiles, the same on all ranks.
  int blocks_for(int tiles) const { return std::max(1, std::min(tiles, multiprocessors_)); }

  /// Whether m, n or k is 0.
  bool nothing_to_do() const { return whole_.m == 0 || whole_.n == 0 || whole_.k == 0; }
  /// The call in that case: without depth all sums are zero.
  void zero(T* c, cudaStream_t stream) const {
    const std::int64_t elements = share_.m * share_.n;
    if (elements > 0) CUDA_CHECK(cudaMemsetAsync(c, 0, elements * sizeof(T), stream));
  }
  /// The tiling of the rank's columns and depth; rows are those of a step.
  Tiling tiling() const { return tiling_of<Tile>(share_); }

  /// Begins a call: advances the epoch and returns its words.
  Arrivals begin_call() {
    arrived_.begin_call();
    return {arrived_.word(rank_.id(), 0), arrived_.word(rank_.previous(), 0), arrived_.epoch(),
            rank_.abort_flag()};
  }

  /// The tensor maps of this call's steps.
  Steps maps(const T* a, T* c) const {
    Steps steps{};
    steps.count = rank_.size();
    for (int i = 0; i < steps.count; ++i) {
      // [task steps: whose rows are multiplied in step i, from where, and where do they go?]
      const Range rows = rows_of(i);
      steps.along_m[i] = tiling_of<Tile>({rows.size(), share_.n, share_.k}).along_m;
      steps.all_along_m += steps.along_m[i];
      if (rows.empty()) continue;  // a map cannot have 0 rows, and no tile uses it
      const CUtensorMap from = tensor_map(source(i, a), rows.size(), whole_.k, Tile::kM);
      const CUtensorMap c_rows = tensor_map(c + rows.begin * share_.n, rows.size(), share_.n, kGroupRows);
      steps.from[i] = from;
      steps.c[i] = c_rows;
      if (i == steps.count - 1) continue;
      const CUtensorMap to = tensor_map(destination(i), rows.size(), whole_.k, Tile::kM);
      steps.to[i] = to;
      // [/task]
    }
    return steps;
  }
  /// The map of the rank's columns of B.
  CUtensorMap columns_of(const T* b) const { return tensor_map(b, share_.k, share_.n, kSpan); }

  /// The rows of A and C of this step.
  Range rows_of(int step) const { return balanced_share(whole_.m, rank_.size(), ring_.shard(step)); }
  /// Number of steps.
  int steps() const { return rank_.size(); }
  /// Values of k.
  std::int64_t depth() const { return whole_.k; }
  /// Source of the step's shard in this call: in place in step 0, then a slot.
  const T* source(int step, const T* a) const {
    return step == 0 ? a : slots_.on(rank_.id(), step - 1, arrived_.epoch());
  }
  /// Destination of the step's shard: the left neighbour's source of the next step.
  T* destination(int step) const { return slots_.on(rank_.previous(), step, arrived_.epoch()); }

  /// Cost card of a call of `rank`: it sends all shards but the left neighbour's. A message is a box of A: a
  /// tile's rows, kSpan values of k.
  static Cost cost(MatmulShape whole, int ranks, int rank) {
    const std::int64_t slots = Slots<T>::bytes(ranks - 1, largest_shard(whole, ranks) * whole.k);
    if (whole.m == 0 || whole.n == 0 || whole.k == 0) return {.memory = slots};
    std::int64_t boxes = 0;
    for (int step = 0; step < ranks - 1; ++step) {
      const Tiling tiling = tiling_of<Tile>(
          {balanced_share(whole.m, ranks, RankRing(rank, ranks).shard(step)).size(), whole.n, whole.k});
      boxes += std::int64_t{tiling.along_m} * tiling.along_k;
    }
    const auto bytes = [&](int of) {
      return balanced_share(whole.m, ranks, of).size() * whole.k * std::int64_t{sizeof(T)};
    };
    const std::int64_t all = whole.m * whole.k * std::int64_t{sizeof(T)};
    return {.messages = boxes,
            .bytes_out = ranks == 1 ? 0 : all - bytes(RankRing(rank, ranks).at(-1)),
            .bytes_in = ranks == 1 ? 0 : all - bytes(rank),
            .launches = 1,
            .memory = slots};
  }

 private:
  Rank& rank_;
  RankRing ring_;
  MatmulShape whole_, share_;
  Slots<T> slots_;   // P - 1, in two halves
  Signals arrived_;  // incremented by the right neighbour's blocks
  int multiprocessors_ = 0;
  // Calls alternate between the two halves of the slots; that suffices, as in chapter 04. A call e of rank d
  // ends after the last shard, that of rank d - 1, has come round the ring: each rank waits for a shard
  // before it counts it, also for a shard without rows. Rank d - 1 sent it in call e, after all its reads of
  // call e - 1. So in call e + 1 rank d may overwrite the half that rank d - 1 read in call e - 1.
};

}  // namespace overlap::ring_in_kernel
