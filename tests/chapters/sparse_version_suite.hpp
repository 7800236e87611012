// The tests that every version of the sparse all-reduce has to pass, on 1, 2, 3, 4 and 8 ranks. Included
// after
//   template <SparseIndex Index, Floating T>
//   using Version = ...;
// in namespace overlap. A chapter's test program adds what only its version has.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "calls_at_once.hpp"
#include "sparse_version_tests.hpp"

namespace overlap {
namespace {

INSTANTIATE_TEST_SUITE_P(Version, OnRanks, testing::Values(1, 2, 3, 4, 8));

TEST_P(OnRanks, IsRightOnAllDistributions) {
  expect_right_on_distributions<Version, std::int32_t, float>(GetParam());
  expect_right_on_distributions<Version, std::int64_t, __half>(GetParam());
}

TEST_P(OnRanks, IsRightOnRandomGradients) {  // 200 in all, over the five numbers of ranks
  const std::uint64_t seed = 20261122 + 1000 * static_cast<std::uint64_t>(GetParam());
  expect_right_on_random_gradients<Version, std::int32_t, float>(GetParam(), seed, 20);
  expect_right_on_random_gradients<Version, std::int64_t, __half>(GetParam(), seed + 20, 20);
}

TEST_P(OnRanks, IsRightCallAfterCallInEveryType) {
  expect_right_call_after_call<Version, std::int32_t, float>(GetParam());
  expect_right_call_after_call<Version, std::int64_t, float>(GetParam());
  expect_right_call_after_call<Version, std::int64_t, __half>(GetParam());
  expect_right_call_after_call<Version, std::int32_t, __nv_bfloat16>(GetParam());
}

TEST_P(OnRanks, IsRightWithAnyFeatures) {
  expect_right_with_any_features<Version, std::int64_t, float>(GetParam());
  expect_right_with_any_features<Version, std::int32_t, __nv_bfloat16>(GetParam());
}

TEST_P(OnRanks, KeepsNansInfinitiesZerosAndDenormals) {
  expect_special_values<Version, std::int32_t>(GetParam());
}

TEST_P(OnRanks, HasTheSameBitsInEachCallOnEachRankAndWithEachIndexType) {
  expect_same_bits_in_each_call<Version>(GetParam(), GetParam() == 4 ? 100 : 3);
}

TEST_P(OnRanks, IsRightAfterManyCallsAtOnce) { expect_right_after<Version>(GetParam(), calls_at_once(10)); }

TEST_P(OnRanks, RefusesIndicesThatAreNotInTheTable) {
  expect_bad_indices_refused<Version, std::int32_t>(GetParam());
  expect_bad_indices_refused<Version, std::int64_t>(GetParam());
}

TEST_P(OnRanks, HasTheSamePhasesOnAllRanks) { expect_same_phases_on_all_ranks<Version>(GetParam()); }

TEST_P(OnRanks, TellsRowsApartThatAreEqualInThirtyTwoBits) {
  expect_sums<Version, std::int64_t, float>({rows_equal_in_32_bits(GetParam())}, "rows above 2^32");
}

}  // namespace
}  // namespace overlap
