#include "overlap/data/verify.hpp"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <type_traits>

#include "overlap/data/compare.hpp"
#include "overlap/gpu/error.hpp"

namespace overlap {
namespace {

// True if two elements are equal: in their bits, which is fast, or as 0 and -0. NaN equals nothing.
template <typename T>
bool equal(T expected, T actual) {
  if constexpr (SixteenBit<T>) {
    return (bits_of(expected) == bits_of(actual) && !is_nan(actual)) ||
           ((bits_of(expected) | bits_of(actual)) & 0x7FFF) == 0;
  } else {
    return expected == actual;
  }
}

// The value of an element that was never written.
template <typename T>
T poison_of() {
  if constexpr (std::is_same_v<T, int>) {
    return kPoison;
  } else {
    return from_float<T>(std::numeric_limits<float>::quiet_NaN());
  }
}

// Where the element is.
std::string place_of(const Mismatch& m) {
  std::string text = "[";
  if (m.rank >= 0) text += "rank " + std::to_string(m.rank) + ", ";
  text += "row " + std::to_string(m.row) + ", column " + std::to_string(m.column);
  if (!m.shard.empty()) text += "; shard: " + m.shard;
  return text + "]";
}

// The confidence of a check by random vectors.
std::string freivalds_text(int vectors) {
  return " (Freivalds' check: a wrong row is missed with a probability of at most 2^-" +
         std::to_string(31 * vectors) + ")";
}

}  // namespace

Shard matrix_of(const char* function, std::size_t elements, std::int64_t columns) {
  const auto count = static_cast<std::int64_t>(elements);
  if (columns < 1 || count % columns != 0) {
    throw std::invalid_argument(std::string(function) + ": " + std::to_string(elements) +
                                " elements are no whole number of rows of " + std::to_string(columns));
  }
  return whole_matrix(count / columns, columns);
}

void require_sizes(const char* function, std::size_t expected, std::size_t actual, const Shard& shard) {
  if (expected != actual) {
    throw std::invalid_argument(std::string(function) + ": " + std::to_string(expected) +
                                " elements expected, " + std::to_string(actual) + " given");
  }
  if (static_cast<std::int64_t>(actual) != shard.elements()) {
    throw std::invalid_argument(std::string(function) + ": " + std::to_string(actual) +
                                " elements for a shard of " + std::to_string(shard.elements()));
  }
}

void throw_nan_expected(const char* function, const Shard& shard, std::int64_t element) {
  throw std::invalid_argument(std::string(function) + ": NaN is expected in row " +
                              std::to_string(shard.rows.begin + element / shard.columns.size()) +
                              ", column " +
                              std::to_string(shard.columns.begin + element % shard.columns.size()));
}

Verification& Verification::operator+=(const Verification& other) {
  elements += other.elements;
  mismatches += other.mismatches;
  wrong_rows += other.wrong_rows;
  const std::size_t room = kMismatchesShown - std::min(kMismatchesShown, first.size());
  first.insert(first.end(), other.first.begin(),
               other.first.begin() + static_cast<std::ptrdiff_t>(std::min(room, other.first.size())));
  // The confidence of the whole is that of its weakest part.
  if (freivalds_vectors == 0 || other.freivalds_vectors == 0) {
    freivalds_vectors = std::max(freivalds_vectors, other.freivalds_vectors);
  } else {
    freivalds_vectors = std::min(freivalds_vectors, other.freivalds_vectors);
  }
  return *this;
}

template <Element T>
Verification compare_matrices(std::span<const T> expected, std::span<const T> actual, const Shard& shard) {
  require_sizes("compare_matrices", expected.size(), actual.size(), shard);
  const auto at = [](std::span<const T> matrix, std::int64_t i) {
    return matrix[static_cast<std::size_t>(i)];
  };
  return compare_elements(
      shard,
      [&](std::int64_t i, std::int64_t, std::int64_t) {
        if (equal(at(expected, i), at(actual, i))) return true;
        if (is_nan(at(expected, i))) throw_nan_expected("compare_matrices", shard, i);
        return false;
      },
      [&](std::int64_t i) { return value_of(at(expected, i)); },
      [&](std::int64_t i) { return value_of(at(actual, i)); });
}

template <Element T>
Verification compare_matrices(std::span<const T> expected, std::span<const T> actual, std::int64_t columns) {
  return compare_matrices(expected, actual, matrix_of("compare_matrices", expected.size(), columns));
}

Verification compare_matrices(std::span<const int> expected, std::span<const int> actual,
                              std::int64_t columns) {
  return compare_matrices<int>(expected, actual, columns);
}

std::string describe(const Verification& verification) {
  std::ostringstream text;
  const bool sampled = verification.freivalds_vectors > 0;
  if (verification.ok()) {
    text << "all " << verification.elements << " elements are right";
    if (sampled) text << freivalds_text(verification.freivalds_vectors);
    return text.str();
  }
  if (verification.wrong_rows > 0) text << "at least ";
  text << verification.mismatches << " of " << verification.elements << " elements are wrong";
  if (verification.wrong_rows > 0) {
    text << ", in " << verification.wrong_rows << (verification.wrong_rows == 1 ? " row" : " rows");
  }
  text << std::setprecision(std::numeric_limits<double>::max_digits10);
  for (const Mismatch& m : verification.first) {
    text << "; " << place_of(m) << ": expected " << m.expected << ", found " << m.actual;
    if (m.actual == kPoison) text << " (never written)";
    if (std::isnan(m.actual)) text << " (never written?)";
  }
  if (verification.mismatches > static_cast<std::int64_t>(verification.first.size())) text << "; ...";
  return text.str();
}

void require_right(const Verification& verification, const std::string& what) {
  if (!verification.ok()) throw WrongResult(what + ": " + describe(verification));
}

template <Element T>
void poison(std::span<T> out) {
  std::fill(out.begin(), out.end(), poison_of<T>());
}

void poison(std::span<int> out) { poison<int>(out); }

template <Element T>
void corrupt_one_element(std::span<T> result) {
  if (result.empty()) return;
  T& element = result[result.size() / 2];
  if constexpr (std::is_same_v<T, int>) {
    element ^= 1;
  } else {
    const double value = value_of(element);
    const double far = std::is_same_v<T, __half> ? 0x1p15 : 0x1p100;
    element = from_double<T>(std::abs(value) < far ? far : -value);
  }
}

void corrupt_one_element(std::span<int> result) { corrupt_one_element<int>(result); }

template Verification compare_matrices(std::span<const int>, std::span<const int>, std::int64_t);
template Verification compare_matrices(std::span<const int>, std::span<const int>, const Shard&);
template void poison(std::span<int>);
template void corrupt_one_element(std::span<int>);

template Verification compare_matrices(std::span<const __half>, std::span<const __half>, std::int64_t);
template Verification compare_matrices(std::span<const __half>, std::span<const __half>, const Shard&);
template void poison(std::span<__half>);
template void corrupt_one_element(std::span<__half>);

template Verification compare_matrices(std::span<const __nv_bfloat16>, std::span<const __nv_bfloat16>,
                                       std::int64_t);
template Verification compare_matrices(std::span<const __nv_bfloat16>, std::span<const __nv_bfloat16>,
                                       const Shard&);
template void poison(std::span<__nv_bfloat16>);
template void corrupt_one_element(std::span<__nv_bfloat16>);

template Verification compare_matrices(std::span<const float>, std::span<const float>, std::int64_t);
template Verification compare_matrices(std::span<const float>, std::span<const float>, const Shard&);
template void poison(std::span<float>);
template void corrupt_one_element(std::span<float>);

}  // namespace overlap
