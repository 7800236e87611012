#include "overlap/matrix.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "overlap/error.hpp"

namespace overlap {
namespace {

// splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014). Its state only
// counts, in steps of kStep, so that element i can be made without the elements before it.
constexpr std::uint64_t kStep = 0x9E3779B97F4A7C15;

constexpr std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

}  // namespace

Range balanced_share(std::int64_t total, int parts, int index) {
  if (total < 0) throw std::invalid_argument("balanced_share: the total is negative");
  if (parts < 1) throw std::invalid_argument("balanced_share: there must be at least one part");
  if (index < 0 || index >= parts) throw std::invalid_argument("balanced_share: there is no such part");
  const std::int64_t small = total / parts;
  const std::int64_t larger_shares = total % parts;
  const std::int64_t begin = small * index + std::min<std::int64_t>(index, larger_shares);
  return {begin, begin + small + (index < larger_shares ? 1 : 0)};
}

std::int64_t checked_elements(std::int64_t rows, std::int64_t columns, std::size_t element_size) {
  const std::string matrix = "a matrix of " + std::to_string(rows) + " x " + std::to_string(columns);
  if (rows < 1 || columns < 1 || element_size < 1) throw UsageError(matrix + " elements holds nothing");
  // Divisions instead of a product, which could overflow.
  const bool fits = element_size <= static_cast<std::uint64_t>(kMaxBytes) &&
                    rows <= kMaxBytes / static_cast<std::int64_t>(element_size) / columns;
  if (!fits) {
    throw UsageError(matrix + " elements of " + std::to_string(element_size) +
                     " bytes is too large to address");
  }
  return rows * columns;
}

void fill_integers(std::span<int> out, int low, int high, std::uint64_t seed, std::uint64_t first) {
  if (low > high) throw std::invalid_argument("fill_integers: low is greater than high");
  const std::int64_t values = std::int64_t{high} - low + 1;  // at most 2^32
  const std::uint64_t start = mix(seed + kStep);             // far apart also for neighbouring seeds
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::uint64_t random = mix(start + (first + i + 1) * kStep);
    // The upper 32 bits, scaled to 0 ... values - 1: each value is off its share by at most 2^-32.
    const std::uint64_t scaled = ((random >> 32) * static_cast<std::uint64_t>(values)) >> 32;
    out[i] = static_cast<int>(low + static_cast<std::int64_t>(scaled));
  }
}

}  // namespace overlap
