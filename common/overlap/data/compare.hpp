// What all comparisons share.
#pragma once

#include <cstdint>
#include <string>

#include "overlap/data/verify.hpp"

namespace overlap {

/// The mismatch of the element in this row and column of the shard.
inline Mismatch mismatch_in(const Shard& shard, std::int64_t row, std::int64_t column, double expected,
                            double actual) {
  return {shard.rows.begin + row,
          shard.columns.begin + column,
          expected,
          actual,
          shard.rank,
          shard.rank < 0 ? std::string{} : describe(shard)};
}

/// The shard that is a whole matrix of so many elements. Throws std::invalid_argument, in the name of
/// `function`, unless they are a whole number of rows.
Shard matrix_of(const char* function, std::size_t elements, std::int64_t columns);

/// Throws std::invalid_argument, in the name of `function`, unless both spans have the shard's size.
void require_sizes(const char* function, std::size_t expected, std::size_t actual, const Shard& shard);

/// Throws std::invalid_argument, in the name of `function`: NaN was expected there.
[[noreturn]] void throw_nan_expected(const char* function, const Shard& shard, std::int64_t element);

/// Compares element by element. passes(i, row, column) is about element i, which is in that row and column of
/// the shard; expected(i) and actual(i) are its values.
template <typename Passes, typename Expected, typename Actual>
Verification compare_elements(const Shard& shard, const Passes& passes, const Expected& expected,
                              const Actual& actual) {
  Verification result;
  result.elements = shard.elements();
  std::int64_t i = 0;
  for (std::int64_t row = 0; row < shard.rows.size(); ++row) {
    for (std::int64_t column = 0; column < shard.columns.size(); ++column, ++i) {
      if (passes(i, row, column)) continue;
      ++result.mismatches;
      if (result.first.size() < kMismatchesShown) {
        result.first.push_back(mismatch_in(shard, row, column, expected(i), actual(i)));
      }
    }
  }
  return result;
}

}  // namespace overlap
