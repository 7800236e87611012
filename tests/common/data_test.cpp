#include "overlap/data/data.hpp"
#include "overlap/gpu/error.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numbers>
#include <stdexcept>
#include <vector>

#include "element_types.hpp"

namespace overlap {
namespace {

template <typename T>
using Fill = std::function<void(std::span<T>, const Shard&)>;

template <typename T>
std::vector<T> filled(const Shard& shard, const Fill<T>& fill) {
  std::vector<T> out(static_cast<std::size_t>(shard.elements()));
  fill(out, shard);
  return out;
}

template <typename T>
std::vector<T> signs(const Shard& shard, std::uint64_t seed) {
  return filled<T>(shard, [&](std::span<T> out, const Shard& s) { fill_sparse_signs<T>(out, s, seed); });
}

template <typename T>
bool same_bits(const std::vector<T>& one, const std::vector<T>& other) {
  return one.size() == other.size() && std::memcmp(one.data(), other.data(), one.size() * sizeof(T)) == 0;
}

// Hashes all values to one number (splitmix64's mixer).
template <typename T>
std::uint64_t fingerprint(const std::vector<T>& values) {
  std::uint64_t hash = 0;
  for (const T value : values) {
    hash += static_cast<std::uint64_t>(static_cast<int>(value_of(value)) + 2) + 0x9E3779B97F4A7C15;
    hash = (hash ^ (hash >> 30)) * 0xBF58476D1CE4E5B9;
    hash = (hash ^ (hash >> 27)) * 0x94D049BB133111EB;
    hash ^= hash >> 31;
  }
  return hash;
}

template <typename T>
class DataTest : public testing::Test {
 protected:
  // Each shard must equal the same part of the whole matrix.
  static void expect_shards_of_the_whole(const Fill<T>& fill) {
    const std::int64_t rows = 61;
    const std::int64_t width = 3000;  // large enough for several threads
    const std::vector<T> whole = filled<T>(whole_matrix(rows, width), fill);
    std::vector<Shard> shards = {{{7, 20}, {100, 1300}, width},
                                 {{60, 61}, {2999, 3000}, width},
                                 {{0, 61}, {5, 6}, width},
                                 {{3, 3}, {0, 10}, width},
                                 {{3, 9}, {10, 10}, width}};
    for (const int ranks : {1, 3, 8}) {
      for (int rank = 0; rank < ranks; ++rank) {
        shards.push_back(row_shard(rows, width, ranks, rank));
        shards.push_back(column_shard(rows, width, ranks, rank));
      }
    }
    for (const Shard& shard : shards) {
      std::vector<T> expected;
      for (std::int64_t row = shard.rows.begin; row < shard.rows.end; ++row) {
        const auto begin = whole.begin() + row * width;
        expected.insert(expected.end(), begin + shard.columns.begin, begin + shard.columns.end);
      }
      EXPECT_TRUE(same_bits(filled<T>(shard, fill), expected)) << describe(shard);
    }
  }

