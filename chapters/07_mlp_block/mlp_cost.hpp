// Chapter 07: what one rank moves and holds in one call. The page's cost card and the tests both come from
// here.
#pragma once

#include <cstdint>

namespace overlap {

/// The cost of one call of a block, for one rank.
struct MlpCost {
  int collectives;          ///< which the next product, or the end, waits for
  int messages;             ///< sent to other ranks
  std::int64_t bytes_out;   ///< sent to other ranks
  std::int64_t bytes_in;    ///< received from other ranks
  std::int64_t activation;  ///< bytes of X, norm(X) and Y: what normalisation and residual read and write
  std::int64_t
      workspace;  ///< bytes of what else lies between the steps: operands and results of products, slots

  /// Equal in all members.
  bool operator==(const MlpCost&) const = default;
};

}  // namespace overlap
