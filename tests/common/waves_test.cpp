#include "overlap/bench/waves.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace overlap {
namespace {

// 256 tiles, as in the article on async tensor parallelism: 2 waves on 132 SMs; on the 126 SMs that six busy
// ones leave, 2 waves and 4 more tiles.
TEST(WavesTest, TheArticlesExample) {
  const MatmulShape shape{4096, 4096, 4096};
  const Waves all = waves(shape, {256, 256}, 132);
  EXPECT_EQ(all.tiles, 256);
  EXPECT_EQ(all.waves, 2);
  EXPECT_EQ(all.in_last, 124);
  EXPECT_DOUBLE_EQ(all.waste, 8.0 / 264);
  const Waves fewer = waves(shape, {256, 256}, 126);
  EXPECT_EQ(fewer.waves, 3);
  EXPECT_EQ(fewer.in_last, 4);
  EXPECT_DOUBLE_EQ(fewer.waste, 122.0 / 378);
}

TEST(WavesTest, WholeWavesWasteNothing) {
  const Waves two = waves({128, 512, 1}, {64, 128}, 4);
  EXPECT_EQ(two.tiles, 8);
  EXPECT_EQ(two.waves, 2);
  EXPECT_EQ(two.in_last, 4);
  EXPECT_EQ(two.waste, 0);
}

TEST(WavesTest, PartialTilesCountAsTiles) {
  EXPECT_EQ(waves({65, 129, 1}, {64, 128}, 8).tiles, 4);
  EXPECT_EQ(waves({1, 1, 1}, {64, 128}, 8).tiles, 1);
  EXPECT_DOUBLE_EQ(waves({1, 1, 1}, {64, 128}, 8).waste, 7.0 / 8);
  // 64-bit: 2^40 tiles.
  EXPECT_EQ(waves({std::int64_t{1} << 26, std::int64_t{1} << 26, 1}, {64, 64}, 1).waves,
            std::int64_t{1} << 40);
}

TEST(WavesTest, NoTilesNoWaves) {
  const Waves none = waves({0, 512, 1}, {64, 128}, 8);
  EXPECT_EQ(none.tiles, 0);
  EXPECT_EQ(none.waves, 0);
  EXPECT_EQ(none.in_last, 0);
  EXPECT_EQ(none.waste, 0);
}

TEST(WavesTest, RefusesWhatIsNotPositive) {
  EXPECT_THROW(waves({1, 1, 1}, {0, 128}, 8), std::invalid_argument);
  EXPECT_THROW(waves({1, 1, 1}, {64, -1}, 8), std::invalid_argument);
  EXPECT_THROW(waves({1, 1, 1}, {64, 128}, 0), std::invalid_argument);
  EXPECT_THROW(waves({-1, 1, 1}, {64, 128}, 8), std::invalid_argument);
}

}  // namespace
}  // namespace overlap
