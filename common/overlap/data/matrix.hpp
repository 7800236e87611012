// Shards of matrices, and integers to fill them with. All matrices are row-major, all sizes and offsets are
// 64-bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "overlap/gpu/shape.hpp"

namespace overlap {

/// The part of a row-major matrix that one rank holds, itself row-major and dense: these rows and these
/// columns of a matrix of `width` columns.
struct Shard {
  Range rows = {};         ///< of the whole matrix; empty where there are fewer rows than ranks
  Range columns = {};      ///< of the whole matrix; may be empty, too
  std::int64_t width = 0;  ///< columns of the whole matrix
  int rank = -1;           ///< who holds it; -1: nobody in particular

  /// Equal in all, the rank included.
  bool operator==(const Shard&) const = default;
  /// rows x columns: how many elements it has.
  std::int64_t elements() const { return rows.size() * columns.size(); }
};

/// All of a matrix of rows x columns.
Shard whole_matrix(std::int64_t rows, std::int64_t columns);

/// The rows that `rank` of `ranks` holds, by balanced_share; all columns.
Shard row_shard(std::int64_t rows, std::int64_t columns, int ranks, int rank);

/// The columns that `rank` of `ranks` holds, by balanced_share; all rows.
Shard column_shard(std::int64_t rows, std::int64_t columns, int ranks, int rank);

/// "rows 128 to 191, columns 0 to 511"; "no rows" or "no columns" where there are none.
std::string describe(const Shard& shard);

/// No matrix may have more bytes than this (2^62), so that byte offsets never overflow a signed 64-bit
/// integer.
inline constexpr std::int64_t kMaxBytes = std::int64_t{1} << 62;

/// rows x columns, the number of elements. Throws UsageError if a size is below 1 or if the elements, each of
/// `element_size` bytes, take more than kMaxBytes.
std::int64_t checked_elements(std::int64_t rows, std::int64_t columns, std::size_t element_size);

/// Fills `out` with integers between `low` and `high` (both included). Element i depends only on `seed` and
/// on its index first + i: the data are the same on every platform, in any order, and for any way to cut them
/// into shards. Throws std::invalid_argument if low > high.
void fill_integers(std::span<int> out, int low, int high, std::uint64_t seed, std::uint64_t first = 0);

}  // namespace overlap
