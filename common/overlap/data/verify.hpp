// Is the result right? A CPU reference, and a comparison of every element. What the comparisons expect: exact
// data (data.hpp) give the same bits in any order of summation; tolerance.hpp has the comparison for random
// normals, freivalds.hpp the check of products that are too large for the reference.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "overlap/data/matrix.hpp"
#include "overlap/gpu/element.hpp"

namespace overlap {

/// C[m, n] = A[m, k] B[k, n] on the CPU, row-major, on all hardware threads. Integers wrap around (modulo
/// 2^32), as they do on GPUs. Throws std::invalid_argument if a span's size does not fit the shape.
void reference_matmul(MatmulShape shape, std::span<const int> a, std::span<const int> b, std::span<int> c);

/// The same for floating types: reference_matmul<T>(...) or, where C has another type,
/// reference_matmul<T, Out>(...); the spans may then be vectors or buffers. Sums are made in double, which is
/// exact on exact data, and each is rounded to Out once. Out is T, float or double; for T = int it is int.
/// 4096 x 8192 x 1024 takes 1 to 6 seconds on two cores.
template <Element T, typename Out = T>
void reference_matmul(MatmulShape shape, std::span<const T> a, std::span<const T> b,
                      std::span<std::type_identity_t<Out>> c);

/// One element that is not as expected. A double holds every value of the element types exactly.
struct Mismatch {
  std::int64_t row;        ///< in the whole matrix, counted from 0
  std::int64_t column;     ///< in the whole matrix, counted from 0
  double expected;         ///< the reference's value
  double actual;           ///< the value found
  int rank = -1;           ///< who holds the element; -1: nobody in particular
  std::string shard = {};  ///< what part of the matrix that rank holds; empty without a rank
};

/// How many mismatches are kept to be shown.
inline constexpr std::size_t kMismatchesShown = 5;

/// What a comparison found.
struct Verification {
  std::int64_t elements = 0;    ///< compared
  std::int64_t mismatches = 0;  ///< differing
  std::vector<Mismatch> first;  ///< the first differing ones, in row-major order, at most kMismatchesShown
  int freivalds_vectors = 0;    ///< of a check by check_product(); 0: each element was compared
  std::int64_t wrong_rows = 0;  ///< by check_product(); `mismatches` are then those of some of these rows

  bool ok() const { return mismatches == 0; }

  /// Adds what another rank found about its shard.
  Verification& operator+=(const Verification& other);
};

/// Compares all elements of two row-major matrices of `columns` columns. Throws std::invalid_argument if the
/// spans differ in size (so nothing passes by being empty) or are no whole number of rows.
Verification compare_matrices(std::span<const int> expected, std::span<const int> actual,
                              std::int64_t columns);

/// The same for all types. An element passes only by being equal: NaN never passes, 0 and -0 are equal.
/// Throws std::invalid_argument also if NaN is expected.
template <Element T>
Verification compare_matrices(std::span<const T> expected, std::span<const T> actual, std::int64_t columns);

/// The same for the shard of one rank, which mismatches then name. Throws std::invalid_argument also if the
/// spans have not shard.elements() elements.
template <Element T>
Verification compare_matrices(std::span<const T> expected, std::span<const T> actual, const Shard& shard);

/// "2 of 100 elements are wrong; [row 3, column 7]: expected 5, found 6; ...", or "all 100 elements are
/// right".
std::string describe(const Verification& verification);

/// Throws WrongResult with the description, after "`what`: ", unless the verification is ok.
void require_right(const Verification& verification, const std::string& what);

/// An unlikely value. An integer result is filled with it before the run, so that an element that is never
/// written is noticed. Results of other types are filled with NaN.
inline constexpr int kPoison = 0x7A5A5A5A;

/// Fills `out` with kPoison.
void poison(std::span<int> out);

/// Fills `out` with kPoison, or with NaN.
template <Element T>
void poison(std::span<T> out);

/// Changes one element, as --corrupt asks: the tests' proof that a wrong result is noticed. Empty spans stay
/// as they are.
void corrupt_one_element(std::span<int> result);

/// The same for all types. Floating types get a value far off, so that no tolerance hides it.
template <Element T>
void corrupt_one_element(std::span<T> result);

}  // namespace overlap
