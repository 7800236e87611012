// Chapter 18: what both kernels of this chapter know of the ring: where the shard of each step lies, where it
// goes, and which words say that it is there.
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

/// Ranks, at most, that the kernel's parameters have room for.
inline constexpr int kMaxRanks = 16;

/// Along which side of C tiles follow each other.
enum class Minor { kM, kN };

/// In which order a shard's tiles are taken (the article's grid_minor_dim and grid_tile_width), and which of
/// them send.
struct Tuning {
  Minor minor = Minor::kM;  ///< neighbours in the order are neighbours along this side,
  int width = 8;            ///< within a strip of so many tiles
  int senders = 16;         ///< tiles of a row that share the sending of its A; 1: the article's form
};

/// A tile of A is loaded for each tile of C in its row, and sent on with one of them: the first `senders`
/// tiles of the row take turns, k-block by k-block.
struct Turns {
  int senders;  ///< not more than there are columns of tiles

  /// Whether the tile in column `n` sends this k-block.
  __host__ __device__ constexpr bool sends(int n, int block) const { return block % senders == n; }
};

/// The tiles of one shard, in that order.
struct ShardOrder {
  Tiling tiling;  ///< of the shard's rows of C
  Tuning tuning;  ///< see there

  /// How many tiles there are: none if the shard has no rows.
  __host__ __device__ constexpr int tiles() const { return tiling.tiles(); }
  /// Where the tile lies that is taken as number `index`.
  __host__ __device__ constexpr TilePlace operator()(int index) const {
    if (tuning.minor == Minor::kM) return place_of(index, tiling, tuning.width);
    const TilePlace turned = place_of(index, {tiling.along_n, tiling.along_m, tiling.along_k}, tuning.width);
    return {turned.n, turned.m};
  }
};

/// The steps of a call, as its kernel sees them. In step i it multiplies shard (rank + i) mod P. Every map
/// ends where its shard ends: a box beyond that comes as zeros, and is not written. So the rows of the next
/// shard, in C too, are safe from a tile that is only partly filled.
struct Steps {
  CUtensorMap from[kMaxRanks];  ///< A of the shard: the rank's own, then its slots
  CUtensorMap to[kMaxRanks];    ///< the left neighbour's slot for it
  CUtensorMap c[kMaxRanks];     ///< the shard's rows of C
  int along_m[kMaxRanks];       ///< the shard's rows of tiles
  int count;                    ///< steps: P

  /// Whether the shard of this step goes on. The last one does not: everybody has had it.
  __device__ bool sends(int step) const { return step < count - 1; }
};

/// The words by which neighbours tell each other what has arrived. They only grow, over all calls.
struct Arrivals {
  std::uint32_t* here;   ///< this rank's words, counted up by its right neighbour
  std::uint32_t* there;  ///< those of its left neighbour
  std::uint32_t call;    ///< number of the call, from 1 on
  unsigned* stop;        ///< Rank::abort_flag()
};

/// Called by one thread: what the word counts has arrived, `counts` of them in each call; also for TMA. What
/// an acquire lets a thread see, its ordinary loads see. TMA reads by another way, the async proxy, and needs
/// the fence besides.
__device__ inline void await_arrival(const Arrivals& arrivals, int word, std::uint32_t counts) {
  // [task await: which value says that all have counted in this call, and what lets TMA see what they sent?]
  await_signal(arrivals.here + word, arrivals.call * counts, arrivals.stop);
  ptx::fence_proxy_async(ptx::space_global);
  // [/task]
}

/// Called by the thread whose stores to the left neighbour are complete.
__device__ inline void count_arrival(const Arrivals& arrivals, int word) {
  // Several count, so it is an addition; `release` puts it behind what this thread has waited for.
  const cuda::atomic_ref<std::uint32_t, cuda::thread_scope_system> signal(arrivals.there[word]);
  signal.fetch_add(1, cuda::memory_order_release);
}

