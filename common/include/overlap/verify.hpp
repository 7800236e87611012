// Is the result right? A CPU reference, and a comparison of every element.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "overlap/matrix.hpp"

namespace overlap {

/// C[m, n] = A[m, k] B[k, n] on the CPU, row-major, on all hardware threads. Integers wrap around (modulo
/// 2^32), as they do on GPUs. Throws std::invalid_argument if a span's size does not fit the shape.
void reference_matmul(MatmulShape shape, std::span<const int> a, std::span<const int> b, std::span<int> c);

/// One element that is not as expected. A double holds every value of the element types exactly.
struct Mismatch {
  std::int64_t row;     ///< counted from 0
  std::int64_t column;  ///< counted from 0
  double expected;      ///< the reference's value
  double actual;        ///< the value found
};

/// What a comparison found.
struct Verification {
  std::int64_t elements = 0;    ///< compared
  std::int64_t mismatches = 0;  ///< differing
  std::vector<Mismatch> first;  ///< the first differing ones, in row-major order, at most 5

  /// True if every element is as expected.
  bool ok() const { return mismatches == 0; }
};

/// Compares all elements of two row-major matrices of `columns` columns. Throws std::invalid_argument if the
/// spans differ in size (so nothing passes by being empty) or are no whole number of rows.
Verification compare_matrices(std::span<const int> expected, std::span<const int> actual,
                              std::int64_t columns);

/// "2 of 100 elements are wrong; [row 3, column 7]: expected 5, found 6; ...", or "all 100 elements are
/// right".
std::string describe(const Verification& verification);

/// Throws WrongResult with the description, after "`what`: ", unless the verification is ok.
void require_right(const Verification& verification, const std::string& what);

/// An unlikely value. A result is filled with it before the run, so that an element that is never written is
/// noticed.
inline constexpr int kPoison = 0x7A5A5A5A;

/// Fills `out` with kPoison.
void poison(std::span<int> out);

/// Changes one element, as --corrupt asks: the tests' proof that a wrong result is noticed. Empty spans stay
/// as they are.
void corrupt_one_element(std::span<int> result);

}  // namespace overlap
