// Tests of every version of the sparse all-reduce on 1, 2, 3, 4 and 8 ranks. A chapter's test registers its
// version:
//   const bool kNonzero = test_sparse_version<VersionOf<NonzeroAllReduce>>("Nonzero");
// At run time: GoogleTest's typed tests would compile every test for each number of ranks.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "calls_at_once.hpp"
#include "on_ranks.hpp"
#include "sparse_version_tests.hpp"

namespace overlap {

class SparseVersion : public OnSoManyRanks {
 public:
  using OnSoManyRanks::OnSoManyRanks;

 private:
  void SetUp() override {
    if (!enough_gpus(ranks())) GTEST_SKIP() << "NCCL wants a GPU for each of " << ranks() << " ranks";
  }
};

/// Registers the tests as "name/suite/4.IsRight" and so on, for all numbers of ranks.
inline bool register_tests(const std::string& name, const char* suite,
                           const std::vector<TestOnRanks>& tests) {
  for (const int ranks : kNumbersOfRanks) {
    for (const TestOnRanks& test : tests)
      register_test<SparseVersion>(name + "/" + suite + "/" + std::to_string(ranks), test.name, test, ranks);
  }
  return true;
}

/// The tests of what adds gradients up, wherever it leaves the sums.
template <typename Version>
std::vector<TestOnRanks> sum_tests() {
  return {{"IsRightOnAllDistributions",
           [](int ranks) {
             expect_right_on_distributions<Version::template Type, std::int32_t, float>(ranks);
             expect_right_on_distributions<Version::template Type, std::int64_t, __half>(ranks);
           }},
          {"IsRightOnRandomGradients",  // 200 in all, over the five numbers of ranks
           [](int ranks) {
             const std::uint64_t seed = 20261122 + 1000 * static_cast<std::uint64_t>(ranks);
             expect_right_on_random_gradients<Version::template Type, std::int32_t, float>(ranks, seed, 20);
             expect_right_on_random_gradients<Version::template Type, std::int64_t, __half>(ranks, seed + 20,
                                                                                            20);
           }},
          {"IsRightCallAfterCallInEveryType",
           [](int ranks) {
             expect_right_call_after_call<Version::template Type, std::int32_t, float>(ranks);
             expect_right_call_after_call<Version::template Type, std::int64_t, float>(ranks);
             expect_right_call_after_call<Version::template Type, std::int64_t, __half>(ranks);
             expect_right_call_after_call<Version::template Type, std::int32_t, __nv_bfloat16>(ranks);
           }},
          {"IsRightWithAnyFeatures",
           [](int ranks) {
             expect_right_with_any_features<Version::template Type, std::int64_t, float>(ranks);
             expect_right_with_any_features<Version::template Type, std::int32_t, __nv_bfloat16>(ranks);
           }},
          {"IsRightAfterManyCallsAtOnce",
           [](int ranks) { expect_right_after<Version::template Type>(ranks, calls_at_once(10)); }},
          {"RefusesIndicesThatAreNotInTheTable",
           [](int ranks) {
             expect_bad_indices_refused<Version::template Type, std::int32_t>(ranks);
             expect_bad_indices_refused<Version::template Type, std::int64_t>(ranks);
           }},
          {"TellsRowsApartThatAreEqualInThirtyTwoBits", [](int ranks) {
             expect_sums<Version::template Type, std::int64_t, float>({rows_equal_in_32_bits(ranks)},
                                                                      "rows above 2^32");
           }}};
}

/// Registers them. In an initialiser at namespace scope, as test_sparse_version().
template <typename Version>
bool test_sums(const std::string& name, const char* suite) {
  return register_tests(name, suite, sum_tests<Version>());
}

/// Registers all tests of a version, which also promises each rank the same sums.
template <typename Version>
bool test_sparse_version(const std::string& name) {
  std::vector<TestOnRanks> tests = sum_tests<Version>();
  tests.insert(tests.end(),
               {{"KeepsNansInfinitiesZerosAndDenormals",
                 [](int ranks) { expect_special_values<Version::template Type, std::int32_t>(ranks); }},
                {"HasTheSameBitsInEachCallOnEachRankAndWithEachIndexType",
                 [](int ranks) {
                   expect_same_bits_in_each_call<Version::template Type>(ranks, ranks == 4 ? 100 : 3);
                 }},
                {"HasTheSamePhasesOnAllRanks",
                 [](int ranks) { expect_same_phases_on_all_ranks<Version::template Type>(ranks); }}});
  return register_tests(name, "SparseVersion", tests);
}

}  // namespace overlap
