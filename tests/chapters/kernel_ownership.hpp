// What the ownership tests of chapters 17 to 19 share: sizes that their kernels take, and a small tile.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "16_tensor_core_gemm/tile.cuh"
#include "ownership.hpp"

namespace overlap {

/// A test on so many ranks.
class KernelOwnership : public testing::TestWithParam<int> {
 protected:
  using Tile = tensor_core_gemm::Tile<64, 64, 2>;

  /// Rows for all ranks, of several tiles, and fewer rows than ranks; each rank has 16 columns, or 8.
  std::vector<MatmulShape> gathered() const { return {{70, 16 * GetParam(), 72}, {1, 8 * GetParam(), 8}}; }
  /// The same where each rank has a part of the depth.
  std::vector<MatmulShape> scattered() const { return {{70, 72, 16 * GetParam()}, {1, 8, 8 * GetParam()}}; }
};

}  // namespace overlap
