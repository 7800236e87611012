// Sparse gradients of all ranks, and what their sum has to be.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "overlap/data/sparse.hpp"

namespace overlap {

/// Which values the gradients have.
enum class SparseValues {
  kExact,  ///< small integers, so few that sums in any order are exact in the element type
  kReal,   ///< evenly distributed between -1 and 1: for times
};

/// What a result has of rows whose entries add up to zero in every column.
enum class ZeroRows {
  kKept,     ///< all of them: a row is there if a rank has an entry of it
  kDropped,  ///< none
};

/// True of algorithms whose results have no rows of zeros: they say so by kDropsZeroRows.
template <typename Algorithm>
concept DropsZeroRows = requires {
  requires Algorithm::kDropsZeroRows;
};

/// The gradients of all ranks, on the host. An entry is one row number and F values; entries of one rank that
/// have the same row are to be added up, as autograd leaves them. Values depend on the seed, the rank, the
/// entry's number and the column only. Make it before run_ranks(): all ranks read it. No CUDA call.
class SparseData {
 public:
  /// Draws `shape.entries` distinct rows for each rank (all of them for each, if `pattern` is kIdentical),
  /// and `duplicates` entries more, each for one of the rank's own rows; the order is random. Throws
  /// UsageError if there are not so many rows.
  SparseData(SparseShape shape, int ranks, RowPattern pattern, std::int64_t duplicates, std::uint64_t seed);
  /// With these entries of each rank: their row numbers, 0 <= row < shape.rows. Throws std::invalid_argument.
  SparseData(SparseShape shape, std::vector<std::vector<std::int64_t>> entries, std::uint64_t seed);

  SparseShape shape() const { return shape_; }                     ///< as given
  int ranks() const { return static_cast<int>(entries_.size()); }  ///< how many gradients there are
  /// The row number of each entry of a rank.
  const std::vector<std::int64_t>& entries(int rank) const { return entries_.at(rank); }
  /// The rows of a rank, each once, ascending.
  std::vector<std::int64_t> local_rows(int rank) const;
  /// The rows of any rank, each once, ascending.
  const std::vector<std::int64_t>& global_rows() const { return global_rows_; }
  /// So many entries of all ranks has a row at most.
  std::int64_t most_entries_of_a_row() const { return most_entries_of_a_row_; }
  /// Rows of all ranks: those of two ranks count twice.
  std::int64_t total_rows() const { return total_rows_; }

  /// The values of a rank's entries, [entries, F]. Throws std::invalid_argument if `out` has another size, or
  /// if so many entries have one row that no exact sum is left in T.
  template <Floating T>
  void fill(int rank, SparseValues values, std::span<T> out) const;

  /// What is wrong with a result, in one sentence; empty if nothing is: `indices` have to be global_rows(),
  /// and each of the `values` [G, F] the sum over all entries. Exact values have to be right to the last bit,
  /// real ones within the proven bound of Higham (see tolerance.hpp), every value being rounded at most
  /// (entries of the row + ranks) times in T. With kDropped a row whose exact sums are all 0 must not be
  /// there; one whose real sums may be rounded to 0 may be missing.
  template <SparseIndex Index, Floating T>
  std::string difference(SparseValues kind, std::span<const Index> indices, std::span<const T> values,
                         ZeroRows zero_rows = ZeroRows::kKept) const;

  /// The same for one rank alone, before anything is reduced: its rows, each once, and the sums of its
  /// entries.
  template <SparseIndex Index, Floating T>
  std::string local_difference(int rank, SparseValues kind, std::span<const Index> indices,
                               std::span<const T> values) const;

 private:
  struct Entry {
    int rank;
    std::int64_t number;  // among the entries of its rank
  };
  // The entries of each row, by row, then by rank, then by number.
  struct Sums {
    std::vector<std::int64_t> rows, begins;  // begins has one more
    std::vector<Entry> entries;
  };

  Sums sums_of(int first_rank, int last_rank) const;
  double value(const Entry& entry, std::int64_t column, SparseValues kind, std::int64_t limit) const;
  template <Floating T>
  std::int64_t limit() const;  // of the exact values
  template <SparseIndex Index, Floating T>
  std::string difference_from(const Sums& sums, SparseValues kind, std::span<const Index> indices,
                              std::span<const T> values) const;
  // What one value has to be.
  struct Sum {
    double value = 0;
    double bound = 0;  // how far a right result may be off
  };
  template <Floating T>
  Sum sum_of(const Sums& sums, std::size_t row, std::int64_t column, SparseValues kind,
             std::int64_t limit) const;
  // The sums without the rows that a result without zero rows does not need to have, and has not.
  template <SparseIndex Index, Floating T>
  Sums without_zero_rows(SparseValues kind, std::span<const Index> indices) const;

  SparseShape shape_;
  std::vector<std::vector<std::int64_t>> entries_;
  std::uint64_t seed_;
  Sums sums_;  // of all ranks
  std::vector<std::int64_t> global_rows_;
  std::int64_t total_rows_ = 0;
  std::int64_t most_entries_of_a_row_ = 0;
};

}  // namespace overlap
