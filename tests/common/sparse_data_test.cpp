#include "overlap/data/sparse_data.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "overlap/gpu/error.hpp"

namespace overlap {
namespace {

using Entries = std::vector<std::vector<std::int64_t>>;

SparseData drawn(RowPattern pattern, std::uint64_t seed = 1, std::int64_t duplicates = 7) {
  return SparseData({200, 3, 20}, 4, pattern, duplicates, seed);
}

constexpr RowPattern kPatterns[] = {RowPattern::kUniform, RowPattern::kZipf, RowPattern::kIdentical,
                                    RowPattern::kDisjoint};

TEST(SparseDataTest, EachRankHasItsDistinctRowsAndItsDuplicates) {
  for (const RowPattern pattern : kPatterns) {
    const SparseData data = drawn(pattern);
    std::set<std::int64_t> all;
    std::int64_t total = 0;
    ASSERT_EQ(data.ranks(), 4);
    for (int rank = 0; rank < 4; ++rank) {
      const std::vector<std::int64_t>& entries = data.entries(rank);
      const std::set<std::int64_t> rows(entries.begin(), entries.end());
      EXPECT_EQ(entries.size(), 27U) << name_of(pattern);
      EXPECT_EQ(rows.size(), 20U) << name_of(pattern);
      EXPECT_TRUE(*rows.begin() >= 0 && *rows.rbegin() < 200) << name_of(pattern);
      EXPECT_EQ(data.local_rows(rank), std::vector<std::int64_t>(rows.begin(), rows.end()));
      all.insert(rows.begin(), rows.end());
      total += static_cast<std::int64_t>(rows.size());
    }
    EXPECT_EQ(data.global_rows(), std::vector<std::int64_t>(all.begin(), all.end())) << name_of(pattern);
    EXPECT_EQ(data.total_rows(), total);
  }
  EXPECT_EQ(drawn(RowPattern::kIdentical).global_rows().size(), 20U);
  EXPECT_EQ(drawn(RowPattern::kDisjoint).global_rows().size(), 80U);
}

TEST(SparseDataTest, UnevenRanksHaveListsOfDifferentLength) {
  const SparseData data = drawn(RowPattern::kUneven, 1, 0);
  for (int rank = 0; rank < 4; ++rank)
    EXPECT_EQ(data.local_rows(rank).size(), 5U * (static_cast<unsigned>(rank) + 1));
}

TEST(SparseDataTest, TheSeedDecides) {
  for (const RowPattern pattern : kPatterns) {
    EXPECT_EQ(drawn(pattern, 5).entries(2), drawn(pattern, 5).entries(2));
    EXPECT_NE(drawn(pattern, 5).entries(2), drawn(pattern, 6).entries(2));
  }
}

TEST(SparseDataTest, RowsAreEquallyLikelyOrTheFirstOnesAreMostLikely) {
  int low_uniform = 0, low_zipf = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const SparseData uniform({1000, 1, 10}, 1, RowPattern::kUniform, 0, seed);
    const SparseData zipf({1000, 1, 10}, 1, RowPattern::kZipf, 0, seed);
    for (const std::int64_t row : uniform.entries(0)) low_uniform += row < 100 ? 1 : 0;
    for (const std::int64_t row : zipf.entries(0)) low_zipf += row < 100 ? 1 : 0;
  }
  EXPECT_NEAR(low_uniform, 200, 60);  // a tenth of 2000 draws
  EXPECT_GT(low_zipf, 1000);
}

TEST(SparseDataTest, MoreRowsThanThereAreAreRefused) {
  EXPECT_THROW(SparseData({10, 1, 11}, 1, RowPattern::kUniform, 0, 1), UsageError);
  EXPECT_THROW(SparseData({10, 1, 4}, 3, RowPattern::kDisjoint, 0, 1), UsageError);
  EXPECT_NO_THROW(SparseData({10, 1, 10}, 3, RowPattern::kZipf, 0, 1));
  EXPECT_THROW(SparseData({10, 1, 1}, Entries{{10}}, 1), std::invalid_argument);
  EXPECT_THROW(SparseData({10, 1, 1}, Entries{{-1}}, 1), std::invalid_argument);
}

/// The right result, built entry by entry.
template <Floating T>
struct Result {
  std::vector<std::int32_t> indices;
  std::vector<T> values;

