// Sizes of a product, and how they are shared out. All sizes are 64-bit.
#pragma once

#include <cstdint>

namespace overlap {

/// C[m, n] = A[m, k] B[k, n].
struct MatmulShape {
  std::int64_t m = 0;  ///< rows of A and C
  std::int64_t n = 0;  ///< columns of B and C
  std::int64_t k = 0;  ///< columns of A, rows of B

  bool operator==(const MatmulShape&) const = default;

  /// Multiply-adds of the product: m n k. Floating point operations are twice as many. A double, because the
  /// product of three sizes that are allowed can exceed 64 bits.
  double multiply_adds() const {
    return static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  }
};

/// The indices begin, begin + 1, ..., end - 1.
struct Range {
  std::int64_t begin = 0;  ///< the first index
  std::int64_t end = 0;    ///< one past the last index

  /// Equal in both ends: empty ranges at different places differ.
  bool operator==(const Range&) const = default;
  std::int64_t size() const { return end - begin; }  ///< the number of indices
  bool empty() const { return begin == end; }        ///< true if there is no index
};

/// Share `index` of `total` things that are dealt out to `parts` owners in contiguous shares. The sizes
/// differ by at most 1: the first total % parts shares hold one more. With fewer things than owners the last
/// shares are empty. Throws std::invalid_argument unless total >= 0, parts >= 1 and 0 <= index < parts.
Range balanced_share(std::int64_t total, int parts, int index);

}  // namespace overlap
