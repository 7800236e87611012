#include "overlap/data/tolerance.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <vector>

#include "element_types.hpp"
#include "overlap/data/data.hpp"
#include "overlap/gpu/error.hpp"

namespace overlap {
namespace {

constexpr auto kF16 = ElementType::kF16;
constexpr auto kBf16 = ElementType::kBf16;
constexpr auto kF32 = ElementType::kF32;

template <typename T>
struct Problem {
  explicit Problem(MatmulShape s) : shape(s) {
    a.resize(static_cast<std::size_t>(s.m * s.k));
    b.resize(static_cast<std::size_t>(s.k * s.n));
    exact.resize(static_cast<std::size_t>(s.m * s.n));
    fill_normal<T>(a, whole_matrix(s.m, s.k), 1);
    fill_normal<T>(b, whole_matrix(s.k, s.n), 2);
    reference_matmul<T, double>(s, a, b, exact);
    norms = matmul_norms<T>(s, a, b);
  }

  // C in Out, summed from p = 0 in f32; each sum is truncated as tensor cores do (toward 0), in `partials`
  // parts that are rounded to T and added in T.
  template <typename Out>
  std::vector<Out> computed(int partials = 1) const {
    std::vector<Out> c;
    for (std::int64_t i = 0; i < shape.m; ++i) {
      for (std::int64_t j = 0; j < shape.n; ++j) {
        double total = 0;
        for (int part = 0; part < partials; ++part) {
          float sum = 0;
          const Range range = balanced_share(shape.k, partials, part);
          for (std::int64_t p = range.begin; p < range.end; ++p) {
            sum = cut_off(static_cast<double>(sum) +
                          value_of(a[static_cast<std::size_t>(i * shape.k + p)]) *
                              value_of(b[static_cast<std::size_t>(p * shape.n + j)]));
          }
          total = partials == 1 ? sum : value_of(from_double<T>(total + value_of(from_double<T>(sum))));
        }
        c.push_back(from_double<Out>(total));
      }
    }
    return c;
  }

  static float cut_off(double value) {
    const auto nearest = static_cast<float>(value);
    return std::abs(static_cast<double>(nearest)) > std::abs(value) ? std::nextafterf(nearest, 0.0F)
                                                                    : nearest;
  }

  Shard whole() const { return whole_matrix(shape.m, shape.n); }

