#include "overlap/data/matrix.hpp"

#include <stdexcept>
#include <string>

#include "overlap/data/random.hpp"
#include "overlap/gpu/error.hpp"

namespace overlap {
namespace {

// "rows 3 to 7", or "no rows".
std::string text_of(const char* what, Range range) {
  if (range.empty()) return std::string("no ") + what;
  return std::string(what) + " " + std::to_string(range.begin) + " to " + std::to_string(range.end - 1);
}

}  // namespace

Shard whole_matrix(std::int64_t rows, std::int64_t columns) { return {{0, rows}, {0, columns}, columns}; }

Shard row_shard(std::int64_t rows, std::int64_t columns, int ranks, int rank) {
  return {balanced_share(rows, ranks, rank), {0, columns}, columns, rank};
}

Shard column_shard(std::int64_t rows, std::int64_t columns, int ranks, int rank) {
  return {{0, rows}, balanced_share(columns, ranks, rank), columns, rank};
}

std::string describe(const Shard& shard) {
  return text_of("rows", shard.rows) + ", " + text_of("columns", shard.columns);
}

std::int64_t checked_elements(std::int64_t rows, std::int64_t columns, std::size_t element_size) {
  const std::string matrix = "a matrix of " + std::to_string(rows) + " x " + std::to_string(columns);
  if (rows < 1 || columns < 1 || element_size < 1) throw UsageError(matrix + " elements holds nothing");
  // Divides, because a product could overflow.
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
  const RandomBits random(seed);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::uint64_t choice = below(static_cast<std::uint64_t>(values), random.at(first + i));
    out[i] = static_cast<int>(low + static_cast<std::int64_t>(choice));
  }
}

}  // namespace overlap
