// Tests of every version of the sparse all-reduce on virtual GPUs. A chapter's test instantiates them:
//   INSTANTIATE_TYPED_TEST_SUITE_P(Nonzero, SparseVersionOnVirtualGpus, VersionOf<NonzeroAllReduce>);
#pragma once

#include <gtest/gtest.h>

#include "sparse_virtual_tests.hpp"

namespace overlap {

template <typename Version>
class SparseVersionOnVirtualGpus : public OnVirtualGpus {};
TYPED_TEST_SUITE_P(SparseVersionOnVirtualGpus);

TYPED_TEST_P(SparseVersionOnVirtualGpus, IsRightInTwentySchedules) {
  expect_right_in_schedules<TypeParam::template Type>(20);
}

TYPED_TEST_P(SparseVersionOnVirtualGpus, SameSeedSameSchedule) {
  expect_same_seed_same_schedule(
      [] { expect_sums<TypeParam::template Type, std::int32_t, float>({uneven_gradient(4)}, "same seed"); });
}

TYPED_TEST_P(SparseVersionOnVirtualGpus, MovesTheBytesOfItsCostCard) {
  for (const int ranks : {1, 2, 3, 8}) expect_bytes_of_the_card<TypeParam::template Type>(ranks);
}

REGISTER_TYPED_TEST_SUITE_P(SparseVersionOnVirtualGpus, IsRightInTwentySchedules, SameSeedSameSchedule,
                            MovesTheBytesOfItsCostCard);

}  // namespace overlap
