// Chapter 08 with special values: NaN, infinities, zeros, denormals, overflowing sums. Included by its test,
// which instantiates OnRanks.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "08_sparse_baselines/dense_all_reduce.cuh"
#include "08_sparse_baselines/host_all_reduce.cuh"
#include "sparse_run.hpp"
#include "sparse_values.hpp"

namespace overlap::sparse_baselines {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

/// One call on a table of 8 rows, `features` wide; ranks without gradients in the list have none.
template <template <SparseIndex, Floating> class Algorithm, Floating T = float>
HostResult<std::int32_t, T> sum_of(int ranks, std::int64_t features, std::vector<GivenGradient> gradients) {
  gradients.resize(static_cast<std::size_t>(ranks));
  return result_of<Algorithm, std::int32_t, T>(8, features, gradients);
}

template <template <SparseIndex, Floating> class Algorithm>
void expect_nan_where_it_was(int ranks) {
  const auto found = sum_of<Algorithm>(ranks, 3, {{{7, 2}, {1, kNan, 3, kNan, kNan, kNan}}});
  EXPECT_EQ(found.indices, (std::vector<std::int32_t>{2, 7}));
  ASSERT_EQ(found.values.size(), 6U);
  for (const int i : {0, 1, 2, 4}) EXPECT_TRUE(std::isnan(found.values[static_cast<std::size_t>(i)])) << i;
  EXPECT_EQ(found.values[3], 1);
  EXPECT_EQ(found.values[5], 3);
}
TEST_P(OnRanks, NanStaysWhereItIs) {
  expect_nan_where_it_was<DenseAllReduce>(GetParam());  // a row of NaN alone must not be lost
  expect_nan_where_it_was<HostAllReduce>(GetParam());
}

// A NaN on the second rank alone: where the others have the table's zeros, and where rank 0 has numbers.
template <template <SparseIndex, Floating> class Algorithm>
void expect_nan_of_the_second_rank(int ranks) {
  const auto found = sum_of<Algorithm>(ranks, 2, {{{1, 5}, {1, 2, 0, 0}}, {{5, 3}, {0, kNan, kNan, 0}}});
  EXPECT_EQ(found.indices, (std::vector<std::int32_t>{1, 3, 5}));
  EXPECT_TRUE(std::isnan(found.at(3, 0, 2)));
  EXPECT_EQ(found.at(3, 1, 2), 0);
  EXPECT_EQ(found.at(5, 0, 2), 0);
  EXPECT_TRUE(std::isnan(found.at(5, 1, 2)));
}
TEST_P(OnRanks, ANanOfTheSecondRankAloneIsKept) {
  if (GetParam() < 2) GTEST_SKIP() << "needs two ranks";
  expect_nan_of_the_second_rank<DenseAllReduce>(GetParam());
  expect_nan_of_the_second_rank<HostAllReduce>(GetParam());
}

// The lanes of a warp look at 32 elements at a time, of which the last ones may be fewer.
template <template <SparseIndex, Floating> class Algorithm>
void expect_one_element_to_be_enough(int ranks) {
  for (const std::int64_t features : {1, 31, 32, 33, 63, 65, 128, 130, 163}) {
    for (const std::int64_t place : {std::int64_t{0}, (features - 1) / 32 * 32, features - 1}) {
      SCOPED_TRACE("element " + std::to_string(place) + " of " + std::to_string(features));
      std::vector<float> row(static_cast<std::size_t>(features), 0);
      row[static_cast<std::size_t>(place)] = 2;
      std::vector<GivenGradient> gradients(static_cast<std::size_t>(ranks));
      gradients.back() = {{6}, row};
      const auto found = sum_of<Algorithm>(ranks, features, gradients);
      EXPECT_EQ(found.indices, (std::vector<std::int32_t>{6}));
      EXPECT_EQ(found.values, row);
    }
  }
}
TEST_P(OnRanks, OneElementAnywhereKeepsItsRow) {
  expect_one_element_to_be_enough<DenseAllReduce>(GetParam());
  expect_one_element_to_be_enough<HostAllReduce>(GetParam());
}

// Of all ranks: -0 and -0 is -0, and so the table has it.
TEST_P(OnRanks, ANegativeZeroIsAZero) {
  const std::vector<GivenGradient> gradients(static_cast<std::size_t>(GetParam()),
                                             {{4, 2}, {-0.0F, -0.0F, -0.0F, 1}});
  const auto dense = sum_of<DenseAllReduce>(GetParam(), 2, gradients);
  EXPECT_EQ(dense.indices, (std::vector<std::int32_t>{2}));
  const auto host = sum_of<HostAllReduce>(GetParam(), 2, gradients);
  EXPECT_EQ(host.indices, (std::vector<std::int32_t>{2, 4}));
  for (const float value : {host.at(4, 0, 2), host.at(4, 1, 2), host.at(2, 0, 2), dense.at(2, 0, 2)}) {
    EXPECT_EQ(value, 0);
    EXPECT_TRUE(std::signbit(value));
  }
}

template <template <SparseIndex, Floating> class Algorithm>
void expect_infinities(int ranks) {
  const auto found = sum_of<Algorithm>(ranks, 3, {{{1}, {kInf, kInf, -kInf}}, {{1}, {-kInf, 1, 2}}});
  ASSERT_EQ(found.values.size(), 3U);
  EXPECT_TRUE(std::isnan(found.values[0]));
  EXPECT_EQ(found.values[1], kInf);
  EXPECT_EQ(found.values[2], -kInf);
}
TEST_P(OnRanks, InfinitiesAddUp) {
  if (GetParam() < 2) GTEST_SKIP() << "needs two ranks";
  expect_infinities<DenseAllReduce>(GetParam());
  expect_infinities<HostAllReduce>(GetParam());
}

// Row 3 cancels over two ranks, row 5 within one, row 6 is given as zeros.
TEST_P(OnRanks, TheHostKeepsZeroRowsAndTheDenseWayLosesThem) {
  if (GetParam() < 2) GTEST_SKIP() << "needs two ranks";
  const std::vector<GivenGradient> gradients = {{{3, 5, 5, 7}, {1, 2, 4, 4, -4, -4, 1, 0}},
                                                {{6, 3}, {0, -0.0F, -1, -2}}};
  EXPECT_EQ(sum_of<DenseAllReduce>(GetParam(), 2, gradients).indices, (std::vector<std::int32_t>{7}));
  const auto host = sum_of<HostAllReduce>(GetParam(), 2, gradients);
  EXPECT_EQ(host.indices, (std::vector<std::int32_t>{3, 5, 6, 7}));
  EXPECT_EQ(host.values, (std::vector<float>{0, 0, 0, 0, 0, 0, 1, 0}));
}

template <template <SparseIndex, Floating> class Algorithm>
void expect_denormals(int ranks) {
  const float tiny = std::numeric_limits<float>::denorm_min();
  const auto found = sum_of<Algorithm>(ranks, 2, {{{1}, {tiny, -3 * tiny}}, {{1}, {tiny, tiny}}});
  EXPECT_EQ(found.indices, (std::vector<std::int32_t>{1}));
  EXPECT_EQ(found.values, (std::vector<float>{2 * tiny, -2 * tiny}));
}
TEST_P(OnRanks, DenormalsAreKept) {
  if (GetParam() < 2) GTEST_SKIP() << "needs two ranks";
  expect_denormals<DenseAllReduce>(GetParam());
  expect_denormals<HostAllReduce>(GetParam());
}

TEST_P(OnRanks, TheHostAddsInTheOrderOfTheRanks) {
  if (GetParam() < 4) GTEST_SKIP() << "needs four ranks";
  const auto found =
      sum_of<HostAllReduce>(GetParam(), 1, {{{0}, {1e8F}}, {{0}, {1}}, {{0}, {-1e8F}}, {{0}, {1}}});
  EXPECT_EQ(found.values, (std::vector<float>{1}));  // ((1e8 + 1) - 1e8) + 1, and 1e8 + 1 is 1e8
}

TEST_P(OnRanks, LargeSumsOfF16AreInfinite) {
  if (GetParam() < 2) GTEST_SKIP() << "needs two ranks";
  const std::vector<GivenGradient> gradients = {{{1}, {60000, 1}}, {{1}, {60000, 2}}};
  for (const auto& found : {sum_of<DenseAllReduce, __half>(GetParam(), 2, gradients),
                            sum_of<HostAllReduce, __half>(GetParam(), 2, gradients)}) {
    ASSERT_EQ(found.values.size(), 2U);
    EXPECT_EQ(value_of(found.values[0]), std::numeric_limits<double>::infinity());
    EXPECT_EQ(value_of(found.values[1]), 3);
  }
}

}  // namespace
}  // namespace overlap::sparse_baselines
