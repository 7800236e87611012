#include "overlap/data/verify.hpp"

#include <gtest/gtest.h>

#include <climits>
#include <stdexcept>

#include "overlap/gpu/error.hpp"

namespace overlap {
namespace {

std::vector<int> integers(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  std::vector<int> values(static_cast<std::size_t>(rows * columns));
  fill_integers(values, -50, 50, seed);
  return values;
}

std::vector<int> naive_matmul(MatmulShape shape, const std::vector<int>& a, const std::vector<int>& b) {
  std::vector<int> c;
  for (std::int64_t i = 0; i < shape.m; ++i) {
    for (std::int64_t j = 0; j < shape.n; ++j) {
      int sum = 0;
      for (std::int64_t p = 0; p < shape.k; ++p) {
        sum += a[static_cast<std::size_t>(i * shape.k + p)] * b[static_cast<std::size_t>(p * shape.n + j)];
      }
      c.push_back(sum);
    }
  }
  return c;
}

// Sizes on both sides of the reference's blocks (64 of K, 1024 of N, four rows of B) and of thread counts.
TEST(ReferenceMatmulTest, EqualsThreeLoops) {
  const MatmulShape shapes[] = {{1, 1, 1},    {1, 5, 3},     {7, 1, 2},     {3, 2, 65},     {17, 33, 63},
                                {2, 1025, 5}, {5, 1024, 64}, {5, 1023, 67}, {3, 2049, 130}, {33, 31, 129}};
  for (const MatmulShape shape : shapes) {
    const std::vector<int> a = integers(shape.m, shape.k, 1);
    const std::vector<int> b = integers(shape.k, shape.n, 2);
    std::vector<int> c(static_cast<std::size_t>(shape.m * shape.n));
    poison(c);
    reference_matmul(shape, a, b, c);
    EXPECT_EQ(c, naive_matmul(shape, a, b)) << shape.m << " x " << shape.n << " x " << shape.k;
  }
}

TEST(ReferenceMatmulTest, WrapsAround) {
  const std::vector<int> a = {INT_MAX, INT_MAX, INT_MIN, 1, 65536};
  const std::vector<int> b = {2, 3, 1, -1, 65536};
  std::vector<int> c(1);
  reference_matmul({1, 1, 5}, a, b, c);
  // Modulo 2^32: -2 + (2^31 - 3) + 2^31 - 1 + 0 = -6.
  EXPECT_EQ(c[0], -6);
}

TEST(ReferenceMatmulTest, EmptySizes) {
  std::vector<int> c = {1, 2, 3, 4};
  reference_matmul({2, 2, 0}, {}, {}, c);  // an empty sum is 0
  EXPECT_EQ(c, std::vector<int>(4, 0));
  EXPECT_NO_THROW(reference_matmul({0, 3, 2}, {}, integers(2, 3, 1), {}));
  EXPECT_NO_THROW(reference_matmul({3, 0, 2}, integers(3, 2, 1), {}, {}));
}

TEST(ReferenceMatmulTest, RefusesWrongSizes) {
  std::vector<int> c(4);
  const std::vector<int> four(4);
  const std::vector<int> five(5);
  EXPECT_THROW(reference_matmul({2, 2, 2}, five, four, c), std::invalid_argument);
  EXPECT_THROW(reference_matmul({2, 2, 2}, four, five, c), std::invalid_argument);
  EXPECT_THROW(reference_matmul({2, 3, 2}, four, std::vector<int>(6), c), std::invalid_argument);
  EXPECT_THROW(reference_matmul({-2, -2, -2}, four, four, c), std::invalid_argument);
}

TEST(CompareMatricesTest, EqualOnesPass) {
  const std::vector<int> values = integers(10, 10, 1);
  const Verification verification = compare_matrices(values, values, 10);
  EXPECT_TRUE(verification.ok());
  EXPECT_EQ(verification.elements, 100);
  EXPECT_EQ(verification.mismatches, 0);
  EXPECT_EQ(describe(verification), "all 100 elements are right");
  EXPECT_NO_THROW(require_right(verification, "C"));
}

TEST(CompareMatricesTest, EveryWrongElementIsFoundInItsPlace) {
  const std::vector<int> expected = integers(7, 3, 1);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    std::vector<int> actual = expected;
    actual[i] += 1;
    const Verification verification = compare_matrices(expected, actual, 3);
    EXPECT_FALSE(verification.ok());
    ASSERT_EQ(verification.mismatches, 1);
    ASSERT_EQ(verification.first.size(), 1U);
    EXPECT_EQ(verification.first[0].row, static_cast<std::int64_t>(i / 3));
    EXPECT_EQ(verification.first[0].column, static_cast<std::int64_t>(i % 3));
    EXPECT_EQ(verification.first[0].expected, expected[i]);
    EXPECT_EQ(verification.first[0].actual, expected[i] + 1);
  }
}

TEST(CompareMatricesTest, CountsAllAndShowsFive) {
  const std::vector<int> expected(20, 1);
  std::vector<int> actual(20, 2);
  actual[0] = 1;
  const Verification verification = compare_matrices(expected, actual, 4);
  EXPECT_EQ(verification.mismatches, 19);
  ASSERT_EQ(verification.first.size(), 5U);
  EXPECT_EQ(verification.first[0].column, 1);
  EXPECT_EQ(verification.first[4].row, 1);
  EXPECT_EQ(verification.first[4].column, 1);
  EXPECT_TRUE(describe(verification).ends_with("; ..."));
}

TEST(CompareMatricesTest, DifferentSizesNeverPass) {
  const std::vector<int> four(4);
  EXPECT_THROW(compare_matrices(four, {}, 2), std::invalid_argument);
  EXPECT_THROW(compare_matrices({}, four, 2), std::invalid_argument);
  EXPECT_THROW(compare_matrices(four, std::span(four).first(3), 1), std::invalid_argument);
  EXPECT_THROW(compare_matrices(four, four, 3), std::invalid_argument);
  EXPECT_THROW(compare_matrices(four, four, 0), std::invalid_argument);
  // A share without rows is right.
  EXPECT_TRUE(compare_matrices({}, {}, 2).ok());
}

TEST(DescribeTest, NamesPlaceAndValues) {
  const std::vector<int> expected = {1, 2, 3, 1234567891};
  const std::vector<int> actual = {1, 5, 3, kPoison};
  const Verification verification = compare_matrices(expected, actual, 2);
  EXPECT_EQ(describe(verification),
            "2 of 4 elements are wrong; [row 0, column 1]: expected 2, found 5; "
            "[row 1, column 1]: expected 1234567891, found 2052741722 (never written)");
  try {
    require_right(verification, "C on 2 GPUs");
    FAIL() << "no exception";
  } catch (const WrongResult& wrong) {
    EXPECT_TRUE(std::string(wrong.what()).starts_with("C on 2 GPUs: 2 of 4 elements are wrong"));
  }
}

TEST(PoisonTest, FillsAll) {
  std::vector<int> values(5);
  poison(values);
  EXPECT_EQ(values, std::vector<int>(5, kPoison));
  EXPECT_NO_THROW(poison({}));
}

TEST(CorruptTest, ChangesExactlyOneElement) {
  for (const std::size_t size : {1U, 2U, 99U}) {
    const std::vector<int> before(size, 7);
    std::vector<int> after = before;
    corrupt_one_element(after);
    EXPECT_EQ(compare_matrices(before, after, 1).mismatches, 1);
  }
  EXPECT_NO_THROW(corrupt_one_element({}));
}

}  // namespace
}  // namespace overlap
