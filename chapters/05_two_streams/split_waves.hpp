// Chapter 05: how many waves a product takes as P sub-products, on one stream and on two.
#pragma once

#include <cstdint>

#include "overlap/matrix.hpp"
#include "overlap/waves.hpp"

namespace overlap {

/// Waves of a rank's whole product, and of its P sub-products: one after the other, where each has a partial
/// wave of its own, and on two streams, where the next one fills it.
struct SplitWaves {
  std::int64_t whole;        ///< N + 1, if the last wave is partial
  std::int64_t one_stream;   ///< up to N + P
  std::int64_t two_streams;  ///< at least: as if all tiles of all sub-products were one product's
};

/// For C[m, n_r] = A B, cut into the ranks' balanced shares of m.
inline SplitWaves split_waves(MatmulShape product, int ranks, Tile tile, std::int64_t multiprocessors) {
  SplitWaves split{waves(product, tile, multiprocessors).waves, 0, 0};
  std::int64_t tiles = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const MatmulShape part{balanced_share(product.m, ranks, rank).size(), product.n, product.k};
    const Waves own = waves(part, tile, multiprocessors);
    split.one_stream += own.waves;
    tiles += own.tiles;
  }
  split.two_streams = (tiles + multiprocessors - 1) / multiprocessors;
  return split;
}

}  // namespace overlap
