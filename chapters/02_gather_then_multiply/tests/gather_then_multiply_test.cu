// Chapter 02 on any GPUs: every element right, for all types, sizes, numbers of ranks and modes of NCCL.
#include "02_gather_then_multiply/gather_then_multiply.cuh"

#include <gtest/gtest.h>

#include "dense_run.hpp"

namespace overlap::gather_then_multiply {
namespace {

template <Floating T>
void expect_right_in(int ranks, const std::vector<MatmulShape>& shapes, std::uint64_t seed = 1, int calls = 1,
                     NcclMode mode = NcclMode::kPlain) {
  expect_all_right<GatherThenMultiply<T>, GatherProblem<T>>(ranks, shapes, seed, calls, mode);
}

class Ranks : public OnRanksOfNccl {};

INSTANTIATE_TEST_SUITE_P(Chapter02, Ranks, testing::Values(1, 2, 3, 4, 8), testing::PrintToStringParamName());

TEST_P(Ranks, AllSizesInF16) { expect_right_in<__half>(GetParam(), dense_shapes()); }

TEST_P(Ranks, AllSizesInBf16) { expect_right_in<__nv_bfloat16>(GetParam(), dense_shapes()); }

TEST_P(Ranks, AllSizesInF32) { expect_right_in<float>(GetParam(), dense_shapes()); }

TEST_P(Ranks, CallsThatFollowEachOtherAtOnce) {
  expect_right_in<__half>(GetParam(), {{35, 37, 29}, {48, 48, 16}}, 3, calls_at_once(8));
}

TEST_P(Ranks, RandomSizes) {
  const unsigned seed = 20251 + static_cast<unsigned>(GetParam());
  SCOPED_TRACE("seed " + std::to_string(seed));
  expect_right_in<__half>(GetParam(), random_shapes(40, seed), seed);
}

// The newer modes of NCCL; where NCCL lacks one, its test is skipped with the reason.
TEST_P(Ranks, RegisteredMemory) {
  expect_right_in<__half>(GetParam(), dense_shapes(), 1, 3, NcclMode::kRegistered);
}

TEST_P(Ranks, CopyEngines) {
  expect_right_in<__half>(GetParam(), dense_shapes(), 1, 3, NcclMode::kCopyEngine);
}

TEST(GatherThenMultiplyCost, IsThatOfTheLargestShare) {
  using Algorithm = GatherThenMultiply<__half>;
  const Cost even = Algorithm::cost({8192, 32768, 4096}, 8, 3);
  EXPECT_EQ(even.messages, 7);
  EXPECT_EQ(even.bytes_in, 7 * 1024 * 4096 * 2);  // (P - 1) / P of A
  EXPECT_EQ(even.bytes_out, even.bytes_in);
  EXPECT_EQ(even.products, 1);
  EXPECT_EQ(even.memory, std::int64_t{8192} * 4096 * 2);
  for (int rank = 0; rank < 4; ++rank) {
    const Cost uneven = Algorithm::cost({10, 4, 3}, 4, rank);  // 3, 3, 2 and 2 rows
    EXPECT_EQ(uneven.bytes_in, 3 * 3 * 3 * 2);
    EXPECT_EQ(uneven.bytes_out, 3 * 3 * 3 * 2);
    EXPECT_EQ(uneven.products, 2);  // 3 + 3 + 2 rows are contiguous
    EXPECT_EQ(uneven.memory, 4 * 3 * 3 * 2);
  }
  EXPECT_EQ(Algorithm::cost({2, 2, 2}, 4, 3).products, 0);  // no column for the last rank
}

}  // namespace
}  // namespace overlap::gather_then_multiply
