#include "overlap/data/tolerance.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "overlap/data/compare.hpp"
#include "overlap/data/parallel.hpp"
#include "overlap/gpu/error.hpp"

namespace overlap {
namespace {

// The sums of products in f32 on tensor cores; see the header.
constexpr double kSumRounding = 0x1p-23;
// The reference's own sums, and the norms, in double.
constexpr double kReferenceRounding = 0x1p-53;

struct Rounding {
  double relative;  // of rounding to nearest
  double absolute;  // half of the smallest positive number
};

Rounding rounding_of(ElementType type) {
  switch (type) {
    case ElementType::kF16:
      return {0x1p-11, 0x1p-25};
    case ElementType::kBf16:
      return {0x1p-8, 0x1p-134};
    case ElementType::kF32:
      return {0x1p-24, 0x1p-150};
    case ElementType::kInt32:
      break;
  }
  throw std::invalid_argument("matmul_tolerance: int32 is never rounded");
}

double gamma(double roundings, double u) {
  const double error = roundings * u;
  if (error >= 0.5)
    throw UsageError(
        "--k: sums of so many products have no bound for their rounding, so they could not be verified");
  return error / (1 - error);
}

double combined(double one, double other) { return one + other + one * other; }

double real(double value) { return value; }

template <Floating T>
double real(T element) {
  return value_of(element);
}

template <typename Expected, typename T, typename Bound>
Verification compare(std::span<const Expected> expected, std::span<const T> actual, const Shard& shard,
                     const Bound& bound) {
  require_sizes("compare_within", expected.size(), actual.size(), shard);
  const auto at = [](auto matrix, std::int64_t i) { return real(matrix[static_cast<std::size_t>(i)]); };
  return compare_elements(
      shard,
      [&](std::int64_t i, std::int64_t row, std::int64_t column) {
        const double right = at(expected, i);
        if (std::isnan(right)) throw_nan_expected("compare_within", shard, i);
        if (std::isinf(right)) throw std::invalid_argument("compare_within: an infinity is expected");
        // False for NaN and infinities.
        return std::abs(at(actual, i) - right) <= bound(row, column, std::abs(right));
      },
      [&](std::int64_t i) { return at(expected, i); }, [&](std::int64_t i) { return at(actual, i); });
}

template <typename Expected, typename T>
Verification compare_with_norms(std::span<const Expected> expected, std::span<const T> actual,
                                const Shard& shard, Tolerance tolerance, const MatmulNorms& norms) {
  if (static_cast<std::int64_t>(norms.a_rows.size()) != shard.rows.size() ||
      static_cast<std::int64_t>(norms.b_columns.size()) != shard.columns.size()) {
    throw std::invalid_argument("compare_within: the norms are not those of the shard's rows and columns");
  }
  return compare(expected, actual, shard, [&](std::int64_t row, std::int64_t column, double right) {
    const double magnitude =
        norms.a_rows[static_cast<std::size_t>(row)] * norms.b_columns[static_cast<std::size_t>(column)];
    return tolerance.magnitude * magnitude + tolerance.value * right + tolerance.absolute;
  });
}

}  // namespace

Tolerance matmul_tolerance(std::int64_t k, ElementType input, ElementType output, Accumulation accumulation) {
  if (k < 0) throw std::invalid_argument("matmul_tolerance: k is negative");
  if (accumulation.partials < 1) throw std::invalid_argument("matmul_tolerance: there is no partial sum");
  rounding_of(input);  // refuses int32
  const Rounding partial = rounding_of(accumulation.partial_type);
  const Rounding out = rounding_of(output);
  const auto terms = static_cast<double>(k);
  const double partials = accumulation.partials;

  // One rounding for each product and one for each addition of the longest chain: k - 1 additions and the
  // product. (Products of 16-bit elements are exact in f32; that one rounding is not worth a case.)
  double sums = gamma(terms, kSumRounding);
  double absolute = out.absolute;
  if (partials > 1 || accumulation.partial_type != ElementType::kF32) {
    // A partial sum is stored once, and then takes part in at most partials - 1 sums.
    sums = combined(sums, gamma(partials, partial.relative));
    absolute += 2 * partials * partial.absolute;
  }
  sums = combined(sums, gamma(2 * terms + 4, kReferenceRounding));
  // |rounded - c'| <= u |c'| <= u (|c| + error of c').
  return {sums * (1 + out.relative), out.relative, absolute};
}

Tolerance between_two_results(Tolerance tolerance) {
  // With e = magnitude g + absolute: |c1 - c| <= e + value |c|, so |c| <= (|c1| + e) / (1 - value), and
  // |c1 - c2| <= 2 (e + value |c|) <= 2 / (1 - value) (e + value |c1|).
  const double factor = 2 / (1 - tolerance.value);
  return {factor * tolerance.magnitude, factor * tolerance.value, factor * tolerance.absolute};
}

template <Floating T>
MatmulNorms matmul_norms(MatmulShape shape, std::span<const T> a, std::span<const T> b) {
  if (static_cast<std::int64_t>(a.size()) != shape.m * shape.k ||
      static_cast<std::int64_t>(b.size()) != shape.k * shape.n) {
    throw std::invalid_argument("matmul_norms: a matrix does not have the size that the shape says");
  }
  MatmulNorms norms{std::vector<double>(static_cast<std::size_t>(shape.m)),
                    std::vector<double>(static_cast<std::size_t>(shape.n))};
  const auto square = [](T element) { return value_of(element) * value_of(element); };
  const auto sum_rows = [&](Range rows) {
    for (std::int64_t i = rows.begin; i < rows.end; ++i) {
      double sum = 0;
      for (std::int64_t k = 0; k < shape.k; ++k) sum += square(a[static_cast<std::size_t>(i * shape.k + k)]);
      norms.a_rows[static_cast<std::size_t>(i)] = std::sqrt(sum);
    }
  };
  const auto sum_columns = [&](Range columns) {
    std::vector<double> sums(static_cast<std::size_t>(columns.size()), 0.0);
    for (std::int64_t k = 0; k < shape.k; ++k) {
      const T* row = b.data() + k * shape.n + columns.begin;
      for (std::size_t j = 0; j < sums.size(); ++j) sums[j] += square(row[j]);
    }
    std::transform(sums.begin(), sums.end(), norms.b_columns.begin() + columns.begin,
                   [](double sum) { return std::sqrt(sum); });
  };
  parallel_shares(shape.m, sum_rows, worth_a_thread(shape.k));
  parallel_shares(shape.n, sum_columns, worth_a_thread(shape.k));
  return norms;
}

template <Floating T>
Verification compare_within(std::span<const double> expected, std::span<const T> actual, const Shard& shard,
                            Tolerance tolerance, const MatmulNorms& norms) {
  return compare_with_norms(expected, actual, shard, tolerance, norms);
}

template <Floating T>
Verification compare_within(std::span<const T> expected, std::span<const T> actual, const Shard& shard,
                            Tolerance tolerance, const MatmulNorms& norms) {
  return compare_with_norms(expected, actual, shard, tolerance, norms);
}

template <Floating T>
Verification compare_within(std::span<const double> expected, std::span<const T> actual, std::int64_t columns,
                            double tolerance) {
  const Shard shard = matrix_of("compare_within", expected.size(), columns);
  return compare(expected, actual, shard, [&](std::int64_t, std::int64_t, double) { return tolerance; });
}

template MatmulNorms matmul_norms(MatmulShape, std::span<const __half>, std::span<const __half>);
template Verification compare_within(std::span<const double>, std::span<const __half>, const Shard&,
                                     Tolerance, const MatmulNorms&);
template Verification compare_within(std::span<const __half>, std::span<const __half>, const Shard&,
                                     Tolerance, const MatmulNorms&);
template Verification compare_within(std::span<const double>, std::span<const __half>, std::int64_t, double);

template MatmulNorms matmul_norms(MatmulShape, std::span<const __nv_bfloat16>,
                                  std::span<const __nv_bfloat16>);
template Verification compare_within(std::span<const double>, std::span<const __nv_bfloat16>, const Shard&,
                                     Tolerance, const MatmulNorms&);
template Verification compare_within(std::span<const __nv_bfloat16>, std::span<const __nv_bfloat16>,
                                     const Shard&, Tolerance, const MatmulNorms&);
template Verification compare_within(std::span<const double>, std::span<const __nv_bfloat16>, std::int64_t,
                                     double);

template MatmulNorms matmul_norms(MatmulShape, std::span<const float>, std::span<const float>);
template Verification compare_within(std::span<const double>, std::span<const float>, const Shard&, Tolerance,
                                     const MatmulNorms&);
template Verification compare_within(std::span<const float>, std::span<const float>, const Shard&, Tolerance,
                                     const MatmulNorms&);
template Verification compare_within(std::span<const double>, std::span<const float>, std::int64_t, double);

}  // namespace overlap