  MatmulShape shape;
  std::vector<T> a, b;
  std::vector<double> exact;
  MatmulNorms norms;
};

TEST(MatmulToleranceTest, KnowsTheseByHand) {
  // k u / (1 - k u) with u = 2^-23, k = 2^13; the reference adds (2^14 + 4) 2^-53.
  const Tolerance f32 = matmul_tolerance(8192, kF32, kF32);
  EXPECT_NEAR(f32.magnitude, 0x1p-10 / (1 - 0x1p-10), 1e-9);
  EXPECT_GT(f32.magnitude, 0x1p-10 / (1 - 0x1p-10));
  EXPECT_EQ(f32.value, 0x1p-24);
  const Tolerance f16 = matmul_tolerance(8192, kF16, kF16);
  EXPECT_EQ(f16.value, 0x1p-11);
  EXPECT_EQ(f16.absolute, 0x1p-25);
  EXPECT_EQ(matmul_tolerance(8192, kBf16, kBf16).value, 0x1p-8);
  // Nothing is added, so only the rounding of the output remains.
  EXPECT_LT(matmul_tolerance(0, kF16, kF16).magnitude, 1e-15);
  // Eight partial sums in bf16: each term is rounded up to eight more times, 8 u / (1 - 8 u).
  const Tolerance eight = matmul_tolerance(8192, kBf16, kF32, {kBf16, 8});
  EXPECT_NEAR(eight.magnitude, 1 / 31.0 + 0x1p-10, 1e-4);
  // The tolerance grows with each argument.
  EXPECT_LT(matmul_tolerance(100, kF16, kF16).magnitude, matmul_tolerance(101, kF16, kF16).magnitude);
  EXPECT_LT(matmul_tolerance(100, kF16, kF16, {kF16, 2}).magnitude,
            matmul_tolerance(100, kF16, kF16, {kF16, 3}).magnitude);
  EXPECT_LT(matmul_tolerance(100, kF16, kF16).magnitude,
            matmul_tolerance(100, kF16, kF16, {kF32, 4}).magnitude);
}

TEST(MatmulToleranceTest, RefusesWhatHasNoBound) {
  EXPECT_THROW(matmul_tolerance(-1, kF16, kF16), std::invalid_argument);
  EXPECT_THROW(matmul_tolerance(1, ElementType::kInt32, kF16), std::invalid_argument);
  EXPECT_THROW(matmul_tolerance(1, kF16, ElementType::kInt32), std::invalid_argument);
  EXPECT_THROW(matmul_tolerance(1, kF16, kF16, {ElementType::kInt32, 2}), std::invalid_argument);
  EXPECT_THROW(matmul_tolerance(1, kF16, kF16, {kF16, 0}), std::invalid_argument);
  EXPECT_NO_THROW(matmul_tolerance((1 << 22) - 1, kF16, kF16));
  EXPECT_THROW(matmul_tolerance(1 << 22, kF16, kF16), UsageError);
  EXPECT_THROW(matmul_tolerance(1, kBf16, kF16, {kBf16, 128}), UsageError);
}

template <typename T>
class ToleranceTest : public testing::Test {};
TYPED_TEST_SUITE(ToleranceTest, FloatingTypes, TypeNames);

TYPED_TEST(ToleranceTest, RightResultsPassAndWrongOnesDoNot) {
  using T = TypeParam;
  for (const MatmulShape shape : {MatmulShape{5, 7, 1}, {33, 40, 17}, {31, 20, 2000}}) {
    const Problem<T> problem(shape);
    const Tolerance tolerance = matmul_tolerance(shape.k, type_of<T>(), type_of<T>());
    const std::vector<T> c = problem.template computed<T>();
    const auto compare = [&](const std::vector<T>& actual) {
      return compare_within<T>(problem.exact, actual, problem.whole(), tolerance, problem.norms);
    };
    EXPECT_EQ(describe(compare(c)), describe(Verification{shape.m * shape.n, 0, {}}));
    EXPECT_TRUE(compare_within<float>(problem.exact, problem.template computed<float>(), problem.whole(),
                                      matmul_tolerance(shape.k, type_of<T>(), kF32), problem.norms)
                    .ok());
    for (std::size_t i = 0; i < c.size(); i += 17) {
      std::vector<T> wrong = c;
      const double bound = tolerance.magnitude * problem.norms.a_rows[i / static_cast<std::size_t>(shape.n)] *
                               problem.norms.b_columns[i % static_cast<std::size_t>(shape.n)] +
                           tolerance.value * std::abs(problem.exact[i]);
      // Just outside, even after rounding to T.
      const double outside =
          (std::abs(problem.exact[i]) + 1.01 * bound) * (1 + 2 * tolerance.value) + 0x1p-23;
      wrong[i] = from_double<T>(std::copysign(outside, problem.exact[i]));
      const Verification verification = compare(wrong);
      ASSERT_EQ(verification.mismatches, 1) << i;
      EXPECT_EQ(verification.first[0].row, static_cast<std::int64_t>(i) / shape.n);
      EXPECT_EQ(verification.first[0].column, static_cast<std::int64_t>(i) % shape.n);
      for (const double bad : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
        wrong[i] = from_double<T>(bad);
        ASSERT_EQ(compare(wrong).mismatches, 1) << bad;
      }
    }
    std::vector<T> corrupted = c;
    corrupt_one_element<T>(corrupted);
    EXPECT_EQ(compare(corrupted).mismatches, 1);
  }
}

// The effect of a forgotten tile of K: some elements lack 64 of 512 terms.
TYPED_TEST(ToleranceTest, AMissingTileIsNoticed) {
  using T = TypeParam;
  const Problem<T> problem({32, 32, 512});
  std::vector<T> a = problem.a;
  for (std::size_t k = 128; k < 192; ++k) a[3 * 512 + k] = from_float<T>(0);
  std::vector<T> wrong(problem.exact.size());
  reference_matmul<T>(problem.shape, a, problem.b, wrong);
  const Verification verification =
      compare_within<T>(problem.exact, wrong, problem.whole(),
                        matmul_tolerance(512, type_of<T>(), type_of<T>()), problem.norms);
  EXPECT_GT(verification.mismatches, 24);  // nearly all of row 3
  EXPECT_LE(verification.mismatches, 32);
  for (const Mismatch& mismatch : verification.first) EXPECT_EQ(mismatch.row, 3);
}

TYPED_TEST(ToleranceTest, PartialSumsInANarrowTypeNeedTheirTolerance) {
  using T = TypeParam;
  const Problem<T> problem({40, 40, 256});
  const int partials = 8;
  const std::vector<T> c = problem.template computed<T>(partials);
  const auto mismatches = [&](Accumulation accumulation) {
    return compare_within<T>(problem.exact, c, problem.whole(),
                             matmul_tolerance(256, type_of<T>(), type_of<T>(), accumulation), problem.norms)
        .mismatches;
  };
  EXPECT_EQ(mismatches({type_of<T>(), partials}), 0);
  if constexpr (SixteenBit<T>) {
    EXPECT_GT(mismatches({}), 0);
  }
}

// Two right results, at opposite ends of the tolerance.
TYPED_TEST(ToleranceTest, TwoResultsMayDifferByTwiceAsMuch) {
  using T = TypeParam;
  const MatmulShape shape = {20, 30, 300};
  const Problem<T> problem(shape);
  const Tolerance tolerance = matmul_tolerance(shape.k, type_of<T>(), type_of<T>());
  std::vector<T> low;
  std::vector<T> high;
  for (std::size_t i = 0; i < problem.exact.size(); ++i) {
    const double bound =
        tolerance.magnitude * problem.norms.a_rows[i / 30] * problem.norms.b_columns[i % 30] +
        tolerance.value * std::abs(problem.exact[i]);
    // Rounded toward the exact value, so that the result stays within the tolerance.
    const auto inside = [&](double value) {
      T element = from_double<T>(value);
      for (double x = value; std::abs(value_of(element) - problem.exact[i]) > bound;) {
        x += (problem.exact[i] - x) / 64;
        element = from_double<T>(x);
      }
      return element;
    };
    low.push_back(inside(problem.exact[i] - bound));
    high.push_back(inside(problem.exact[i] + bound));
  }
  const auto within = [&](std::span<const T> one, std::span<const T> other, Tolerance t) {
    return compare_within<T>(one, other, problem.whole(), t, problem.norms).ok();
  };
  EXPECT_TRUE(compare_within<T>(problem.exact, low, problem.whole(), tolerance, problem.norms).ok());
  EXPECT_TRUE(compare_within<T>(problem.exact, high, problem.whole(), tolerance, problem.norms).ok());
  EXPECT_TRUE(within(low, high, between_two_results(tolerance)));
  EXPECT_TRUE(within(high, low, between_two_results(tolerance)));
  EXPECT_FALSE(within(low, high, tolerance));
}

TYPED_TEST(ToleranceTest, NamesThePlaceInTheWholeMatrix) {
  using T = TypeParam;
  const Problem<T> problem({4, 6, 5});
  std::vector<T> c = problem.template computed<T>();
  c[7] = from_float<T>(1000);
  const Verification verification =
      compare_within<T>(problem.exact, c, Shard{{8, 12}, {6, 12}, 12, 3},
                        matmul_tolerance(5, type_of<T>(), type_of<T>()), problem.norms);
  ASSERT_EQ(verification.mismatches, 1);
  EXPECT_EQ(verification.first[0].rank, 3);
  EXPECT_EQ(verification.first[0].row, 9);
  EXPECT_EQ(verification.first[0].column, 7);
}

TYPED_TEST(ToleranceTest, RefusesWhatCannotBeCompared) {
  using T = TypeParam;
  const Problem<T> problem({2, 3, 4});
  const std::vector<T> c = problem.template computed<T>();
  const Tolerance tolerance = matmul_tolerance(4, type_of<T>(), type_of<T>());
  const auto compare = [&](std::vector<double> expected, const Shard& shard, const MatmulNorms& norms) {
    return compare_within<T>(expected, c, shard, tolerance, norms);
  };
  EXPECT_NO_THROW(compare(problem.exact, problem.whole(), problem.norms));
  EXPECT_THROW(compare(problem.exact, whole_matrix(3, 2), problem.norms), std::invalid_argument);
  EXPECT_THROW(compare(problem.exact, whole_matrix(2, 4), problem.norms), std::invalid_argument);
  EXPECT_THROW(compare(problem.exact, problem.whole(), {}), std::invalid_argument);
  for (const double bad : {std::nan(""), HUGE_VAL}) {
    std::vector<double> expected = problem.exact;
    expected[5] = bad;
    EXPECT_THROW(compare(expected, problem.whole(), problem.norms), std::invalid_argument);
  }
  EXPECT_THROW(matmul_norms<T>({2, 3, 5}, problem.a, problem.b), std::invalid_argument);
}

TYPED_TEST(ToleranceTest, AFixedTolerance) {
  using T = TypeParam;
  const std::vector<double> expected = {1, 2, 3, 4};
  const std::vector<T> actual = {from_float<T>(1.5F), from_float<T>(2), from_float<T>(2.5F),
                                 from_float<T>(5)};
  EXPECT_TRUE(compare_within<T>(expected, actual, 2, 1.0).ok());
  const Verification verification = compare_within<T>(expected, actual, 2, 0.5);
  ASSERT_EQ(verification.mismatches, 1);
  EXPECT_EQ(verification.first[0].row, 1);
  EXPECT_EQ(verification.first[0].column, 1);
  EXPECT_EQ(compare_within<T>(expected, actual, 2, std::nan("")).mismatches, 4);
}

TYPED_TEST(ToleranceTest, Norms) {
  using T = TypeParam;
  const std::vector<T> a = {from_float<T>(3), from_float<T>(-4), from_float<T>(0), from_float<T>(-2)};
  const std::vector<T> b = {from_float<T>(6), from_float<T>(1), from_float<T>(8), from_float<T>(0)};
  const MatmulNorms norms = matmul_norms<T>({2, 2, 2}, a, b);
  EXPECT_EQ(norms.a_rows, (std::vector<double>{5, 2}));
  EXPECT_EQ(norms.b_columns, (std::vector<double>{10, 1}));
}

}  // namespace
}  // namespace overlap
