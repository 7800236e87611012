// Chapter 19: C = X W with reduce-scatter, by one kernel on each rank. The kernel sends partial tiles to
// their owners while it multiplies the next ones, and adds the partial tiles of the others to its own: no
// second kernel, no barrier, no stream but the caller's.
//
// Source: ours. Chapter 06's all-to-all with one sum, in the epilogue of chapter 16's kernel. README.md
// describes other systems.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "16_tensor_core_gemm/fitting.cuh"
#include "16_tensor_core_gemm/tensor_core_gemm.cuh"
#include "19_fused_reduce_scatter/scatter_tiles.cuh"
#include "overlap/gpu/signals.hpp"
#include "overlap/gpu/slots.hpp"
#include "overlap/gpu/timeline.hpp"

namespace overlap::fused_reduce_scatter {

/// The GEMM of `rank` of `ranks`: its columns of X and rows of W.
inline MatmulShape product_of(MatmulShape whole, int ranks, int rank) {
  return {whole.m, whole.n, balanced_share(whole.k, ranks, rank).size()};
}

/// The GEMM for the rows of the largest owner.
inline MatmulShape product_of_an_owner(MatmulShape whole, int ranks) {
  return {balanced_share(whole.m, ranks, 0).size(), whole.n, product_of(whole, ranks, 0).k};
}

/// The tile with as many stages as fit beside the buffers of the exchange.
template <typename Tile>
using TileWithBuffers = tensor_core_gemm::Tile<Tile::kM, Tile::kN, stages_beside_buffers<Tile>()>;

/// Throws UsageError unless chapter 16's require_sizes() holds for every rank's X, W and C. With P ranks k
/// must be a multiple of 8 P.
inline void require_all_sizes(MatmulShape whole, int ranks) {
  for (int rank = 0; rank < ranks; ++rank)
    tensor_core_gemm::require_sizes(product_of(whole, ranks, rank), {1, 1, ranks});
}

/// C = X W: rank r has X[m, k_r] and W[k_r, n], and gets its rows of C[m, n]. Deterministic: the same bits in
/// every run with as many multiprocessors. Each summand is rounded to the wire's type once, the rank's own
/// not at all, the sum once.
template <SixteenBit T, typename Wire = SixteenBitWire,
          typename Shape = TileWithBuffers<tensor_core_gemm::LargeTile>, typename Landing = InSlots>
class FusedReduceScatter {
 public:
  /// The same with another tile.
  template <typename Other>
  using WithTile = FusedReduceScatter<T, Wire, TileWithBuffers<Other>, Landing>;
  using Tile = Shape;
  using W = typename Wire::template Type<T>;  ///< type of a summand on the wire

