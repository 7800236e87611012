// Chapter 19: C = X W by one kernel on each rank. It multiplies, sends partial tiles to their owners while it
// multiplies on, and adds what it has been sent: no second kernel, no barrier, no stream but the caller's.
//
// Source: ours. Chapter 06's all-to-all with one sum, moved into the epilogue of chapter 16's kernel. The
// page beside this file says what others do.
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

/// The product of `rank` of `ranks`: its columns of X and rows of W.
inline MatmulShape product_of(MatmulShape whole, int ranks, int rank) {
  return {whole.m, whole.n, balanced_share(whole.k, ranks, rank).size()};
}

/// The largest product whose rows one owner wants.
inline MatmulShape product_of_an_owner(MatmulShape whole, int ranks) {
  return {balanced_share(whole.m, ranks, 0).size(), whole.n, product_of(whole, ranks, 0).k};
}

/// A tile with as many stages as find room beside the buffers of the exchange.
template <typename Tile>
using TileWithBuffers = tensor_core_gemm::Tile<Tile::kM, Tile::kN, stages_beside_buffers<Tile>()>;

/// Throws UsageError unless TMA can step over the rows of every rank's X, W and C; see require_sizes() of
/// chapter 16. With P ranks k is a multiple of 8 P.
inline void require_all_sizes(MatmulShape whole, int ranks) {
  for (int rank = 0; rank < ranks; ++rank)
    tensor_core_gemm::require_sizes(product_of(whole, ranks, rank), {1, 1, ranks});
}

/// Rows of C = X W: rank r has X[m, k_r] and W[k_r, n], and gets its rows of C[m, n]. Deterministic: equal in
/// all bits on every run. Each partial sum is rounded to the wire's type once, that of the rank itself not at
/// all, and the result once.
template <SixteenBit T, typename Wire = SixteenBitWire,
          typename Shape = TileWithBuffers<tensor_core_gemm::LargeTile>, typename Landing = InSlots>
class FusedReduceScatter {
 public:
  /// The same with another tile.
  template <typename Other>
  using WithTile = FusedReduceScatter<T, Wire, TileWithBuffers<Other>, Landing>;
  using Tile = Shape;                         ///< of a block
  using W = typename Wire::template Type<T>;  ///< of a partial sum on its way

  /// Allocates everything. Collective. The kernel leaves `set_aside` multiprocessors to other kernels that
  /// wait: see multiprocessors_to_wait_on(). Throws UsageError as that, require_all_sizes() and Owners::of()
  /// do; CudaError; Skip if the GPU has not compute capability 9.0, if two GPUs have no access to each
  /// other's memory, or if ranks that share a GPU leave no room for a block of each.
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
    rank.barrier();  // ranks may share a GPU: no kernel waits for a flag before all have loaded it
  }

  /// Enqueues one call: x[m, k_r], w[k_r, n], c[m_r, n], all row-major, dense and aligned to 16 bytes, on
  /// this rank's GPU. Every rank makes the same calls in the same order; they may follow each other without a
  /// barrier.
  void run(const T* x, const T* w, T* c, cudaStream_t stream) {
    const std::int64_t own = owners_.rows(rank_.id()) * shape_.n;
    if (shape_.m == 0 || shape_.n == 0) return;
    if (shape_.k == 0) {  // on all ranks, or TMA could not step over the others' rows
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

  /// What `rank` of `ranks` moves and keeps in one call; a message is a tile with its flag. The page's cost
  /// card and the tests both come from here.
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

  /// Of the slot on `owner` for what `source` sends it; none without elements.
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

  /// There are two sets of slots, for alternate calls: a rank may be a call ahead of an owner, which still
  /// reads the set before. It is never two ahead, and so needs no word back that a slot is free: its kernel
  /// of each call ends behind flags that every owner raises in its kernel of that call, and so behind the end
  /// of all that the owner did in the call before.
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
  Slots<W> slots_;                                                         // by Landing::slot()
  Signals arrived_;                                                        // by source and tile
  std::array<Landing, 2> landing_ = {};                                    // by set
  std::array<std::array<CUtensorMap, kMaxRanks>, 2> to_ = {}, from_ = {};  // by set and rank
  int blocks_ = 0;
};

}  // namespace overlap::fused_reduce_scatter