  static void expect_refuses_what_does_not_fit(const Fill<T>& fill) {
    std::vector<T> six(6);
    EXPECT_NO_THROW(fill(six, {{0, 2}, {1, 4}, 5, 0}));
    EXPECT_THROW(fill(six, {{0, 2}, {0, 2}, 5, 0}), std::invalid_argument);
    EXPECT_THROW(fill(six, {{0, 2}, {3, 6}, 5, 0}), std::invalid_argument);
    EXPECT_THROW(fill(six, {{-1, 1}, {0, 3}, 5, 0}), std::invalid_argument);
    EXPECT_THROW(fill(six, {{2, 0}, {3, 0}, 5, 0}), std::invalid_argument);
  }
};
TYPED_TEST_SUITE(DataTest, ElementTypes, TypeNames);

TYPED_TEST(DataTest, SignsAreTheSameEverywhere) {
  using T = TypeParam;
  // Computed by a second implementation, in Python.
  if constexpr (std::same_as<T, __nv_bfloat16>) {
    EXPECT_EQ(fingerprint(signs<T>(whole_matrix(60, 3000), 5)), 0x6904b6d24dacccecU);
  } else {
    EXPECT_EQ(fingerprint(signs<T>(whole_matrix(9, 2500), 5)), 0x406c974fa86f652eU);
  }
  const std::vector<T> dense = signs<T>(whole_matrix(1, 8), 1);
  const double expected[] = {1, -1, -1, -1, -1, 1, -1, 1};
  ASSERT_EQ(dense.size(), std::size(expected));
  for (std::size_t i = 0; i < dense.size(); ++i) EXPECT_EQ(value_of(dense[i]), expected[i]) << i;
}

// Widths below, at and above the number of signs, and multiples of it.
TYPED_TEST(DataTest, EveryRowHasItsSigns) {
  using T = TypeParam;
  for (const std::int64_t width : {1, 5, 255, 256, 257, 300, 511, 2047, 2048, 2049, 4096, 7000}) {
    const std::int64_t rows = 33;
    const std::vector<T> a = signs<T>(whole_matrix(rows, width), 3);
    for (std::int64_t row = 0; row < rows; ++row) {
      std::int64_t count = 0;
      for (std::int64_t k = 0; k < width; ++k) {
        const double value = value_of(a[static_cast<std::size_t>(row * width + k)]);
        ASSERT_TRUE(value == 0 || value == 1 || value == -1) << value;
        count += value != 0;
      }
      ASSERT_EQ(count, std::min(width, signs_per_row<T>())) << "row " << row << " of width " << width;
    }
  }
  EXPECT_LE(signs_per_row<T>(), largest_integer<T>());
}

// If all rows together have at least K signs, every index of K has one.
TYPED_TEST(DataTest, EveryColumnIsUsed) {
  using T = TypeParam;
  const std::int64_t per_row = signs_per_row<T>();
  for (const std::int64_t width :
       {per_row / 2, per_row, per_row + 1, 3 * per_row - 1, 8 * per_row, 8 * per_row + 5, 12 * per_row}) {
    const std::int64_t rows = (width + per_row - 1) / per_row;
    for (const std::uint64_t seed : {1, 2, 3}) {
      const std::vector<T> a = signs<T>(whole_matrix(rows, width), seed);
      std::int64_t used = 0;
      for (std::int64_t k = 0; k < width; ++k) {
        bool column_used = false;
        for (std::int64_t row = 0; row < rows; ++row) {
          column_used |= value_of(a[static_cast<std::size_t>(row * width + k)]) != 0;
        }
        used += column_used;
      }
      EXPECT_EQ(used, width) << rows << " rows, seed " << seed;
    }
  }
}

TYPED_TEST(DataTest, PlacesAndSignsAreRandom) {
  using T = TypeParam;
  const std::int64_t cycle = 8;  // rows until a stratum's places are redrawn
  const std::int64_t width = cycle * signs_per_row<T>();
  const std::vector<T> a = signs<T>(whole_matrix(4 * cycle, width), 1);
  const auto value = [&](std::int64_t row, std::int64_t k) {
    return value_of(a[static_cast<std::size_t>(row * width + k)]);
  };
  // Two rows share a place in 1 of 8 strata, whether or not they are a whole cycle apart; for half of the
  // shared places the signs are equal.
  for (const std::int64_t other : {cycle, cycle + 3, 2 * cycle}) {
    std::int64_t shared = 0;
    std::int64_t equal = 0;
    for (std::int64_t row = 0; row < cycle; ++row) {
      for (std::int64_t k = 0; k < width; ++k) {
        const double product = value(row, k) * value(row + other, k);
        shared += product != 0;
        equal += product == 1;
      }
    }
    const auto expected = static_cast<double>(width) / cycle;
    EXPECT_NEAR(static_cast<double>(shared), expected, 6 * std::sqrt(expected)) << other << " rows apart";
    EXPECT_NEAR(static_cast<double>(equal), expected / 2, 6 * std::sqrt(expected)) << other << " rows apart";
  }
  EXPECT_FALSE(same_bits(a, signs<T>(whole_matrix(4 * cycle, width), 2)));
}

TYPED_TEST(DataTest, AShardOfSignsIsAPartOfTheWhole) {
  using T = TypeParam;
  const Fill<T> fill = [](std::span<T> out, const Shard& s) { fill_sparse_signs<T>(out, s, 9); };
  TestFixture::expect_shards_of_the_whole(fill);
  TestFixture::expect_refuses_what_does_not_fit(fill);
  EXPECT_THROW(fill({}, {{0, 0}, {0, 1}, (std::int64_t{1} << 31) + 1}), UsageError);
}

TYPED_TEST(DataTest, Ternary) {
  using T = TypeParam;
  const Fill<T> fill = [](std::span<T> out, const Shard& s) { fill_ternary<T>(out, s, 1); };
  // Computed by a second implementation, in Python.
  const double expected[] = {-1, -1, 1, -1, -1, 0, -1, -1, -1, 0, 0, 1};
  const std::vector<T> first = filled<T>(whole_matrix(3, 4), fill);
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_EQ(value_of(first[i]), expected[i]) << i;
  // 100,000 of each are expected, with a standard deviation of 258.
  int counts[3] = {};
  for (const T element : filled<T>(whole_matrix(300, 1000), fill)) {
    const double value = value_of(element);
    ASSERT_TRUE(value == -1 || value == 0 || value == 1);
    ++counts[static_cast<int>(value) + 1];
  }
  for (const int count : counts) EXPECT_NEAR(count, 100000, 1500);
  TestFixture::expect_shards_of_the_whole(fill);
  TestFixture::expect_refuses_what_does_not_fit(fill);
}

template <typename T>
class NormalDataTest : public DataTest<T> {};
TYPED_TEST_SUITE(NormalDataTest, FloatingTypes, TypeNames);

TYPED_TEST(NormalDataTest, IsTheSameEverywhere) {
  using T = TypeParam;
  // Computed by a second implementation, in Python.
  const float expected[] = {0x1.a1494ep-1F, -0x1.7ba32p-4F,  -0x1.1b6f1p-3F,
                            0x1.3250a2p-6F, -0x1.ebb812p-3F, -0x1.a62fcap-1F};
  std::vector<T> values(6);
  fill_normal<T>(values, whole_matrix(2, 3), 1);
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(value_of(values[i]), value_of(from_float<T>(expected[i]))) << i;
  }
}

TYPED_TEST(NormalDataTest, AShardIsAPartOfTheWhole) {
  using T = TypeParam;
  const Fill<T> fill = [](std::span<T> out, const Shard& s) { fill_normal<T>(out, s, 4, 0.5); };
  TestFixture::expect_shards_of_the_whole(fill);
  TestFixture::expect_refuses_what_does_not_fit(fill);
  std::vector<T> one(1);
  for (const double bad : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_THROW(fill_normal<T>(one, whole_matrix(1, 1), 1, bad), std::invalid_argument);
  }
}

TEST(NormalTest, HasTheNormalDistribution) {
  std::vector<float> values(1000000);
  fill_normal<float>(values, whole_matrix(1000, 1000), 1);
  double sum = 0;
  double squares = 0;
  double neighbours = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    sum += values[i];
    squares += values[i] * values[i];
    if (i > 0) neighbours += values[i] * values[i - 1];
  }
  // Standard deviations 0.001, 0.0014 and 0.001; the seed is fixed.
  EXPECT_NEAR(sum / 1e6, 0, 0.005);
  EXPECT_NEAR(squares / 1e6, 1, 0.007);
  EXPECT_NEAR(neighbours / 1e6, 0, 0.005);
  std::sort(values.begin(), values.end());
  double largest_gap = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double normal = std::erfc(-static_cast<double>(values[i]) / std::numbers::sqrt2) / 2;
    largest_gap = std::max(largest_gap, std::abs((static_cast<double>(i) + 0.5) / 1e6 - normal));
  }
  EXPECT_LT(largest_gap, 0.0025);  // 0.001 from the method and, at the 1 % level, 0.0016 from the sample
  EXPECT_GT(values.back(), 4);
  EXPECT_LT(values.back(), 8.21);
  EXPECT_LT(values.front(), -4);
}

TEST(NormalTest, ScalesByTheStandardDeviation) {
  std::vector<float> one(1000);
  std::vector<float> quarter(1000);
  fill_normal<float>(one, whole_matrix(1, 1000), 1);
  fill_normal<float>(quarter, whole_matrix(1, 1000), 1, 0.25);
  for (std::size_t i = 0; i < one.size(); ++i) ASSERT_EQ(quarter[i], one[i] / 4);
  fill_normal<float>(one, whole_matrix(1, 1000), 1, 0);
  EXPECT_EQ(one, std::vector<float>(1000, 0.0F));
}

}  // namespace
}  // namespace overlap
