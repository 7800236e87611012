// Chapter 18: C = A B, where rank r has rows of A and columns of B, by one kernel that also passes A on.
// Chapter 16's kernel loads A into shared memory anyway; from there TMA also stores it to the left neighbour.
//
//   step   block b of rank d
//   0      tiles of shard d, in place;              their A to slot 0 of d - 1; when arrived: count
//   1      await shard d + 1; its tiles, slot 0;    their A to slot 1 of d - 1; when arrived: count
//   ...
//   P - 1  await shard d - 1; its tiles, slot P - 2
//
// Source: device_step() of "Collective matrix multiplication" (JAX Pallas); the page beside this file gives
// the differences.
#pragma once

#include <cuda_runtime.h>

#include "18_ring_in_kernel/shards.cuh"
#include "overlap/gpu/timeline.hpp"

namespace overlap::ring_in_kernel {

/// Sends a stage's A to the left neighbour while it is multiplied (the article's send_lhs). The second warp
/// of the first warpgroup sends, because bulk copies belong to the thread that issues them, and a thread of
/// the first warp issues those of C.
struct PassOn {
  const CUtensorMap& to;  ///< the left neighbour's slot
  bool sends;             ///< false in the last step
  Turns turns;

  /// Whether this warp sends.
  __device__ __forceinline__ static bool sender() { return threadIdx.x / 32 == 1; }

  /// Starts the copy of k-block `block` if it is this tile's turn. Otherwise commits an empty group, because
  /// wait() counts groups.
  template <typename Stage>
  __device__ __forceinline__ void begin(const Stage& stage, TilePlace tile, int block) const {
    // [task send: which tiles are sent, and to which box of the slot?]
    if (!sends || !sender()) return;
    if (wgmma::elect_one()) {
      constexpr int kRows = sizeof stage.a / sizeof stage.a[0] / kSpan;
      if (turns.sends(tile.n, block))
        ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &to, {block * kSpan, tile.m * kRows},
                                  stage.a);
      ptx::cp_async_bulk_commit_group();
    }
    __syncwarp();
    // [/task]
  }
  /// Waits until all copies but the last `Pending` have *read* their stages; they may not have arrived yet.
  template <int Pending>
  __device__ __forceinline__ void wait() const {
    if (!sender()) return;
    if (wgmma::elect_one()) ptx::cp_async_bulk_wait_group_read(ptx::n32_t<Pending>{});
    __syncwarp();
  }
};

/// Called by all threads of the sending warp at the end of a step: waits until its copies have *arrived*, and
/// counts them at the left neighbour.
__device__ __forceinline__ void end_step(const Arrivals& arrivals, int step) {
  if (wgmma::elect_one()) {
    // [task end_step: what must be over before the neighbour may be told?]
    ptx::cp_async_bulk_wait_group(ptx::n32_t<0>{});
    // A block without tiles in this step has not waited yet: without this wait the end of a call would not
    // imply that all ranks have begun it (see Shards).
    if (step > 0) await_arrival(arrivals, step - 1, gridDim.x);
    count_arrival(arrivals, step);
    // [/task]
  }
  __syncwarp();
}

