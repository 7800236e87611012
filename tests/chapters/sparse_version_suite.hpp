// The tests that every version of the sparse all-reduce has to pass, on 1, 2, 3, 4 and 8 ranks. A chapter's
// test program says of which version, and adds what only that one has:
//   INSTANTIATE_TYPED_TEST_SUITE_P(Nonzero, SparseVersion, OnAllRanks<VersionOf<NonzeroAllReduce>>,
//                                  NumberOfRanks);
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "calls_at_once.hpp"
#include "sparse_version_tests.hpp"

namespace overlap {

/// A version on so many ranks, as a type.
template <typename TheVersion, int kNumber>
struct OnRanksCase {
  using Version = TheVersion;
  static constexpr int kRanks = kNumber;
};

/// A version on all numbers of ranks.
template <typename Version>
using OnAllRanks = testing::Types<OnRanksCase<Version, 1>, OnRanksCase<Version, 2>, OnRanksCase<Version, 3>,
                                  OnRanksCase<Version, 4>, OnRanksCase<Version, 8>>;

/// How such a case is called: by its ranks.
struct NumberOfRanks {
  template <typename Case>
  static std::string GetName(int) {
    return std::to_string(Case::kRanks);
  }
};

template <typename Case>
class SparseVersion : public testing::Test {
 protected:
  void SetUp() override {
    if (!enough_gpus(Case::kRanks))
      GTEST_SKIP() << "NCCL wants a GPU for each of " << Case::kRanks << " ranks";
  }
};
TYPED_TEST_SUITE_P(SparseVersion);

TYPED_TEST_P(SparseVersion, IsRightOnAllDistributions) {
  expect_right_on_distributions<TypeParam::Version::template Type, std::int32_t, float>(TypeParam::kRanks);
  expect_right_on_distributions<TypeParam::Version::template Type, std::int64_t, __half>(TypeParam::kRanks);
}

TYPED_TEST_P(SparseVersion, IsRightOnRandomGradients) {  // 200 in all, over the five numbers of ranks
  const std::uint64_t seed = 20261122 + 1000 * static_cast<std::uint64_t>(TypeParam::kRanks);
  expect_right_on_random_gradients<TypeParam::Version::template Type, std::int32_t, float>(TypeParam::kRanks,
                                                                                           seed, 20);
  expect_right_on_random_gradients<TypeParam::Version::template Type, std::int64_t, __half>(TypeParam::kRanks,
                                                                                            seed + 20, 20);
}

TYPED_TEST_P(SparseVersion, IsRightCallAfterCallInEveryType) {
  expect_right_call_after_call<TypeParam::Version::template Type, std::int32_t, float>(TypeParam::kRanks);
  expect_right_call_after_call<TypeParam::Version::template Type, std::int64_t, float>(TypeParam::kRanks);
  expect_right_call_after_call<TypeParam::Version::template Type, std::int64_t, __half>(TypeParam::kRanks);
  expect_right_call_after_call<TypeParam::Version::template Type, std::int32_t, __nv_bfloat16>(
      TypeParam::kRanks);
}

TYPED_TEST_P(SparseVersion, IsRightWithAnyFeatures) {
  expect_right_with_any_features<TypeParam::Version::template Type, std::int64_t, float>(TypeParam::kRanks);
  expect_right_with_any_features<TypeParam::Version::template Type, std::int32_t, __nv_bfloat16>(
      TypeParam::kRanks);
}

TYPED_TEST_P(SparseVersion, KeepsNansInfinitiesZerosAndDenormals) {
  expect_special_values<TypeParam::Version::template Type, std::int32_t>(TypeParam::kRanks);
}

TYPED_TEST_P(SparseVersion, HasTheSameBitsInEachCallOnEachRankAndWithEachIndexType) {
  expect_same_bits_in_each_call<TypeParam::Version::template Type>(TypeParam::kRanks,
                                                                   TypeParam::kRanks == 4 ? 100 : 3);
}

TYPED_TEST_P(SparseVersion, IsRightAfterManyCallsAtOnce) {
  expect_right_after<TypeParam::Version::template Type>(TypeParam::kRanks, calls_at_once(10));
}

TYPED_TEST_P(SparseVersion, RefusesIndicesThatAreNotInTheTable) {
  expect_bad_indices_refused<TypeParam::Version::template Type, std::int32_t>(TypeParam::kRanks);
  expect_bad_indices_refused<TypeParam::Version::template Type, std::int64_t>(TypeParam::kRanks);
}

TYPED_TEST_P(SparseVersion, HasTheSamePhasesOnAllRanks) {
  expect_same_phases_on_all_ranks<TypeParam::Version::template Type>(TypeParam::kRanks);
}

TYPED_TEST_P(SparseVersion, TellsRowsApartThatAreEqualInThirtyTwoBits) {
  expect_sums<TypeParam::Version::template Type, std::int64_t, float>(
      {rows_equal_in_32_bits(TypeParam::kRanks)}, "rows above 2^32");
}

REGISTER_TYPED_TEST_SUITE_P(SparseVersion, IsRightOnAllDistributions, IsRightOnRandomGradients,
                            IsRightCallAfterCallInEveryType, IsRightWithAnyFeatures,
                            KeepsNansInfinitiesZerosAndDenormals,
                            HasTheSameBitsInEachCallOnEachRankAndWithEachIndexType,
                            IsRightAfterManyCallsAtOnce, RefusesIndicesThatAreNotInTheTable,
                            HasTheSamePhasesOnAllRanks, TellsRowsApartThatAreEqualInThirtyTwoBits);

}  // namespace overlap
