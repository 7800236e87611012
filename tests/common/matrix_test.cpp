#include "overlap/data/matrix.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <stdexcept>
#include <vector>

#include "overlap/gpu/error.hpp"

namespace overlap {
namespace {

TEST(BalancedShareTest, SharesAreContiguousAndCoverAll) {
  for (const std::int64_t total : {0, 1, 2, 5, 7, 16, 100, 8192}) {
    for (const int parts : {1, 2, 3, 4, 8, 16}) {
      std::int64_t next = 0;
      for (int index = 0; index < parts; ++index) {
        const Range share = balanced_share(total, parts, index);
        EXPECT_EQ(share.begin, next);
        const std::int64_t size = total / parts + (index < total % parts ? 1 : 0);
        EXPECT_EQ(share.size(), size) << total << " things, share " << index << " of " << parts;
        EXPECT_EQ(share.empty(), size == 0);
        next = share.end;
      }
      EXPECT_EQ(next, total);
    }
  }
}

TEST(BalancedShareTest, KnowsTheseByHand) {
  EXPECT_EQ(balanced_share(7, 3, 0), (Range{0, 3}));
  EXPECT_EQ(balanced_share(7, 3, 1), (Range{3, 5}));
  EXPECT_EQ(balanced_share(7, 3, 2), (Range{5, 7}));
  EXPECT_EQ(balanced_share(1, 8, 7), (Range{1, 1}));
}

TEST(BalancedShareTest, WorksAtTheUpperEnd) {
  EXPECT_EQ(balanced_share(INT64_MAX, 16, 15).end, INT64_MAX);
  EXPECT_EQ(balanced_share(INT64_MAX, 1, 0), (Range{0, INT64_MAX}));
}

TEST(BalancedShareTest, RefusesWhatIsNoShare) {
  EXPECT_THROW(balanced_share(-1, 1, 0), std::invalid_argument);
  EXPECT_THROW(balanced_share(1, 0, 0), std::invalid_argument);
  EXPECT_THROW(balanced_share(1, 2, 2), std::invalid_argument);
  EXPECT_THROW(balanced_share(1, 2, -1), std::invalid_argument);
}

TEST(ShardTest, KnowsItsPlace) {
  EXPECT_EQ(whole_matrix(4, 5), (Shard{{0, 4}, {0, 5}, 5, -1}));
  EXPECT_EQ(row_shard(7, 5, 3, 1), (Shard{{3, 5}, {0, 5}, 5, 1}));
  EXPECT_EQ(column_shard(7, 5, 3, 2), (Shard{{0, 7}, {4, 5}, 5, 2}));
  EXPECT_EQ(row_shard(7, 5, 3, 1).elements(), 10);
  EXPECT_EQ(column_shard(7, 1, 3, 2).elements(), 0);
  EXPECT_THROW(row_shard(7, 5, 3, 3), std::invalid_argument);
  EXPECT_THROW(column_shard(7, 5, 0, 0), std::invalid_argument);
}

TEST(ShardTest, SaysItsPlace) {
  EXPECT_EQ(describe(row_shard(7, 5, 3, 1)), "rows 3 to 4, columns 0 to 4");
  EXPECT_EQ(describe(column_shard(7, 1, 3, 2)), "rows 0 to 6, no columns");
  EXPECT_EQ(describe(row_shard(1, 5, 3, 2)), "no rows, columns 0 to 4");
}

TEST(MatmulShapeTest, CountsMultiplyAdds) {
  EXPECT_EQ((MatmulShape{4096, 8192, 1024}.multiply_adds()), 34359738368.0);
  // More than 64 bits can represent.
  const double huge = MatmulShape{1LL << 31, 1LL << 31, 1LL << 31}.multiply_adds();
  EXPECT_EQ(huge, 9903520314283042199192993792.0);
}

TEST(CheckedElementsTest, MultipliesIn64Bits) {
  EXPECT_EQ(checked_elements(1, 1, 4), 1);
  EXPECT_EQ(checked_elements(65536, 65536, 4), 4294967296);
  EXPECT_EQ(checked_elements(kMaxBytes, 1, 1), kMaxBytes);
  EXPECT_EQ(checked_elements(std::int64_t{1} << 30, std::int64_t{1} << 30, 4), std::int64_t{1} << 60);
}

TEST(CheckedElementsTest, RefusesWhatIsEmptyOrTooLarge) {
  EXPECT_THROW(checked_elements(0, 5, 4), UsageError);
  EXPECT_THROW(checked_elements(5, 0, 4), UsageError);
  EXPECT_THROW(checked_elements(-5, -5, 4), UsageError);
  EXPECT_THROW(checked_elements(5, 5, 0), UsageError);
  EXPECT_THROW(checked_elements(kMaxBytes, 2, 1), UsageError);
  EXPECT_THROW(checked_elements(kMaxBytes / 4 + 1, 1, 4), UsageError);
  EXPECT_THROW(checked_elements(INT64_MAX, INT64_MAX, 8), UsageError);
  EXPECT_THROW(checked_elements(1, 1, SIZE_MAX), UsageError);
}

TEST(CheckedElementsTest, TheSentenceHasTheSizes) {
  try {
    checked_elements(kMaxBytes, 3, 2);
    FAIL() << "no exception";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(),
                 "a matrix of 4611686018427387904 x 3 elements of 2 bytes is too large to address");
  }
}

TEST(FillIntegersTest, IsTheSameEverywhere) {
  // Computed by a second implementation, in Python.
  std::vector<int> values(6);
  fill_integers(values, 0, 99, 1);
  EXPECT_EQ(values, (std::vector<int>{36, 94, 4, 77, 21, 77}));
}

TEST(FillIntegersTest, AShardIsAPartOfTheWhole) {
  std::vector<int> whole(1000);
  fill_integers(whole, -5, 5, 42);
  std::vector<int> shards(1000);
  fill_integers(std::span(shards).subspan(300), -5, 5, 42, 300);
  fill_integers(std::span(shards).first(300), -5, 5, 42, 0);
  EXPECT_EQ(whole, shards);
}

TEST(FillIntegersTest, SeedsGiveDifferentData) {
  std::vector<int> one(1000);
  std::vector<int> two(1000);
  fill_integers(one, 0, 1000000, 1);
  fill_integers(two, 0, 1000000, 2);
  int same = 0;
  for (std::size_t i = 0; i < one.size(); ++i) same += one[i] == two[i];
  EXPECT_LT(same, 5);
  EXPECT_FALSE(std::equal(one.begin() + 1, one.end(), two.begin()));  // nor the same data, shifted
}

TEST(FillIntegersTest, EachValueHasItsShare) {
  std::vector<int> values(110000);
  fill_integers(values, -5, 5, 7);
  std::vector<int> counts(11, 0);
  for (const int value : values) {
    ASSERT_GE(value, -5);
    ASSERT_LE(value, 5);
    ++counts[static_cast<std::size_t>(value + 5)];
  }
  // 10000 are expected, with a standard deviation of 95. The seed is fixed, so the test is deterministic.
  for (const int count : counts) EXPECT_NEAR(count, 10000, 500);
}

TEST(FillIntegersTest, TakesTheExtremes) {
  std::vector<int> values(1000);
  fill_integers(values, INT_MIN, INT_MAX, 3);
  EXPECT_LT(*std::min_element(values.begin(), values.end()), -2000000000);
  EXPECT_GT(*std::max_element(values.begin(), values.end()), 2000000000);
  fill_integers(values, 9, 9, 3);
  EXPECT_EQ(values, std::vector<int>(1000, 9));
  EXPECT_NO_THROW(fill_integers({}, 0, 1, 3));
  EXPECT_THROW(fill_integers(values, 1, 0, 3), std::invalid_argument);
}

}  // namespace
}  // namespace overlap
