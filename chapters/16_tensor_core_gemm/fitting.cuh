// Chapter 16: the choice of the tile by the shape of the GEMM, for the eighth rung and for the chapters that
// build on this kernel.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <tuple>

#include "16_tensor_core_gemm/specialised.cuh"
#include "16_tensor_core_gemm/split_k.cuh"
#include "16_tensor_core_gemm/tensor_core_gemm.cuh"
#include "16_tensor_core_gemm/tile.cuh"
#include "overlap/data/cost.hpp"
#include "overlap/data/matrix.hpp"
#include "overlap/gpu/ranks.hpp"

namespace overlap::tensor_core_gemm {

// Tiles for many, fewer and few rows, each with as many stages as fit into shared memory.
using LargeTile = Tile<128, 256, 4>;   ///< stages of 48 KB
using MiddleTile = Tile<128, 128, 6>;  ///< of 32 KB
using SmallTile = Tile<64, 128, 8>;    ///< of 24 KB

/// Lower bound of a multiprocessor's clocks for a stage: per clock its tensor cores do 2,048 multiply-adds,
/// and 64 bytes arrive from the L2 cache. A large tile takes 1,024 clocks, bound by the tensor cores; a
/// middle one 512, bound by both; a small one 384, bound by its loads. (A tile of 64 x 256 has as many
/// elements as a middle one, and takes 640.)
template <typename Tile>
constexpr int clocks_of_stage() {
  constexpr int kPairs = Tile::kM * Tile::kN * kSpan, kBytes = 2 * (Tile::kM + Tile::kN) * kSpan;
  return std::max(kPairs / 2048, kBytes / 64);
}

/// Clocks of one k-block, summed over the waves of the GEMM's tiles.
template <typename Tile>
constexpr int clocks_of(MatmulShape shape, int multiprocessors) {
  const int waves = (tiling_of<Tile>(shape).tiles() + multiprocessors - 1) / multiprocessors;
  return waves * clocks_of_stage<Tile>();
}

/// Returns body(tile) for the tile that fits a GEMM of this shape. With few rows there are fewer large tiles
/// than multiprocessors; smaller tiles occupy more of them, but load more bytes per FLOP. So a smaller tile
/// is taken only if by clocks_of() it needs at most three quarters of the clocks of every larger one.
template <typename Body>
constexpr auto with_fitting_tile(MatmulShape shape, int multiprocessors, const Body& body) {
  const int large = clocks_of<LargeTile>(shape, multiprocessors);
  const int middle = clocks_of<MiddleTile>(shape, multiprocessors);
  const int small = clocks_of<SmallTile>(shape, multiprocessors);
  if (4 * small <= 3 * std::min(middle, large)) return body(SmallTile{});
  if (4 * middle <= 3 * large) return body(MiddleTile{});
  return body(LargeTile{});
}

/// True if the clusters into which SplitK divides this GEMM all run at the same time, of which the GPU has
/// room for `clusters`, and each block's share of k fills its ring of stages.
constexpr bool fits_split(MatmulShape shape, int clusters) {
  const Tiling tiling = tiling_of<SplitK::Tile>(shape);
  return SplitOrder{tiling}.clusters() <= clusters && tiling.along_k >= kParts * SplitK::Tile::kStages;
}

/// Returns body(rung) for a GEMM of this shape: with few tiles blocks share the k of each, else a block takes
/// tiles that fit. `clusters`: as fits_split().
template <typename Body>
auto with_fitting_rung(MatmulShape shape, int multiprocessors, int clusters, const Body& body) {
  if (fits_split(shape, clusters)) return body(SplitK{});
  return with_fitting_tile(shape, multiprocessors,
                           [&]<typename Tile>(Tile) { return body(StoredByTma<Tile>{}); });
}

/// The eighth rung: C = A B of the rank's columns by the kernel that with_fitting_rung() chooses for them.
template <SixteenBit T>
class FittingGemm {
 public:
  static constexpr const char* kName = "fitting";

  /// As TensorCoreGemm.
  FittingGemm(Rank& rank, MatmulShape whole) {
    const int multiprocessors = multiprocessors_with_wgmma(rank);
    with_fitting_rung(share_of(whole, rank.size(), rank.id()), multiprocessors,
                      SplitK::clusters_at_once<T, Major::kMN>(), [&]<typename Rung>(Rung) {
                        run_ = [gemm = TensorCoreGemm<T, Rung>(rank, whole)](const T* a, const T* b, T* c,
                                                                             cudaStream_t stream) mutable {
                          gemm.run(a, b, c, stream);
                        };
                      });
  }

  /// As TensorCoreGemm::run().
  void run(const T* a, const T* b, T* c, cudaStream_t stream) { run_(a, b, c, stream); }

  /// Cost card of a call.
  static Cost cost(MatmulShape share) { return TensorCoreGemm<T, StoredByTma<>>::cost(share); }

 private:
  std::function<void(const T*, const T*, T*, cudaStream_t)> run_;
};

/// The GEMM of the largest shard: its rows of A, and a rank's columns of B.
inline MatmulShape product_of_a_shard(MatmulShape whole, int ranks) {
  return {balanced_share(whole.m, ranks, 0).size(), share_of(whole, ranks, 0).n, whole.k};
}

/// A rank's GEMM: all rows, and its columns.
inline MatmulShape product_of_a_rank(MatmulShape whole, int ranks) { return share_of(whole, ranks, 0); }

/// Algorithm::WithTile<Tile> of a later chapter with the tile that fits, the same tile on all ranks.
///
/// Shards arrive (or leave) one by one, so the tile is chosen for the GEMM of one shard, kPart(whole, ranks):
/// that GEMM's waves run before the next shard arrives.
template <typename Algorithm, auto kPart = product_of_a_shard>
class Fitting {
 public:
  /// Collective. Arguments and errors are those of the algorithm's constructor.
  template <typename... More>
  Fitting(Rank& rank, MatmulShape whole, const More&... more) {
    const int multiprocessors = multiprocessors_to_wait_on(rank, 0);
    with_fitting_tile(kPart(whole, rank.size()), multiprocessors, [&]<typename Tile>(Tile) {
      std::get<With<Tile>>(algorithms_) = std::make_unique<WithTile<Tile>>(rank, whole, more...);
    });
  }

  /// The algorithm's run().
  template <typename... Arguments>
  void run(const Arguments&... arguments) {
    const auto run_one = [&](const auto& algorithm) {
      if (algorithm != nullptr) algorithm->run(arguments...);
    };
    std::apply([&](const auto&... each) { (run_one(each), ...); }, algorithms_);
  }

  /// The algorithm's cost card: the tile does not change the bytes.
  template <typename... Arguments>
  static Cost cost(const Arguments&... arguments) requires requires {
    Algorithm::cost(arguments...);
  }
  { return Algorithm::cost(arguments...); }

 private:
  template <typename Tile>
  using WithTile = typename Algorithm::template WithTile<Tile>;
  template <typename Tile>
  using With = std::unique_ptr<WithTile<Tile>>;

  std::tuple<With<LargeTile>, With<MiddleTile>, With<SmallTile>> algorithms_;  // one is not null
};

}  // namespace overlap::tensor_core_gemm
