// The common defaults of a kind of chapter, and a chapter's overrides.
#include "overlap/program/chapter_info.hpp"

#include <gtest/gtest.h>

namespace overlap {
namespace {

TEST(ChapterInfoTest, AKindFillsInWhatIsOpen) {
  const ChapterInfo gather = gather_chapter({.name = "99_test"}), scatter = scatter_chapter({});
  EXPECT_EQ(gather.name, "99_test");
  EXPECT_EQ(gather.types.front(), ElementType::kF16);
  EXPECT_EQ(gather.on_virtual_gpus.shape_on(4), (MatmulShape{512, 2048, 512}));
  EXPECT_EQ(gather.on_real_gpus.shape_on(8), (MatmulShape{8192, 32768, 4096}));
  EXPECT_EQ(scatter.on_real_gpus.shape_on(8), (MatmulShape{8192, 4096, 32768}));
  EXPECT_TRUE(gather.on_race_build.has_value());
  EXPECT_FALSE(gather.sparse());
  EXPECT_TRUE(sparse_chapter({}).sparse());
  EXPECT_EQ(sparse_chapter({}).types.front(), ElementType::kF32);
}

TEST(ChapterInfoTest, WhatAChapterSaysStays) {
  const ChapterInfo own = gather_chapter({.on_virtual_gpus = {.shape = {1, 2, 3}, .gpus = 2},
                                          .on_race_build = {{.shape = {4, 5, 6}}},
                                          .types = {ElementType::kBf16}});
  EXPECT_EQ(own.on_virtual_gpus.shape, (MatmulShape{1, 2, 3}));
  EXPECT_EQ(own.on_virtual_gpus.gpus, 2);
  EXPECT_EQ(own.on_race_build->shape, (MatmulShape{4, 5, 6}));
  EXPECT_EQ(own.types, (std::vector<ElementType>{ElementType::kBf16}));
  EXPECT_EQ(own.on_real_gpus.gpus, 16);
}

TEST(ChapterInfoTest, WithoutTypesItIsIntegers) {
  EXPECT_EQ(ChapterInfo{}.element_types(), (std::vector<ElementType>{ElementType::kInt32}));
}

}  // namespace
}  // namespace overlap