  Result(const SparseData& data, SparseValues kind) {
    const auto features = static_cast<std::size_t>(data.shape().features);
    for (const std::int64_t row : data.global_rows()) {
      std::vector<double> sums(features, 0);
      for (int rank = 0; rank < data.ranks(); ++rank) {
        const std::vector<std::int64_t>& entries = data.entries(rank);
        std::vector<T> own(entries.size() * features);
        data.fill<T>(rank, kind, own);
        for (std::size_t entry = 0; entry < entries.size(); ++entry) {
          if (entries[entry] != row) continue;
          for (std::size_t column = 0; column < features; ++column)
            sums[column] += value_of(own[entry * features + column]);
        }
      }
      indices.push_back(static_cast<std::int32_t>(row));
      for (const double sum : sums) values.push_back(from_double<T>(sum));
    }
  }

  std::string difference(const SparseData& data, SparseValues kind,
                         ZeroRows zero_rows = ZeroRows::kKept) const {
    return data.difference<std::int32_t, T>(kind, std::span<const std::int32_t>(indices),
                                            std::span<const T>(values), {.zero_rows = zero_rows});
  }

  /// Removes row i of the result.
  void erase(std::size_t i, std::size_t features) {
    indices.erase(indices.begin() + static_cast<std::ptrdiff_t>(i));
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(i * features);
    values.erase(first, first + static_cast<std::ptrdiff_t>(features));
  }
};

template <Floating T>
void expect_that_errors_are_found(SparseValues kind) {
  const SparseData data = drawn(RowPattern::kZipf);
  const Result<T> right(data, kind);
  EXPECT_EQ(right.difference(data, kind), "");
  EXPECT_EQ(right.difference(data, kind, ZeroRows::kDropped), "");
  for (const ZeroRows zero_rows : {ZeroRows::kKept, ZeroRows::kDropped}) {
    Result<T> wrong = right;
    wrong.erase(3, 3);
    EXPECT_NE(wrong.difference(data, kind, zero_rows), "") << "a row is missing";
    wrong = right;
    wrong.indices[5] = wrong.indices[4];
    EXPECT_NE(wrong.difference(data, kind, zero_rows), "") << "a row twice";
    wrong = right;
    std::swap(wrong.indices[1], wrong.indices[2]);
    EXPECT_NE(wrong.difference(data, kind, zero_rows), "") << "rows not ascending";
    for (std::size_t i = 0; i < right.values.size(); i += 7) {
      wrong = right;
      wrong.values[i] = from_double<T>(value_of(right.values[i]) + 1);
      EXPECT_NE(wrong.difference(data, kind, zero_rows), "") << i;
      wrong.values[i] = from_double<T>(std::numeric_limits<double>::quiet_NaN());
      EXPECT_NE(wrong.difference(data, kind, zero_rows), "") << i;
    }
  }
}

TEST(SparseDataTest, EveryErrorIsFound) {
  expect_that_errors_are_found<float>(SparseValues::kExact);
  expect_that_errors_are_found<__half>(SparseValues::kExact);
  expect_that_errors_are_found<__nv_bfloat16>(SparseValues::kExact);
  expect_that_errors_are_found<float>(SparseValues::kReal);
}

// Two summands on two ranks: at most four roundings of 2^-24.
TEST(SparseDataTest, ARealSumMayBeOffByItsRoundingsAndNoMore) {
  const SparseData data({5, 1, 1}, Entries{{0}, {0}}, 1);
  double magnitude = 0;
  for (const int rank : {0, 1}) {
    std::vector<float> value(1);
    data.fill<float>(rank, SparseValues::kReal, value);
    magnitude += std::abs(static_cast<double>(value[0]));
  }
  const Result<float> right(data, SparseValues::kReal);
  const auto is_found = [&](double error) {
    Result<float> wrong = right;
    wrong.values[0] = static_cast<float>(static_cast<double>(wrong.values[0]) + error);
    return !wrong.difference(data, SparseValues::kReal).empty();
  };
  const double bound = 4 * 0x1p-24 * magnitude;
  EXPECT_FALSE(is_found(0.5 * bound));
  EXPECT_TRUE(is_found(2 * bound));
  EXPECT_TRUE(is_found(-2 * bound));
}

TEST(SparseDataTest, TheFirstErrorIsNamed) {
  const SparseData data({10, 2, 1}, Entries{{4}, {4, 7}}, 1);
  Result<float> result(data, SparseValues::kExact);
  result.values[3] += 1;
  EXPECT_NE(result.difference(data, SparseValues::kExact)
                .find("1 of 4 values are wrong; row 7 of the table, column 1"),
            std::string::npos);
  result.erase(0, 2);
  EXPECT_EQ(result.difference(data, SparseValues::kExact), "1 rows came out, 2 are expected");
  result.indices[0] = 4;
  result.indices.push_back(8);
  EXPECT_EQ(result.difference(data, SparseValues::kExact),
            "row 1 of the result is row 8 of the table, and not row 7");
}

// Seeds for which row 0, of two entries, sums to zero, and row 1, of one entry, cannot.
TEST(SparseDataTest, ZeroRowsAreKeptOrDropped) {
  int found = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    const SparseData data({5, 1, 2}, Entries{{0, 1}, {0}}, seed);
    Result<__nv_bfloat16> kept(data, SparseValues::kExact);
    if (value_of(kept.values[0]) != 0) continue;
    ++found;
    Result<__nv_bfloat16> dropped = kept;
    dropped.erase(0, 1);
    EXPECT_EQ(kept.difference(data, SparseValues::kExact), "");
    EXPECT_NE(dropped.difference(data, SparseValues::kExact), "");
    EXPECT_EQ(dropped.difference(data, SparseValues::kExact, ZeroRows::kDropped), "");
    EXPECT_NE(kept.difference(data, SparseValues::kExact, ZeroRows::kDropped), "");
  }
  EXPECT_GT(found, 3);
}

