// Verification of all element types, and of shards; verify_test.cpp covers what chapter 01 uses.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "element_types.hpp"
#include "overlap/data/data.hpp"
#include "overlap/data/verify.hpp"

namespace overlap {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

template <typename T>
std::vector<T> elements(const std::vector<double>& values) {
  std::vector<T> out;
  for (const double value : values) out.push_back(element<T>(value));
  return out;
}

template <typename T>
class VerifyTest : public testing::Test {};
TYPED_TEST_SUITE(VerifyTest, ElementTypes, TypeNames);

// Sizes on both sides of the reference's blocks (4 rows, 1024 rows, 64 of K, 256 of N), and of one and two
// threads.
TYPED_TEST(VerifyTest, ReferenceEqualsThreeLoopsOnExactData) {
  using T = TypeParam;
  const MatmulShape shapes[] = {{1, 1, 1},     {1, 5, 3},     {7, 1, 2},       {3, 2, 65},    {17, 33, 63},
                                {2, 1025, 5},  {5, 256, 64},  {5, 255, 67},    {3, 513, 130}, {33, 31, 129},
                                {2060, 3, 70}, {9, 257, 700}, {2100, 20, 1500}};
  for (const MatmulShape shape : shapes) {
    std::vector<T> a(static_cast<std::size_t>(shape.m * shape.k));
    std::vector<T> b(static_cast<std::size_t>(shape.k * shape.n));
    fill_sparse_signs<T>(a, whole_matrix(shape.m, shape.k), 1);
    fill_ternary<T>(b, whole_matrix(shape.k, shape.n), 2);
    std::vector<double> a_values;
    std::vector<double> b_values;
    for (const T x : a) a_values.push_back(value_of(x));
    for (const T x : b) b_values.push_back(value_of(x));
    std::vector<double> sums(static_cast<std::size_t>(shape.m * shape.n), 0);
    for (std::int64_t i = 0; i < shape.m; ++i) {
      for (std::int64_t k = 0; k < shape.k; ++k) {
        for (std::int64_t j = 0; j < shape.n; ++j) {
          sums[static_cast<std::size_t>(i * shape.n + j)] +=
              a_values[static_cast<std::size_t>(i * shape.k + k)] *
              b_values[static_cast<std::size_t>(k * shape.n + j)];
        }
      }
    }
    std::vector<T> c(sums.size());
    poison<T>(c);
    reference_matmul<T>(shape, a, b, c);
    for (std::size_t i = 0; i < c.size(); ++i) {
      ASSERT_EQ(value_of(c[i]), sums[i]) << shape.m << " x " << shape.n << " x " << shape.k << ", " << i;
    }
    if constexpr (Floating<T>) {
      std::vector<float> c_float(c.size(), -1);
      reference_matmul<T, float>(shape, a, b, c_float);
      std::vector<double> c_double(c.size(), -1);
      reference_matmul<T, double>(shape, a, b, c_double);
      for (std::size_t i = 0; i < c.size(); ++i) {
        ASSERT_EQ(c_float[i], sums[i]);
        ASSERT_EQ(c_double[i], sums[i]);
      }
    }
  }
}

TYPED_TEST(VerifyTest, ReferenceOfNothing) {
  using T = TypeParam;
  std::vector<T> c = elements<T>({1, 2, 3, 4});
  reference_matmul<T>({2, 2, 0}, {}, {}, c);
  for (const T sum : c) EXPECT_EQ(value_of(sum), 0);
  const std::vector<T> six(6);
  EXPECT_NO_THROW((reference_matmul<T>({0, 3, 2}, {}, six, {})));
  EXPECT_NO_THROW((reference_matmul<T>({3, 0, 2}, six, {}, {})));
  EXPECT_THROW((reference_matmul<T>({2, 2, 2}, six, c, c)), std::invalid_argument);
  EXPECT_THROW((reference_matmul<T>({2, 2, 3}, six, c, c)), std::invalid_argument);
  EXPECT_THROW((reference_matmul<T>({2, 3, 2}, c, six, c)), std::invalid_argument);
}

TYPED_TEST(VerifyTest, EveryWrongElementIsFoundInItsPlace) {
  using T = TypeParam;
  const std::vector<T> expected = elements<T>({1, 0, -1, 5, 6, -7});
  EXPECT_TRUE(compare_matrices<T>(expected, expected, 3).ok());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    std::vector<T> actual = expected;
    actual[i] = element<T>(value_of(expected[i]) + 1);
    const Verification verification = compare_matrices<T>(expected, actual, 3);
    ASSERT_EQ(verification.mismatches, 1);
    EXPECT_EQ(verification.elements, 6);
    EXPECT_EQ(verification.first[0].row, static_cast<std::int64_t>(i / 3));
    EXPECT_EQ(verification.first[0].column, static_cast<std::int64_t>(i % 3));
    EXPECT_EQ(verification.first[0].expected, value_of(expected[i]));
    EXPECT_EQ(verification.first[0].actual, value_of(expected[i]) + 1);
    EXPECT_EQ(verification.first[0].rank, -1);
  }
  EXPECT_THROW(compare_matrices<T>(expected, std::span(expected).first(3), 3), std::invalid_argument);
  EXPECT_THROW(compare_matrices<T>(expected, expected, 4), std::invalid_argument);
  EXPECT_THROW(compare_matrices<T>(expected, expected, 0), std::invalid_argument);
}