/// What a rank keeps between calls, and where everything is in a call. `Tile` is that of the kernel.
template <SixteenBit T, typename Tile>
class Shards {
 public:
  /// Collective. With `words` words for each step but the last. Throws UsageError for more than kMaxRanks
  /// ranks; else as require_sizes(), PeerBuffer, Signals and multiprocessors_to_wait_on() do.
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
    // All ranks have as many blocks, so that everybody knows how many will count.
    multiprocessors_ = multiprocessors_to_wait_on(rank, set_aside);
  }

  /// Rows of the largest shard.
  static std::int64_t largest_shard(MatmulShape whole, int ranks) {
    return balanced_share(whole.m, ranks, 0).size();
  }
  /// Its tiles. All ranks have as many columns: shares differ by at most one, and each is a multiple of 8.
  static Tiling largest_tiling(MatmulShape whole, int ranks) {
    return tiling_of<Tile>({largest_shard(whole, ranks), balanced_share(whole.n, ranks, 0).size(), whole.k});
  }
  /// Blocks that find work in `tiles` tiles, the same number on all ranks.
  int blocks_for(int tiles) const { return std::max(1, std::min(tiles, multiprocessors_)); }

  /// Whether there is nothing to move: no rows, columns or depth on any rank.
  bool nothing_to_do() const { return whole_.m == 0 || whole_.n == 0 || whole_.k == 0; }
  /// What a call does then: without depth all sums are zero.
  void zero(T* c, cudaStream_t stream) const {
    const std::int64_t elements = share_.m * share_.n;
    if (elements > 0) CUDA_CHECK(cudaMemsetAsync(c, 0, elements * sizeof(T), stream));
  }
  /// The tiling of the rank's columns and depth; rows are those of a step.
  Tiling tiling() const { return tiling_of<Tile>(share_); }

  /// A new call.
  Arrivals begin_call() {
    arrived_.begin_call();
    return {arrived_.word(rank_.id(), 0), arrived_.word(rank_.previous(), 0), arrived_.epoch(),
            rank_.abort_flag()};
  }

  /// Where A and C are in this call, step by step.
  Steps maps(const T* a, T* c) const {
    Steps steps{};
    steps.count = rank_.size();
    for (int i = 0; i < steps.count; ++i) {
      // [task steps: whose rows are multiplied in step i, from where, and where do they go?]
      const Range rows = rows_of(i);
      steps.along_m[i] = tiling_of<Tile>({rows.size(), share_.n, share_.k}).along_m;
      if (rows.empty()) continue;  // no map without rows, and nobody asks for it
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

  /// The rows of A, and of C, that are those of this step.
  Range rows_of(int step) const { return balanced_share(whole_.m, rank_.size(), ring_.shard(step)); }
  /// How many steps a call has.
  int steps() const { return rank_.size(); }
  /// Values of k.
  std::int64_t depth() const { return whole_.k; }
  /// Where the shard of this step lies in this call: first in place, then in a slot.
  const T* source(int step, const T* a) const {
    return step == 0 ? a : slots_.on(rank_.id(), step - 1, arrived_.epoch());
  }
  /// Where it goes: for the left neighbour it is the shard of the next step.
  T* destination(int step) const { return slots_.on(rank_.previous(), step, arrived_.epoch()); }

  /// What `rank` of `ranks` moves in a call: all shards but that of the left neighbour leave. A message is a
  /// box of A: a tile's rows, kSpan values of k. The page's cost card and the tests both come from here.
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
  Signals arrived_;  // counted up by the right neighbour's blocks
  int multiprocessors_ = 0;
  // Calls alternate between the two halves of the slots; that suffices, as in chapter 04. A call of rank d
  // ends after the last shard has come, that of rank d - 1, all the way round: each rank has waited for it
  // before it counted it, if it had no rows too. Rank d - 1 began to pass it on in this call, after all its
  // reads of the call before. So in its next call rank d may write where rank d - 1 read in that one.
};

}  // namespace overlap::ring_in_kernel
