#include "overlap/data/freivalds.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "overlap/data/compare.hpp"
#include "overlap/data/parallel.hpp"
#include "overlap/data/random.hpp"
#include "overlap/gpu/error.hpp"

namespace overlap {
namespace {

using Integers = std::vector<std::int64_t>;

constexpr std::int64_t kLargestX = std::int64_t{1} << 31;
constexpr std::int64_t kNoInteger = std::numeric_limits<std::int64_t>::min();

// The element as an integer; kNoInteger if it is none, or too large to be right.
template <typename T>
std::int64_t integer_of(T element) {
  if constexpr (std::is_same_v<T, int>) {
    return element;
  } else {
    const double value = value_of(element);
    if (!(std::abs(value) <= 0x1p53)) return kNoInteger;  // not the case for NaN
    const auto integer = static_cast<std::int64_t>(value);
    return static_cast<double>(integer) == value ? integer : kNoInteger;
  }
}

template <typename T>
std::int64_t input_integer(T element) {
  const std::int64_t value = integer_of(element);
  if (value == kNoInteger) throw std::invalid_argument("check_product: an element of A or B is no integer");
  return value;
}

template <typename T>
std::span<const T> row_of(std::span<const T> matrix, std::int64_t row, std::int64_t columns) {
  return matrix.subspan(static_cast<std::size_t>(row * columns), static_cast<std::size_t>(columns));
}

// `value(i)` for i = 0 ... count - 1, each computed once from `elements` elements, on all hardware threads.
template <typename Value>
Integers for_each_row(std::int64_t count, std::int64_t elements, const Value& value) {
  Integers values(static_cast<std::size_t>(count));
  const auto compute = [&](Range rows) {
    for (std::int64_t i = rows.begin; i < rows.end; ++i) values[static_cast<std::size_t>(i)] = value(i);
  };
  parallel_shares(count, compute, worth_a_thread(elements));
  return values;
}

// The sum of element * x; elements are integers and no sum overflows.
template <typename T>
std::int64_t dot(std::span<const T> elements, const Integers& x) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < elements.size(); ++i) sum += integer_of(elements[i]) * x[i];
  return sum;
}

// The sum of absolute values. Throws for an element that is no integer. Saturates instead of overflowing.
template <typename T>
std::int64_t sum_of_magnitudes(std::span<const T> elements) {
  double sum = 0;
  for (const T element : elements) sum += static_cast<double>(std::abs(input_integer(element)));
  return static_cast<std::int64_t>(std::min(sum, 0x1p53));
}

template <typename T>
std::int64_t largest_magnitude(std::span<const T> elements) {
  std::int64_t largest = 0;
  for (const T element : elements) largest = std::max(largest, std::abs(input_integer(element)));
  return largest;
}

template <typename T, typename Out>
class ProductCheck {
 public:
  ProductCheck(MatmulShape shape, std::span<const T> a, std::span<const T> b, std::span<const Out> c,
               const Shard& shard)
      : shape_(shape), a_(a), b_(b), c_(c), shard_(shard) {
    const Integers b_largest = for_each_row(
        shape.k, shape.n, [&](std::int64_t k) { return largest_magnitude(row_of(b_, k, shape_.n)); });
    const std::int64_t b_max = shape.k == 0 ? 0 : *std::max_element(b_largest.begin(), b_largest.end());
    limits_ = for_each_row(shape.m, shape.k,
                           [&](std::int64_t i) { return sum_of_magnitudes(row_of(a_, i, shape_.k)); });
    const std::int64_t a_max = shape.m == 0 ? 0 : *std::max_element(limits_.begin(), limits_.end());
    const std::int64_t columns = std::max<std::int64_t>(shape.n, 1);
    // a_max b_max n < 2^32, by divisions, which do not overflow.
    constexpr std::int64_t kLimit = (std::int64_t{1} << 32) - 1;
    if (b_max > 0 && std::max<std::int64_t>(a_max, 1) > kLimit / b_max / columns) {
      throw UsageError("Freivalds' check would overflow 64 bits: rows of A add up to " +
                       std::to_string(a_max) + ", elements of B are up to " + std::to_string(b_max) +
                       ", and there are " + std::to_string(shape.n) + " columns");
    }
    for (std::int64_t& limit : limits_) limit *= b_max;
    wrong_.assign(static_cast<std::size_t>(shape.m), 0);
  }

  // Marks the rows of C that are wrong for one random vector.
  void try_vector(const RandomBits& random) {
    Integers x(static_cast<std::size_t>(shape_.n));
    for (std::size_t j = 0; j < x.size(); ++j) {
      x[j] = 1 + static_cast<std::int64_t>(below(kLargestX, random.at(j)));
    }
    const Integers bx =
        for_each_row(shape_.k, shape_.n, [&](std::int64_t k) { return dot(row_of(b_, k, shape_.n), x); });
    const auto compare = [&](Range rows) {
      for (std::int64_t i = rows.begin; i < rows.end; ++i) {
        if (dot(row_of(a_, i, shape_.k), bx) != row_times(i, x)) wrong_[static_cast<std::size_t>(i)] = 1;
      }
    };
    parallel_shares(shape_.m, compare, worth_a_thread(shape_.k + shape_.n));
  }