  /// Collective. Allocates all memory of run(). The kernel leaves `set_aside` multiprocessors to other
  /// waiting kernels. The caller checks require_all_sizes(). Throws UsageError as
  /// multiprocessors_to_wait_on() and Owners::of() do; CudaError; Skip unless the GPU has compute
  /// capability 9.0, all pairs of GPUs have peer access, and ranks that share a GPU leave room for a block of
  /// each.
  FusedReduceScatter(Rank& rank, MatmulShape whole, int set_aside = 0)
      : rank_(rank),
        shape_(product_of(whole, rank.size(), rank.id())),
        owners_(owners_of(whole, rank.size())),
        slots_(rank, Landing::slots(rank.size()), slot_elements(whole, rank.size())),
        arrived_(rank, rank.size() * owners_.tiling(0).tiles()) {
    blocks_ = std::min(owners_.tiles(), tensor_core_gemm::multiprocessors_to_wait_on(rank, set_aside));
    CUDA_CHECK(cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
    require_resident(rank, kKernel, kThreads, kSharedBytes, blocks_);
    for (std::uint32_t epoch = 0; epoch < 2; ++epoch) {
      landing_[epoch] =
          Landing::ready(rank, slots_.on(rank.id(), 0, epoch), owners_.rows(rank.id()), whole.n);
      for (int other = 0; other < owners_.ranks; ++other) {
        if (other == rank.id()) continue;
        to_[epoch][other] = slot_map(other, rank.id(), epoch);
        from_[epoch][other] = slot_map(rank.id(), other, epoch);
      }
    }
    rank.barrier();  // ranks may share a GPU: all load the kernel before any of them waits for a flag
  }

  /// Enqueues one call: x[m, k_r], w[k_r, n], c[m_r, n], row-major, dense and aligned to 16 bytes, on this
  /// rank's GPU. All ranks make the same calls in the same order; calls need no barrier between them.
  void run(const T* x, const T* w, T* c, cudaStream_t stream) {
    const std::int64_t own = owners_.rows(rank_.id()) * shape_.n;
    if (shape_.m == 0 || shape_.n == 0) return;
    if (shape_.k == 0) {  // then it is 0 on all ranks: k is a multiple of 8 P
      if (own > 0) CUDA_CHECK(cudaMemsetAsync(c, 0, own * sizeof(T), stream));
      return;
    }
    arrived_.begin_call();
    const tensor_core_gemm::OperandMaps<T, Tile, Major::kMN> operands(x, w, shape_);
    const CUtensorMap result =
        own > 0 ? tensor_core_gemm::tensor_map(c, owners_.rows(rank_.id()), shape_.n, kGroupRows)
                : CUtensorMap{};
    const TimelineScope name("multiply, send and add");
    scatter_tiles<Wire, Landing, T, Tile><<<blocks_, kThreads, kSharedBytes, stream>>>(
        operands.a, operands.b, result, exchange(), landing_[arrived_.epoch() % 2],
        OwnedOrder{owners_, rank_.id()});
    CUDA_CHECK(cudaGetLastError());
  }

  /// Cost card of one call of `rank`. A message is a tile with its flag.
  static Cost cost(MatmulShape whole, int ranks, int rank) {
    const Owners owners = owners_of(whole, ranks);
    const std::int64_t own = owners.rows(rank) * whole.n, element = sizeof(W);
    const std::int64_t memory =
        Slots<W>::bytes(Landing::slots(ranks), slot_elements(whole, ranks)) +
        ranks * owners.tiling(0).tiles() * static_cast<std::int64_t>(sizeof(std::uint32_t));
    if (whole.m == 0 || whole.n == 0 || whole.k == 0) return {.memory = memory};  // no kernel
    return {.messages = owners.tiles() - owners.tiling(rank).tiles(),
            .bytes_out = (whole.m * whole.n - own) * element,
            .bytes_in = (ranks - 1) * own * element,
            .launches = 1,
            .memory = memory};
  }

 private:
  static constexpr auto kKernel = scatter_tiles<Wire, Landing, T, Tile>;
  static constexpr int kThreads = (Tile::kGroups + 1) * wgmma::kThreads;
  static constexpr int kSharedBytes = sizeof(SharedMemory<Landing, T, Tile>);

  /// Map of the slot of `source` on `owner`; empty if the slot has no elements.
  CUtensorMap slot_map(int owner, int source, std::uint32_t epoch) const {
    if (owners_.rows(owner) == 0 || shape_.n == 0) return {};
    return tensor_core_gemm::tensor_map(slots_.on(owner, Landing::slot(source), epoch), owners_.rows(owner),
                                        shape_.n, kGroupRows);
  }
  static Owners owners_of(MatmulShape whole, int ranks) {
    return Owners::of<Tile>(product_of(whole, ranks, 0), ranks);
  }
  static std::int64_t slot_elements(MatmulShape whole, int ranks) {
    return balanced_share(whole.m, ranks, 0).size() * whole.n;
  }

  /// Calls alternate between two sets of slots: a sender may be in call e while an owner still reads the
  /// slots of call e - 1, but not those of call e - 2. So slots need no credit: in call e - 1 the sender's
  /// kernel has seen a flag of each owner, raised in that call and so after the owner's call e - 2.
  Exchange exchange() const {
    Exchange exchange{};
    const std::uint32_t set = arrived_.epoch() % 2;
    for (int other = 0; other < owners_.ranks; ++other) {
      exchange.to[other] = to_[set][other];
      exchange.from[other] = from_[set][other];
      exchange.flags[other] = arrived_.word(other, 0);
    }
    exchange.summands = Landing::summands(owners_.ranks);
    exchange.own = Landing::own(rank_.id());
    exchange.max_tiles = owners_.tiling(0).tiles();
    exchange.epoch = arrived_.epoch();
    exchange.stop = rank_.abort_flag();
    return exchange;
  }

  Rank& rank_;
  MatmulShape shape_;
  Owners owners_;
  Slots<W> slots_;                                                         // [Landing::slot()]
  Signals arrived_;                                                        // [source][tile]
  std::array<Landing, 2> landing_ = {};                                    // [set]
  std::array<std::array<CUtensorMap, kMaxRanks>, 2> to_ = {}, from_ = {};  // [set][rank]
  int blocks_ = 0;
};

}  // namespace overlap::fused_reduce_scatter
