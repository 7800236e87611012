#include "overlap/data/freivalds.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

#include "element_types.hpp"
#include "overlap/data/data.hpp"
#include "overlap/data/random.hpp"
#include "overlap/gpu/error.hpp"

namespace overlap {
namespace {

template <typename T>
struct Product {
  explicit Product(MatmulShape s, std::uint64_t seed = 1) : shape(s) {
    a.resize(static_cast<std::size_t>(s.m * s.k));
    b.resize(static_cast<std::size_t>(s.k * s.n));
    c.resize(static_cast<std::size_t>(s.m * s.n));
    fill_sparse_signs<T>(a, whole_matrix(s.m, s.k), seed);
    fill_ternary<T>(b, whole_matrix(s.k, s.n), seed + 1);
    reference_matmul<T>(s, a, b, c);
  }
  Verification check(const std::vector<T>& result, std::uint64_t seed = 7, int vectors = 1) const {
    return check_product<T>(shape, a, b, result, whole_matrix(shape.m, shape.n), seed, vectors);
  }

  MatmulShape shape;
  std::vector<T> a, b, c;
};

template <typename T>
class FreivaldsTest : public testing::Test {};
TYPED_TEST_SUITE(FreivaldsTest, ElementTypes, TypeNames);

TYPED_TEST(FreivaldsTest, RightProductsPass) {
  using T = TypeParam;
  for (const MatmulShape shape : {MatmulShape{1, 1, 1}, {5, 3, 7}, {100, 70, 3000}, {3, 200, 1}}) {
    const Product<T> product(shape);
    for (const std::uint64_t seed : {1, 2, 3}) {
      const Verification verification = product.check(product.c, seed, 2);
      EXPECT_TRUE(verification.ok()) << describe(verification);
      EXPECT_EQ(verification.elements, shape.m * shape.n);
      EXPECT_EQ(verification.freivalds_vectors, 2);
      EXPECT_EQ(verification.wrong_rows, 0);
    }
  }
}

TYPED_TEST(FreivaldsTest, SaysHowSureItIs) {
  using T = TypeParam;
  const Product<T> product({2, 3, 4});
  EXPECT_EQ(describe(product.check(product.c)),
            "all 6 elements are right (Freivalds' check: a wrong row is missed with a probability of at most "
            "2^-31)");
  EXPECT_TRUE(describe(product.check(product.c, 1, 3)).ends_with("2^-93)"));
}

// A single wrong element is always found, with certainty.
TYPED_TEST(FreivaldsTest, EverySingleWrongElementIsFound) {
  using T = TypeParam;
  const MatmulShape shape = {40, 30, 500};
  const Product<T> product(shape);
  std::mt19937 random(5);
  for (int trial = 0; trial < 500; ++trial) {
    std::vector<T> wrong = product.c;
    const std::size_t place = random() % wrong.size();
    const double right = value_of(wrong[place]);
    const double off = right + (trial % 2 == 0 ? 1 : -1);
    wrong[place] = element<T>(off);
    const Verification verification = product.check(wrong, random());
    ASSERT_EQ(verification.mismatches, 1);
    ASSERT_EQ(verification.wrong_rows, 1);
    ASSERT_EQ(verification.first.size(), 1U);
    EXPECT_EQ(verification.first[0].row, static_cast<std::int64_t>(place) / shape.n);
    EXPECT_EQ(verification.first[0].column, static_cast<std::int64_t>(place) % shape.n);
    EXPECT_EQ(verification.first[0].expected, right);
    EXPECT_EQ(verification.first[0].actual, off);
  }
}

// Errors that cancel in the sum of a row, such as two exchanged elements: a vector of ones would miss them.
TYPED_TEST(FreivaldsTest, ErrorsThatCancelAreFound) {
  using T = TypeParam;
  const MatmulShape shape = {20, 64, 300};
  const Product<T> product(shape);
  std::mt19937 random(6);
  int swaps = 0;
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<T> wrong = product.c;
    const std::size_t row = random() % 20 * 64;
    const std::size_t one = row + random() % 64;
    const std::size_t other = row + random() % 64;
    std::swap(wrong[one], wrong[other]);
    if (value_of(wrong[one]) == value_of(wrong[other])) continue;
    ++swaps;
    ASSERT_EQ(product.check(wrong, random()).mismatches, 2);
  }
  EXPECT_GT(swaps, 200);
}

/// A row of errors 1, 0 and -1 that the first vector of this seed misses: the difference of two sets of
/// columns with equal sums, found among a million sets.
std::vector<int> unnoticed_errors(std::int64_t columns, std::uint64_t seed) {
  const RandomBits bits(seed, kFreivalds);
  std::vector<std::int64_t> x;
  for (std::int64_t j = 0; j < columns; ++j)
    x.push_back(1 + static_cast<std::int64_t>(below(std::uint64_t{1} << 31, bits.at(j))));
  std::mt19937_64 random(8);
  std::vector<std::pair<std::int64_t, std::uint64_t>> sums(1 << 20);
  for (auto& [sum, set] : sums) {
    set = random();
    for (std::int64_t j = 0; j < columns; ++j) sum += (set >> j & 1) != 0 ? x[j] : 0;
  }
  std::sort(sums.begin(), sums.end());
  const auto equal = std::adjacent_find(sums.begin(), sums.end(), [](const auto& one, const auto& other) {
    return one.first == other.first && one.second != other.second;
  });
  if (equal == sums.end()) return {};
  std::vector<int> errors;
  for (std::int64_t j = 0; j < columns; ++j)
    errors.push_back(static_cast<int>(equal->second >> j & 1) -
                     static_cast<int>((equal + 1)->second >> j & 1));
  return errors;
}

// An error that one vector misses is found by the second vector, or by another seed's.
TEST(FreivaldsVectorsTest, AreDifferentOnes) {
  constexpr std::uint64_t kSeed = 7;
  const Product<float> product({3, 64, 300});
  const std::vector<int> errors = unnoticed_errors(64, kSeed);
  ASSERT_EQ(errors.size(), 64U) << "none were found";
  std::vector<float> wrong = product.c;
  for (std::size_t j = 0; j < errors.size(); ++j) wrong[64 + j] += static_cast<float>(errors[j]);
  EXPECT_TRUE(product.check(wrong, kSeed, 1).ok()) << "the errors were to pass here";
  EXPECT_EQ(product.check(wrong, kSeed, 2).wrong_rows, 1);
  EXPECT_EQ(product.check(wrong, kSeed + 1, 1).wrong_rows, 1);
}

// 2^53 times a multiple of 2^11 is 0 modulo 2^64: such a value must not enter a sum.
TEST(FreivaldsVectorsTest, AreNotMultipliedWithWhatWouldWrapAround) {
  std::uint64_t seed = 0;
  while ((1 + below(std::uint64_t{1} << 31, RandomBits(seed, kFreivalds).at(0))) % 2048 != 0) ++seed;
  std::uint64_t data = 1;
  while (Product<float>({1, 1, 1}, data).c[0] != 0) ++data;
  const Product<float> zero({1, 1, 1}, data);
  EXPECT_TRUE(zero.check({0.0f}, seed).ok());
  EXPECT_EQ(zero.check({0x1p53f}, seed).wrong_rows, 1);
  EXPECT_EQ(zero.check({-0x1p53f}, seed).wrong_rows, 1);
}

TYPED_TEST(FreivaldsTest, WrongRowsAreCountedAndTheFirstOnesShown) {
  using T = TypeParam;
  const MatmulShape shape = {50, 4, 100};
  const Product<T> product(shape);
  std::vector<T> wrong = product.c;
  for (const std::size_t row : {9U, 11U, 30U, 49U}) {
    for (const std::size_t column : {1U, 3U}) {
      wrong[row * 4 + column] = element<T>(value_of(wrong[row * 4 + column]) + 2);
    }
  }
  const Verification verification = product.check(wrong);
  EXPECT_EQ(verification.wrong_rows, 4);
  EXPECT_EQ(verification.mismatches, 6);  // five mismatches need three rows
  ASSERT_EQ(verification.first.size(), kMismatchesShown);
  const std::int64_t rows[] = {9, 9, 11, 11, 30};
  const std::int64_t columns[] = {1, 3, 1, 3, 1};
  for (std::size_t i = 0; i < kMismatchesShown; ++i) {
    EXPECT_EQ(verification.first[i].row, rows[i]);
    EXPECT_EQ(verification.first[i].column, columns[i]);
  }
  EXPECT_TRUE(describe(verification).starts_with("at least 6 of 200 elements are wrong, in 4 rows; [row 9, "))
      << describe(verification);
}

// The rank holds all of A and its own columns of B; reported indices are those of the whole matrix.
TYPED_TEST(FreivaldsTest, EachRankChecksItsShard) {
  using T = TypeParam;
  const MatmulShape shape = {30, 50, 200};
  const Product<T> whole(shape);
  for (const int ranks : {1, 3, 8}) {
    Verification all;
    for (int rank = 0; rank < ranks; ++rank) {
      const Shard b_shard = column_shard(shape.k, shape.n, ranks, rank);
      const Shard c_shard = column_shard(shape.m, shape.n, ranks, rank);
      const MatmulShape part = {shape.m, c_shard.columns.size(), shape.k};
      std::vector<T> b(static_cast<std::size_t>(b_shard.elements()));
      fill_ternary<T>(b, b_shard, 2);
      std::vector<T> c;
      for (std::int64_t row = 0; row < shape.m; ++row) {
        const auto begin = whole.c.begin() + row * shape.n;
        c.insert(c.end(), begin + c_shard.columns.begin, begin + c_shard.columns.end);
      }
      if (rank == ranks - 1) c.back() = element<T>(value_of(c.back()) + 1);
      all += check_product<T>(part, whole.a, b, c, c_shard, 3);
    }
    EXPECT_EQ(all.elements, shape.m * shape.n);
    EXPECT_EQ(all.freivalds_vectors, 1);
    ASSERT_EQ(all.mismatches, 1);
    EXPECT_EQ(all.first[0].rank, ranks - 1);
    EXPECT_EQ(all.first[0].row, 29);
    EXPECT_EQ(all.first[0].column, 49);
  }
}

TYPED_TEST(FreivaldsTest, NothingIsRight) {
  using T = TypeParam;
  const std::vector<T> none;
  const std::vector<T> six(6);
  EXPECT_TRUE(check_product<T>({0, 3, 2}, none, six, none, whole_matrix(0, 3), 1).ok());
  EXPECT_TRUE(check_product<T>({3, 0, 2}, six, none, none, whole_matrix(3, 0), 1).ok());
  std::vector<T> c(6, element<T>(0));
  EXPECT_TRUE(check_product<T>({2, 3, 0}, none, none, c, whole_matrix(2, 3), 1).ok());
  c[4] = element<T>(1);
  EXPECT_EQ(check_product<T>({2, 3, 0}, none, none, c, whole_matrix(2, 3), 1).mismatches, 1);
}

TYPED_TEST(FreivaldsTest, RefusesSizesThatDoNotFit) {
  using T = TypeParam;
  const std::vector<T> six(6);
  const std::vector<T> four(4);
  EXPECT_NO_THROW(check_product<T>({2, 2, 3}, six, six, four, whole_matrix(2, 2), 1));
  EXPECT_THROW(check_product<T>({2, 2, 2}, six, four, four, whole_matrix(2, 2), 1), std::invalid_argument);
  EXPECT_THROW(check_product<T>({2, 2, 2}, four, six, four, whole_matrix(2, 2), 1), std::invalid_argument);
  EXPECT_THROW(check_product<T>({2, 2, 3}, six, six, six, whole_matrix(2, 2), 1), std::invalid_argument);
  EXPECT_THROW(check_product<T>({2, 2, 3}, six, six, four, whole_matrix(1, 4), 1), std::invalid_argument);
  EXPECT_THROW(check_product<T>({2, 2, 3}, six, six, four, whole_matrix(2, 2), 1, 0), std::invalid_argument);
}

template <typename T>
class FreivaldsFloatingTest : public testing::Test {};
TYPED_TEST_SUITE(FreivaldsFloatingTest, FloatingTypes, TypeNames);

TYPED_TEST(FreivaldsFloatingTest, WhatIsNoIntegerIsWrong) {
  using T = TypeParam;
  const Product<T> product({10, 10, 50});
  for (const double bad : {std::nan(""), HUGE_VAL, -HUGE_VAL, 0.5, -1.5, 65280.0}) {
    std::vector<T> wrong = product.c;
    wrong[37] = element<T>(bad);
    const Verification verification = product.check(wrong);
    ASSERT_EQ(verification.mismatches, 1) << bad;
    EXPECT_EQ(verification.first[0].row, 3);
    EXPECT_EQ(verification.first[0].column, 7);
  }
  std::vector<T> poisoned(product.c.size());
  poison<T>(poisoned);
  EXPECT_EQ(product.check(poisoned).wrong_rows, 10);
}

TYPED_TEST(FreivaldsFloatingTest, TheResultMayBeInF32) {
  using T = TypeParam;
  const Product<T> product({10, 10, 300});
  std::vector<float> c(product.c.size());
  reference_matmul<T, float>(product.shape, product.a, product.b, c);
  const auto check = [&] {
    return check_product<T, float>(product.shape, product.a, product.b, c, whole_matrix(10, 10), 1);
  };
  EXPECT_TRUE(check().ok());
  const float right = c[37];
  for (const float bad : {1e30F, -3e38F, right + 0.25F, right + 1}) {
    c[37] = bad;
    EXPECT_EQ(check().mismatches, 1) << bad;
  }
}

TYPED_TEST(FreivaldsFloatingTest, FactorsThatAreNoIntegersAreTheCallersError) {
  using T = TypeParam;
  for (const double bad : {0.5, std::nan(""), HUGE_VAL}) {
    Product<T> product({4, 5, 6});
    product.a[3] = element<T>(bad);
    EXPECT_THROW(product.check(product.c), std::invalid_argument);
    product.a[3] = element<T>(0);
    product.b[3] = element<T>(bad);
    EXPECT_THROW(product.check(product.c), std::invalid_argument);
  }
}

// (sum of a row of A) max|B| n must stay below 2^32.
TEST(FreivaldsBoundTest, IsExact) {
  const auto check = [](int a, int b, std::int64_t n) {
    const std::vector<int> a_row = {a, -a};
    std::vector<int> b_matrix(static_cast<std::size_t>(2 * n), b);
    std::fill(b_matrix.begin() + n, b_matrix.end(), -b);  // C = 2 a b, the largest possible
    std::vector<int> c(static_cast<std::size_t>(n));
    reference_matmul({1, n, 2}, a_row, b_matrix, c);
    return check_product<int>({1, n, 2}, a_row, b_matrix, c, whole_matrix(1, n), 1);
  };
  EXPECT_TRUE(check(32767, 32768, 2).ok());          // 65534 32768 2 = 2^32 - 131072
  EXPECT_THROW(check(32768, 32768, 2), UsageError);  // 2^32
  EXPECT_TRUE(check(512, 1, (1 << 22) - 1).ok());    // 2^32 - 1024
  EXPECT_THROW(check(512, 1, 1 << 22), UsageError);  // 2^32
  EXPECT_THROW(check(1, 2147483647, 100), UsageError);
  EXPECT_TRUE(check(2147483647, 0, 100).ok());
  // Sums of B x overflow even if A is 0.
  EXPECT_THROW(check(0, 2147483647, 100), UsageError);
}

}  // namespace
}  // namespace overlap
