// Shapes, shares and shards of matrices, and integers to fill them with. All matrices are row-major, all
// sizes and offsets are 64-bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace overlap {

/// C[m, n] = A[m, k] B[k, n].
struct MatmulShape {
  std::int64_t m = 0;  ///< rows of A and C
  std::int64_t n = 0;  ///< columns of B and C
  std::int64_t k = 0;  ///< columns of A, rows of B

  /// Equal in all three sizes.
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
