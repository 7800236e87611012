// Chapter 16: which tile a product takes, as the chapters that build on this kernel choose it.
#pragma once

#include "16_tensor_core_gemm/clusters.cuh"
#include "16_tensor_core_gemm/specialised.cuh"
#include "16_tensor_core_gemm/tile.cuh"

namespace overlap::tensor_core_gemm {

/// The last rung but one with half of the rows, for products of few rows. A stage has 40 KB, so there is room
/// for five.
struct SmallTiles : StoredByTma<Tile<64, 256, 5>> {
  static constexpr const char* kName = "small_tiles";  ///< of the variant
};

/// True if the product takes SmallTiles: if the waves of half tiles take at most three quarters of the clocks
/// of those of whole ones, since a multiprocessor needs 512 clocks for a stage of 64 x 256 and 1,024 for one
/// of 128 x 256. Below that it does not pay: half tiles load 80 bytes in a clock instead of 48 (32 in pairs).
/// So few rows, which leave multiprocessors without a large tile, are shared out in small ones.
constexpr bool small_tiles_suit(MatmulShape shape, int multiprocessors) {
  const auto waves = [multiprocessors](Tiling tiling) {
    return (tiling.tiles() + multiprocessors - 1) / multiprocessors;
  };
  const int small = waves(tiling_of<SmallTiles::Tile>(shape));
  const int large = 2 * waves(tiling_of<ClusterMulticast<>::Tile>(shape));
  return 4 * small <= 3 * large;
}

/// body(the rung for a product of this shape), which is ClusterMulticast<> or SmallTiles.
template <typename Body>
auto with_fitting_rung(MatmulShape shape, int multiprocessors, const Body& body) {
  return small_tiles_suit(shape, multiprocessors) ? body(SmallTiles{}) : body(ClusterMulticast<>{});
}

}  // namespace overlap::tensor_core_gemm