/// See RingInKernel.
template <SixteenBit T, typename Tile>
__global__ __launch_bounds__((Tile::kGroups + 1) * wgmma::kThreads,
                             1) void multiply_and_pass_on(const __grid_constant__ Steps steps,
                                                          const __grid_constant__ CUtensorMap b,
                                                          Tiling tiling, Tuning tuning, Arrivals arrivals) {
  extern __shared__ __align__(1024) unsigned char memory[];
  auto& shared = *reinterpret_cast<SharedMemory<T, Tile, TmaStore>*>(memory);
  if (threadIdx.x == 0) shared.ring.init();
  __syncthreads();
  const auto order_of = [&](int step) {
    return ShardOrder{{steps.along_m[step], tiling.along_n, tiling.along_k}, tuning};
  };
  RingPlace<Tile::kStages> place;  // continues from step to step
  const int group = static_cast<int>(threadIdx.x) / wgmma::kThreads;
  if (group == Tile::kGroups) {
    wgmma::registers_down<kLoaderRegisters>();
    if (threadIdx.x / 32 % 4 == 0 && wgmma::elect_one()) {
      for (int step = 0; step < steps.count; ++step) {
        // Invariant from here on: steps.from[step] holds all of shard rank + step.
        if (step > 0) await_arrival(arrivals, step - 1, gridDim.x);
        const auto load = [&](Stage<T, Tile>& stage, TilePlace tile, int block, std::uint64_t* full) {
          load_stage<Major::kMN>(stage, steps.from[step], b, tile.corner<Tile>(), block, full);
        };
        place = load_tiles(shared.ring, order_of(step), tiling.along_k, load, place);
      }
    }
  } else {
    wgmma::registers_up<kMultiplierRegisters>();
    for (int step = 0; step < steps.count; ++step) {
      const auto store = [&](const Fragment<Tile::kN>& sum, TilePlace tile) {
        const Corner corner = tile.corner<Tile>();
        TmaStore::store<Tile, T>(sum, nullptr, steps.c[step], &shared.staging[group],
                                 corner.row + group * kGroupRows, corner.column, 0, 0);
      };
      const PassOn pass_on{steps.to[step], steps.sends(step), {min(tuning.senders, tiling.along_n)}};
      place = multiply_tiles<Major::kMN>(shared.ring, order_of(step), tiling.along_k, group, store, place,
                                         pass_on);
      if (steps.sends(step) && PassOn::sender()) end_step(arrivals, step);
    }
    TmaStore::finish();
  }
}

/// The article's tuning: strips of eight rows of tiles; the first tile of each row sends all of A.
inline constexpr Tuning kArticle = {.senders = 1};

/// C = A B: rank r has A_r[m_r, k] and B_r[k, n_r], and gets C_r[m, n_r], row-major, with m_r and n_r by
/// balanced_share(); some may be 0. k and n_r are multiples of 8. Sums are in f32.
template <SixteenBit T, typename Tile = tensor_core_gemm::Tile<128, 256, 4>>
class RingInKernel {
 public:
  /// Collective. Allocates all memory of run(), and loads the kernel, which leaves `set_aside`
  /// multiprocessors to other kernels that wait for other GPUs, see multiprocessors_to_wait_on(). Throws
  /// UsageError as require_sizes() does, and for more than kMaxRanks ranks; Skip unless the GPU has compute
  /// capability 9.0, native atomics on its neighbour's memory, and all blocks resident; else as PeerBuffer
  /// and Signals do.
  RingInKernel(Rank& rank, MatmulShape whole, Tuning tuning = kArticle, int set_aside = 0)
      : shards_(rank, whole, 1, set_aside),
        blocks_(shards_.blocks_for(Shards<T, Tile>::largest_tiling(whole, rank.size()).tiles())),
        tuning_(tuning) {
    CUDA_CHECK(cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
    // A waiting block keeps its multiprocessor. If not all blocks were resident, the last ones could not send
    // what the neighbour waits for: a deadlock.
    require_resident(rank, kKernel, kThreads, kSharedBytes, blocks_);
    rank.barrier();  // all ranks have loaded the kernel before any of them waits
  }

  /// Enqueues one call on `stream`; until `stream` has passed it, do not write a and b, nor access c. All
  /// ranks make the same calls in the same order, without waits between them, on streams that are ordered.
  void run(const T* a, const T* b, T* c, cudaStream_t stream) {
    if (shards_.nothing_to_do()) return shards_.zero(c, stream);
    const Arrivals arrivals = shards_.begin_call();
    const Steps steps = shards_.maps(a, c);
    const CUtensorMap b_map = shards_.columns_of(b);
    const TimelineScope name(tuning_.senders > 1 ? "multiply and pass on in turns" : "multiply and pass on");
    multiply_and_pass_on<T, Tile>
        <<<blocks_, kThreads, kSharedBytes, stream>>>(steps, b_map, shards_.tiling(), tuning_, arrivals);
    CUDA_CHECK(cudaGetLastError());
  }

  /// Shards::cost().
  static Cost cost(MatmulShape whole, int ranks, int rank) {
    return Shards<T, Tile>::cost(whole, ranks, rank);
  }

 private:
  static constexpr auto kKernel = multiply_and_pass_on<T, Tile>;
  static constexpr int kThreads = (Tile::kGroups + 1) * wgmma::kThreads;
  static constexpr int kSharedBytes = sizeof(SharedMemory<T, Tile, TmaStore>);

  Shards<T, Tile> shards_;
  int blocks_;
  Tuning tuning_;
};

}  // namespace overlap::ring_in_kernel
