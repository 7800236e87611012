// Chapter 05: how many waves a GEMM takes when it is cut into P parts, on one stream and on two.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "overlap/bench/waves.hpp"

namespace overlap::two_streams {

/// Waves of a rank's whole GEMM, and of its P parts: on one stream each part has its own partial wave, on two
/// streams the next part fills it.
struct SplitWaves {
  std::int64_t whole;        ///< N + 1, if the last wave is partial
  std::int64_t one_stream;   ///< up to N + P
  std::int64_t two_streams;  ///< those of all tiles, if a part's last wave and the next part fill the GPU
};

/// Waves on two alternating streams, where GEMM i has tiles[i] tiles: in each wave at most one GEMM of each
/// stream runs, and the earlier GEMM has its tiles placed first.
inline std::int64_t waves_on_two_streams(const std::vector<std::int64_t>& tiles,
                                         std::int64_t multiprocessors) {
  std::array<std::size_t, 2> next = {0, 1};  // the next GEMM of each stream
  std::vector<std::int64_t> left = tiles;
  std::int64_t waves = 0;
  for (;;) {
    for (std::size_t& product : next) {
      while (product < left.size() && left[product] == 0) product += 2;
    }
    std::sort(next.begin(), next.end());
    if (next.front() >= left.size()) return waves;
    std::int64_t free = multiprocessors;
    for (const std::size_t product : next) {
      if (product >= left.size()) break;
      const std::int64_t placed = std::min(free, left[product]);
      left[product] -= placed;
      free -= placed;
    }
    ++waves;
  }
}

/// For C[m, n_r] = A B, cut into the ranks' balanced shares of m.
inline SplitWaves split_waves(MatmulShape product, int ranks, Tile tile, std::int64_t multiprocessors) {
  SplitWaves split{waves(product, tile, multiprocessors).waves, 0, 0};
  std::vector<std::int64_t> tiles;
  for (int rank = 0; rank < ranks; ++rank) {
    const MatmulShape part{balanced_share(product.m, ranks, rank).size(), product.n, product.k};
    const Waves own = waves(part, tile, multiprocessors);
    split.one_stream += own.waves;
    tiles.push_back(own.tiles);
  }
  split.two_streams = waves_on_two_streams(tiles, multiprocessors);
  return split;
}

}  // namespace overlap::two_streams
