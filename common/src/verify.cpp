#include "overlap/verify.hpp"

#include <algorithm>
#include <iomanip>
#include <limits>
#include <sstream>
#include <stdexcept>

#include "overlap/error.hpp"

namespace overlap {
namespace {

constexpr std::size_t kShown = 5;

// For any element type. An element passes only by being equal, so NaN never does.
template <typename T>
Verification compare(std::span<const T> expected, std::span<const T> actual, std::int64_t columns) {
  if (expected.size() != actual.size()) {
    throw std::invalid_argument("compare_matrices: " + std::to_string(expected.size()) +
                                " elements expected, " + std::to_string(actual.size()) + " given");
  }
  if (columns < 1 || static_cast<std::int64_t>(expected.size()) % columns != 0) {
    throw std::invalid_argument("compare_matrices: " + std::to_string(expected.size()) +
                                " elements are no whole number of rows of " + std::to_string(columns));
  }
  Verification result;
  result.elements = static_cast<std::int64_t>(expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (expected[i] == actual[i]) continue;
    ++result.mismatches;
    if (result.first.size() < kShown) {
      const auto index = static_cast<std::int64_t>(i);
      result.first.push_back({index / columns, index % columns, static_cast<double>(expected[i]),
                              static_cast<double>(actual[i])});
    }
  }
  return result;
}

}  // namespace

Verification compare_matrices(std::span<const int> expected, std::span<const int> actual,
                              std::int64_t columns) {
  return compare(expected, actual, columns);
}

std::string describe(const Verification& verification) {
  std::ostringstream text;
  if (verification.ok()) {
    text << "all " << verification.elements << " elements are right";
    return text.str();
  }
  text << verification.mismatches << " of " << verification.elements << " elements are wrong";
  text << std::setprecision(std::numeric_limits<double>::max_digits10);
  for (const Mismatch& m : verification.first) {
    text << "; [row " << m.row << ", column " << m.column << "]: expected " << m.expected << ", found "
         << m.actual;
    if (m.actual == kPoison) text << " (never written)";
  }
  if (verification.mismatches > static_cast<std::int64_t>(verification.first.size())) text << "; ...";
  return text.str();
}

void require_right(const Verification& verification, const std::string& what) {
  if (!verification.ok()) throw WrongResult(what + ": " + describe(verification));
}

void poison(std::span<int> out) { std::fill(out.begin(), out.end(), kPoison); }

void corrupt_one_element(std::span<int> result) {
  if (!result.empty()) result[result.size() / 2] ^= 1;
}

}  // namespace overlap