TEST(SparseDataTest, OneRankAlone) {
  const SparseData data({10, 2, 2}, Entries{{4, 1, 4}, {4, 7}}, 1);
  std::vector<float> own(6);
  data.fill<float>(0, SparseValues::kExact, own);
  const std::vector<std::int64_t> rows = {1, 4};
  const std::vector<float> sums = {own[2], own[3], own[0] + own[4], own[1] + own[5]};
  const auto difference = [&](int rank) {
    return data.local_difference<std::int64_t, float>(
        rank, SparseValues::kExact, std::span<const std::int64_t>(rows), std::span<const float>(sums));
  };
  EXPECT_EQ(difference(0), "");
  EXPECT_NE(difference(1), "");
}

TEST(SparseDataTest, ExactSumsAreExactOrRefused) {
  const SparseData data({2, 1, 1}, Entries{std::vector<std::int64_t>(257, 0)}, 1);
  std::vector<__nv_bfloat16> sixteen(257);
  EXPECT_THROW(data.fill<__nv_bfloat16>(0, SparseValues::kExact, sixteen), std::invalid_argument);
  std::vector<float> values(257), wrong_size(256);
  EXPECT_NO_THROW(data.fill<float>(0, SparseValues::kExact, values));
  EXPECT_THROW(data.fill<float>(0, SparseValues::kExact, wrong_size), std::invalid_argument);
  EXPECT_TRUE(std::none_of(values.begin(), values.end(), [](float value) { return value == 0; }));
}

}  // namespace
}  // namespace overlap
