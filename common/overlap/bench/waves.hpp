// How a product fills a GPU: in tiles, of which each multiprocessor computes one at a time, hence in waves.
// Partial last waves are the cost of splitting a GEMM; a second stream fills them.
#pragma once

#include <cstdint>
#include <stdexcept>

#include "overlap/gpu/backend.hpp"
#include "overlap/gpu/shape.hpp"

namespace overlap {

/// How many tiles a product has, and in how many waves they run.
struct Waves {
  std::int64_t tiles = 0;  ///< of C; those at its lower and right edge may be partly empty
  std::int64_t waves = 0;  ///< the last one may be partial
  std::int64_t in_last =
      0;             ///< tiles in the last wave: 1 to the number of multiprocessors, or 0 without tiles
  double waste = 0;  ///< the part of all multiprocessors' time, 0 to 1, that the last wave leaves unused
};

/// C's tiles in waves on so many multiprocessors, one tile on each at a time. Throws std::invalid_argument
/// unless the tile and the number of multiprocessors are positive and the shape is not negative.
inline Waves waves(MatmulShape shape, Tile tile, std::int64_t multiprocessors) {
  if (tile.rows <= 0 || tile.columns <= 0 || multiprocessors <= 0 || shape.m < 0 || shape.n < 0)
    throw std::invalid_argument("waves: sizes and the number of multiprocessors must be positive");
  const auto parts = [](std::int64_t size, std::int64_t part) { return size / part + (size % part != 0); };
  Waves result;
  result.tiles = parts(shape.m, tile.rows) * parts(shape.n, tile.columns);
  if (result.tiles == 0) return result;
  result.waves = parts(result.tiles, multiprocessors);
  result.in_last = result.tiles - (result.waves - 1) * multiprocessors;
  const std::int64_t places = result.waves * multiprocessors;
  result.waste = static_cast<double>(places - result.tiles) / static_cast<double>(places);
  return result;
}

}  // namespace overlap