TYPED_TEST(VerifyTest, WhatIsNeverWrittenNeverPasses) {
  using T = TypeParam;
  std::vector<T> out(100);
  poison<T>(out);
  const std::vector<T> zeros(100, element<T>(0));
  EXPECT_EQ(compare_matrices<T>(zeros, out, 10).mismatches, 100);
  const std::string text = describe(compare_matrices<T>(zeros, out, 10));
  EXPECT_NE(text.find("never written"), std::string::npos) << text;
}

TYPED_TEST(VerifyTest, ACorruptedElementIsNoticed) {
  using T = TypeParam;
  EXPECT_NO_THROW(corrupt_one_element<T>({}));
  std::vector<double> values = {0, 1, -1, 2048, -2048};
  if constexpr (Floating<T>) values.insert(values.end(), {32768, -32768, 65280});
  if constexpr (std::same_as<T, float>) values.insert(values.end(), {0x1p100, -0x1p120, 1e-30});
  for (const double value : values) {
    for (const std::size_t size : {1U, 2U, 99U}) {
      const std::vector<T> before(size, element<T>(value));
      std::vector<T> after = before;
      corrupt_one_element<T>(after);
      const Verification verification = compare_matrices<T>(before, after, 1);
      ASSERT_EQ(verification.mismatches, 1) << value;
      if constexpr (Floating<T>) {  // more than any tolerance of a result of that size
        EXPECT_GT(std::abs(verification.first[0].actual - value), 30000);
        EXPECT_TRUE(std::isfinite(verification.first[0].actual));
      }
    }
  }
}

TYPED_TEST(VerifyTest, AMismatchNamesItsRankAndShard) {
  using T = TypeParam;
  const Shard shard = {{128, 130}, {3, 6}, 9, 2};
  const std::vector<T> expected = elements<T>({1, 2, 3, 4, 5, 6});
  std::vector<T> actual = expected;
  actual[4] = element<T>(7);
  const Verification verification = compare_matrices<T>(expected, actual, shard);
  ASSERT_EQ(verification.mismatches, 1);
  EXPECT_EQ(verification.first[0].row, 129);
  EXPECT_EQ(verification.first[0].column, 4);
  EXPECT_EQ(verification.first[0].rank, 2);
  EXPECT_EQ(describe(verification),
            "1 of 6 elements are wrong; [rank 2, row 129, column 4; shard: rows 128 to 129, columns 3 to 5]: "
            "expected 5, found 7");
  EXPECT_THROW(compare_matrices<T>(expected, actual, Shard{{0, 2}, {0, 2}, 2, 0}), std::invalid_argument);
  const std::vector<T> none;
  EXPECT_TRUE(compare_matrices<T>(none, none, Shard{{5, 5}, {0, 9}, 9, 7}).ok());  // a rank without rows
}

template <typename T>
class VerifyFloatingTest : public testing::Test {};
TYPED_TEST_SUITE(VerifyFloatingTest, FloatingTypes, TypeNames);