  Verification result(int vectors) const {
    Verification result;
    result.elements = shape_.m * shape_.n;
    result.freivalds_vectors = vectors;
    for (std::int64_t i = 0; i < shape_.m; ++i) {
      if (wrong_[static_cast<std::size_t>(i)] == 0) continue;
      ++result.wrong_rows;
      if (result.first.size() < kMismatchesShown) compare_row(i, result);
    }
    return result;
  }

 private:
  // Row i of C times x; kNoInteger, which no sum equals, if an element cannot be right.
  std::int64_t row_times(std::int64_t i, const Integers& x) const {
    const std::int64_t limit = limits_[static_cast<std::size_t>(i)];
    const std::span<const Out> row = row_of(c_, i, shape_.n);
    std::int64_t sum = 0;
    bool possible = true;
    for (std::size_t j = 0; j < row.size(); ++j) {
      const std::int64_t value = integer_of(row[j]);
      const bool fits = value >= -limit && value <= limit;
      possible = possible && fits;
      sum += (fits ? value : 0) * x[j];
    }
    return possible ? sum : kNoInteger;
  }

  // Computes row i of A B in full and adds its differences.
  void compare_row(std::int64_t i, Verification& result) const {
    Integers expected(static_cast<std::size_t>(shape_.n), 0);
    for (std::int64_t k = 0; k < shape_.k; ++k) {
      const std::int64_t factor = integer_of(a_[static_cast<std::size_t>(i * shape_.k + k)]);
      if (factor == 0) continue;
      const std::span<const T> b_row = row_of(b_, k, shape_.n);
      for (std::size_t j = 0; j < expected.size(); ++j) expected[j] += factor * integer_of(b_row[j]);
    }
    const std::int64_t before = result.mismatches;
    for (std::int64_t j = 0; j < shape_.n; ++j) {
      const std::int64_t right = expected[static_cast<std::size_t>(j)];
      const Out found = c_[static_cast<std::size_t>(i * shape_.n + j)];
      if (integer_of(found) == right) continue;
      ++result.mismatches;
      if (result.first.size() < kMismatchesShown) {
        result.first.push_back(mismatch_in(shard_, i, j, static_cast<double>(right), value_of(found)));
      }
    }
    if (result.mismatches == before) throw std::logic_error("check_product: a wrong row without an error");
  }

  MatmulShape shape_;
  std::span<const T> a_;
  std::span<const T> b_;
  std::span<const Out> c_;
  Shard shard_;
  Integers limits_;          // of each row: no element of C can be larger
  std::vector<char> wrong_;  // of each row: 1 if it is known to be wrong
};

}  // namespace

template <Element T, typename Out>
Verification check_product(MatmulShape shape, std::span<const T> a, std::span<const T> b,
                           std::span<const std::type_identity_t<Out>> c, const Shard& shard,
                           std::uint64_t seed, int vectors) {
  if (shape.m < 0 || shape.n < 0 || shape.k < 0 || vectors < 1) {
    throw std::invalid_argument("check_product: a size is negative, or there is no vector");
  }
  if (shard.rows.size() != shape.m || shard.columns.size() != shape.n) {
    throw std::invalid_argument("check_product: the shard has not the size of the product");
  }
  require_sizes("check_product: A", static_cast<std::size_t>(shape.m * shape.k), a.size(),
                whole_matrix(shape.m, shape.k));
  require_sizes("check_product: B", static_cast<std::size_t>(shape.k * shape.n), b.size(),
                whole_matrix(shape.k, shape.n));
  require_sizes("check_product: C", static_cast<std::size_t>(shape.m * shape.n), c.size(), shard);
  ProductCheck<T, Out> check(shape, a, b, c, shard);
  for (int vector = 0; vector < vectors; ++vector) {
    check.try_vector(RandomBits(seed, kFreivalds + static_cast<std::uint64_t>(vector)));
  }
  return check.result(vectors);
}

template Verification check_product<int, int>(MatmulShape, std::span<const int>, std::span<const int>,
                                              std::span<const int>, const Shard&, std::uint64_t, int);
template Verification check_product<__half, __half>(MatmulShape, std::span<const __half>,
                                                    std::span<const __half>, std::span<const __half>,
                                                    const Shard&, std::uint64_t, int);
template Verification check_product<__half, float>(MatmulShape, std::span<const __half>,
                                                   std::span<const __half>, std::span<const float>,
                                                   const Shard&, std::uint64_t, int);
template Verification check_product<__nv_bfloat16, __nv_bfloat16>(MatmulShape, std::span<const __nv_bfloat16>,
                                                                  std::span<const __nv_bfloat16>,
                                                                  std::span<const __nv_bfloat16>,
                                                                  const Shard&, std::uint64_t, int);
template Verification check_product<__nv_bfloat16, float>(MatmulShape, std::span<const __nv_bfloat16>,
                                                          std::span<const __nv_bfloat16>,
                                                          std::span<const float>, const Shard&, std::uint64_t,
                                                          int);
template Verification check_product<float, float>(MatmulShape, std::span<const float>, std::span<const float>,
                                                  std::span<const float>, const Shard&, std::uint64_t, int);

}  // namespace overlap
