// Chapter NN on any GPUs: every element is right, for all types, sizes and numbers of ranks.
#include "NN_name/lesson.cuh"

#include <gtest/gtest.h>

#include "dense_run.hpp"

namespace overlap::new_chapter {
namespace {

template <Floating T>
void expect_right_in(int ranks, const std::vector<MatmulShape>& shapes, std::uint64_t seed = 1,
                     int calls = 1) {
  expect_all_right<NewChapter<T>, GatherProblem<T>>(ranks, shapes, seed, calls);
}

class Ranks : public testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(ChapterNN, Ranks, testing::Values(1, 2, 3, 4, 8));

TEST_P(Ranks, AllSizesInF16) { expect_right_in<__half>(GetParam(), dense_shapes()); }

TEST_P(Ranks, AllSizesInBf16) { expect_right_in<__nv_bfloat16>(GetParam(), dense_shapes()); }

TEST_P(Ranks, AllSizesInF32) { expect_right_in<float>(GetParam(), dense_shapes()); }

TEST_P(Ranks, CallsThatFollowEachOtherAtOnce) {
  expect_right_in<__half>(GetParam(), {{35, 37, 29}, {48, 48, 16}}, 3, calls_at_once(8));
}

TEST_P(Ranks, RandomSizes) {
  const unsigned seed = 2025NN + static_cast<unsigned>(GetParam());
  SCOPED_TRACE("seed " + std::to_string(seed));
  expect_right_in<__half>(GetParam(), random_shapes(40, seed), seed);
}

TEST(NewChapterCost, IsAllOfAButTheOwnRows) {
  const Cost cost = NewChapter<__half>::cost({10, 4, 3}, 4, 2);  // 3, 3, 2 and 2 rows
  EXPECT_EQ(cost.messages, 3);
  EXPECT_EQ(cost.bytes_out, 3 * 2 * 3 * 2);
  EXPECT_EQ(cost.bytes_in, 8 * 3 * 2);
  EXPECT_EQ(cost.memory, 10 * 3 * 2);
  EXPECT_EQ(cost.products, 1);
  const Cost few = NewChapter<__half>::cost({2, 2, 2}, 4, 3);  // neither rows nor columns
  EXPECT_EQ(few.messages, 0);
  EXPECT_EQ(few.products, 0);
}

}  // namespace
}  // namespace overlap::new_chapter
