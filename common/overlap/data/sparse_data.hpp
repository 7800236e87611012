// Sparse gradients of all ranks, and what their sum has to be.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "overlap/data/sparse.hpp"

namespace overlap {

/// Which values the gradients have.
enum class SparseValues {
  kExact,          ///< small integers, so few that sums in any order are exact in the element type
  kExactIn16Bits,  ///< the same, exact in bf16 and f16, whatever the element type
  kReal,           ///< evenly distributed between -1 and 1: for times
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

/// True of algorithms whose values travel in a narrower type than they have: kWireRoundoff is the relative
/// error of one rounding to it.
template <typename Algorithm>
concept RoundsOnTheWire = requires {
  requires Algorithm::kWireRoundoff >
  0;
};

/// What a result is that need not be the whole sum, exactly.
struct SparsePromise {
  ZeroRows zero_rows = ZeroRows::kKept;              ///< see there
  double wire_roundoff = 0;                          ///< see RoundsOnTheWire; 0: nothing is rounded twice
  std::function<bool(std::int64_t row)> keeps = {};  ///< which rows the rank has of it; empty: all
};

/// Values of which an algorithm's result is right to the last bit.
template <typename Algorithm>
constexpr SparseValues exact_values() {
  return RoundsOnTheWire<Algorithm> ? SparseValues::kExactIn16Bits : SparseValues::kExact;
}

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
  std::int64_t max_entries_per_row() const { return max_entries_per_row_; }
  /// Rows of all ranks: those of two ranks count twice.
  std::int64_t total_rows() const { return total_rows_; }

  /// The values of a rank's entries, [entries, F]. Throws std::invalid_argument if `out` has another size, or
  /// if so many entries have one row that no exact sum is left in T.
  template <Floating T>
  void fill(int rank, SparseValues values, std::span<T> out) const;

  /// What is wrong with a result, in one sentence; empty if nothing is: `indices` have to be global_rows()
  /// (those of them that the promise keeps), and each of the `values` [G, F] the sum over all entries. Exact
  /// values have to be right to the last bit, real ones within the proven bound of Higham (see
  /// tolerance.hpp), every value being rounded at most (entries of the row + ranks) times in T, and, where
  /// the promise says so, twice on the wire. With kDropped a row whose exact sums are all 0 must not be
  /// there; one whose real sums may be rounded to 0 may be missing. 0 and -0 are equal: zeros that a dense
  /// sum adds make one of the other.
  template <SparseIndex Index, Floating T>
  std::string difference(SparseValues kind, std::span<const Index> indices, std::span<const T> values,
                         const SparsePromise& promise = {}) const;

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
  std::int64_t limit(SparseValues kind) const;  // of the exact values; 0 of real ones
  template <SparseIndex Index, Floating T>
  std::string difference_from(const Sums& sums, SparseValues kind, std::span<const Index> indices,
                              std::span<const T> values, double wire_roundoff = 0) const;
  // What one value has to be.
  struct Sum {
    double value = 0;
    double bound = 0;  // how far a right result may be off
  };
  template <Floating T>
  Sum sum_of(const Sums& sums, std::size_t row, std::int64_t column, SparseValues kind, std::int64_t limit,
             double wire_roundoff = 0) const;
  // The sums of the rows for which `wanted` is true, called with the row's number and its place among sums_.
  template <typename Wanted>
  Sums sums_where(const Wanted& wanted) const;
  // Whether a result without zero rows does not need to have a row, and has it not.
  template <SparseIndex Index, Floating T>
  bool may_be_missing(std::size_t row, SparseValues kind, std::span<const Index> indices) const;

  SparseShape shape_;
  std::vector<std::vector<std::int64_t>> entries_;
  std::uint64_t seed_;
  Sums sums_;  // of all ranks
  std::vector<std::int64_t> global_rows_;
  std::int64_t total_rows_ = 0;
  std::int64_t max_entries_per_row_ = 0;
};

/// What an algorithm says of its results on one rank: by kDropsZeroRows, kWireRoundoff, and keeps(row) or
/// kOwnRowsOnly, if there are not all rows. Valid as long as the algorithm is.
template <typename Algorithm>
SparsePromise promise_of(const Algorithm& algorithm, const SparseData& data, int rank) {
  SparsePromise promise;
  if constexpr (DropsZeroRows<Algorithm>) promise.zero_rows = ZeroRows::kDropped;
  if constexpr (RoundsOnTheWire<Algorithm>) promise.wire_roundoff = Algorithm::kWireRoundoff;
  if constexpr (requires { algorithm.keeps(std::int64_t{}); })
    promise.keeps = [&algorithm](std::int64_t row) { return algorithm.keeps(row); };
  if constexpr (requires { requires Algorithm::kOwnRowsOnly; }) {
    promise.keeps = [rows = data.local_rows(rank)](std::int64_t row) {
      return std::binary_search(rows.begin(), rows.end(), row);
    };
  }
  return promise;
}

}  // namespace overlap
