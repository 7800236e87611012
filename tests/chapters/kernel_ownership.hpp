// What the ownership tests of chapters 17 to 19 share: sizes that their kernels take, and a small tile.
#pragma once

#include <vector>

#include "16_tensor_core_gemm/tile.cuh"
#include "ownership.hpp"

namespace overlap {

/// So small that small products have many.
using OwnershipTile = tensor_core_gemm::Tile<64, 64, 2>;

/// Rows for all ranks, of several tiles, and fewer rows than ranks; each rank has 16 columns, or 8.
inline std::vector<MatmulShape> gathered_shapes(int ranks) {
  return {{70, 16 * ranks, 72}, {1, 8 * ranks, 8}};
}
/// The same where each rank has a part of the depth.
inline std::vector<MatmulShape> scattered_shapes(int ranks) {
  return {{70, 72, 16 * ranks}, {1, 8, 8 * ranks}};
}

}  // namespace overlap