TYPED_TEST(VerifyFloatingTest, NanAndInfinityNeverPass) {
  using T = TypeParam;
  const std::vector<T> expected = elements<T>({1, 2});
  for (const double bad : {kNan, -kNan, HUGE_VAL, -HUGE_VAL}) {
    EXPECT_EQ(compare_matrices<T>(expected, elements<T>({1, bad}), 2).mismatches, 1) << bad;
  }
  if constexpr (SixteenBit<T>) {  // all patterns of NaN
    for (int bits = 0; bits < 65536; ++bits) {
      const std::vector<T> one = {from_bits<T>(static_cast<std::uint16_t>(bits))};
      if (!std::isnan(value_of(one[0]))) {
        ASSERT_TRUE(compare_matrices<T>(one, one, 1).ok()) << bits;
      } else {
        ASSERT_EQ(compare_matrices<T>(elements<T>({0}), one, 1).mismatches, 1) << bits;
      }
    }
  }
}

TYPED_TEST(VerifyFloatingTest, AnExpectedNanIsTheCallersError) {
  using T = TypeParam;
  const std::vector<T> nan = elements<T>({1, 2, 3, kNan});
  try {
    compare_matrices<T>(nan, nan, 2);
    FAIL() << "no exception";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "compare_matrices: NaN is expected in row 1, column 1");
  }
}

TYPED_TEST(VerifyFloatingTest, BothZerosAreEqual) {
  using T = TypeParam;
  EXPECT_TRUE(compare_matrices<T>(elements<T>({0.0, -0.0}), elements<T>({-0.0, 0.0}), 2).ok());
  if constexpr (SixteenBit<T>) {  // no other two patterns are equal
    const std::vector<T> zero = elements<T>({0});
    EXPECT_FALSE(compare_matrices<T>(zero, std::vector<T>{from_bits<T>(1)}, 1).ok());
    EXPECT_FALSE(compare_matrices<T>(zero, std::vector<T>{from_bits<T>(0x8001)}, 1).ok());
    EXPECT_FALSE(compare_matrices<T>(std::vector<T>{from_bits<T>(0x8001)}, zero, 1).ok());
  }
}

// Like 2^24 + 1: a sum in f32 would lose the 1.
TEST(ReferenceMatmulTest, SumsAreMadeInDouble) {
  const std::vector<float> a = {16777216, 1, -16777216};
  const std::vector<float> b = {1, 1, 1};
  std::vector<float> c(1);
  reference_matmul<float>({1, 1, 3}, a, b, c);
  EXPECT_EQ(c[0], 1);
}

// A double just above the midpoint of two halves, whose float is the midpoint.
TEST(ReferenceMatmulTest, SumsAreRoundedOnce) {
  const std::vector<__half> a = elements<__half>({1, 0x1p-11, 0x1p-14, 0});
  const std::vector<__half> b = elements<__half>({1, 1, 0x1p-24, 1});
  std::vector<__half> c(1);
  reference_matmul<__half>({1, 1, 4}, a, b, c);
  EXPECT_EQ(value_of(c[0]), 1 + 0x1p-10);
}

TEST(VerificationTest, RanksAddUp) {
  const std::vector<int> expected(20, 1);
  const std::vector<int> wrong(20, 2);
  Verification all;
  for (int rank = 0; rank < 4; ++rank) {
    const Shard shard = row_shard(40, 2, 4, rank);
    all += compare_matrices<int>(expected, rank % 2 == 0 ? expected : wrong, shard);
  }
  EXPECT_EQ(all.elements, 80);
  EXPECT_EQ(all.mismatches, 40);
  ASSERT_EQ(all.first.size(), kMismatchesShown);
  EXPECT_EQ(all.first[0].rank, 1);
  EXPECT_EQ(all.first[0].row, 10);
  // The first rank lists one mismatch, so four of the second's fit.
  Verification few =
      compare_matrices<int>(std::vector<int>{1, 1}, std::vector<int>{1, 2}, row_shard(4, 1, 2, 0));
  few += compare_matrices<int>(expected, wrong, Shard{{2, 22}, {0, 1}, 1, 1});
  ASSERT_EQ(few.first.size(), kMismatchesShown);
  EXPECT_EQ(few.first[0].rank, 0);
  EXPECT_EQ(few.first[1].rank, 1);
  EXPECT_EQ(few.first[4].row, 5);
}

}  // namespace
}  // namespace overlap
