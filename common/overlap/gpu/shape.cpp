#include "overlap/gpu/shape.hpp"

#include <algorithm>
#include <stdexcept>

namespace overlap {

Range balanced_share(std::int64_t total, int parts, int index) {
  if (total < 0) throw std::invalid_argument("balanced_share: the total is negative");
  if (parts < 1) throw std::invalid_argument("balanced_share: there must be at least one part");
  if (index < 0 || index >= parts) throw std::invalid_argument("balanced_share: there is no such part");
  const std::int64_t small = total / parts;
  const std::int64_t larger_shares = total % parts;
  const std::int64_t begin = small * index + std::min<std::int64_t>(index, larger_shares);
  return {begin, begin + small + (index < larger_shares ? 1 : 0)};
}

}  // namespace overlap
