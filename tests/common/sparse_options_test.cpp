// The options of chapters on sparse gradients.
#include <gtest/gtest.h>

#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "overlap/gpu/backend.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/program/options.hpp"

namespace overlap {
namespace {

ChapterInfo sparse_chapter() {
  const ChapterDefaults defaults = {.gpus = 2, .sparse = {1000, 32, 60}, .duplicates = 6};
  return {.name = "99_test",
          .summary = "Tests the options.",
          .variants = {"plain"},
          .on_virtual_gpus = defaults,
          .on_real_gpus = defaults,
          .types = {ElementType::kF32}};
}

Options parsed(std::vector<const char*> words) {
  words.insert(words.begin(), "99_test");
  std::ostringstream out;
  const std::optional<Options> options =
      parse_options(static_cast<int>(words.size()), words.data(), sparse_chapter(), out);
  EXPECT_EQ(out.str(), "");
  return options.value();
}

TEST(SparseOptionsTest, Defaults) {
  const Options options = parsed({});
  EXPECT_TRUE(sparse_chapter().sparse());
  EXPECT_EQ(options.sparse.shape, (SparseShape{1000, 32, 60}));
  EXPECT_EQ(options.sparse.duplicates, 6);
  EXPECT_EQ(options.sparse.pattern, RowPattern::kUniform);
  EXPECT_EQ(options.sparse.index, IndexType::kInt32);
  EXPECT_EQ(options.timeout_s, backend::modelled_time() ? 0 : 240);
}

TEST(SparseOptionsTest, ManyVirtualGpusHaveAsManyEntriesAsEight) {
  EXPECT_EQ(parsed({"--gpus", "8"}).sparse.shape.entries, 60);
  EXPECT_EQ(parsed({"--gpus", "12"}).sparse.shape.entries, backend::modelled_time() ? 40 : 60);
  EXPECT_EQ(parsed({"--gpus", "12", "--entries", "50"}).sparse.shape.entries, 50);
}

TEST(SparseOptionsTest, Values) {
  const Options options = parsed({"--rows", "5000000000", "--features", "3", "--entries", "0", "--duplicates",
                                  "0", "--pattern", "zipf", "--index", "int64"});
  EXPECT_EQ(options.sparse.shape, (SparseShape{5'000'000'000, 3, 0}));
  EXPECT_EQ(options.sparse.duplicates, 0);
  EXPECT_EQ(options.sparse.pattern, RowPattern::kZipf);
  EXPECT_EQ(options.sparse.index, IndexType::kInt64);
}

TEST(SparseOptionsTest, EveryNameIsAccepted) {
  for (const RowPattern pattern : {RowPattern::kUniform, RowPattern::kZipf, RowPattern::kIdentical,
                                   RowPattern::kDisjoint, RowPattern::kUneven})
    EXPECT_EQ(parsed({"--pattern", name_of(pattern)}).sparse.pattern, pattern);
  for (const IndexType index : {IndexType::kInt32, IndexType::kInt64})
    EXPECT_EQ(parsed({"--index", name_of(index)}).sparse.index, index);
}

TEST(SparseOptionsTest, WhatCannotBeUsedIsRefused) {
  const auto refusal = [](const std::vector<const char*>& words) -> std::string {
    try {
      parsed(words);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal({"--rows", "0"}), "--rows: 0 is not between 1 and 4611686018427387904");
  EXPECT_EQ(refusal({"--entries", "-1"}), "--entries: -1 is not between 0 and 4611686018427387904");
  EXPECT_EQ(refusal({"--features", "x"}), "--features: 'x' is not a whole number");
  EXPECT_EQ(refusal({"--index", "int8"}), "--index: 'int8' is not known (known: int32, int64)");
  EXPECT_EQ(refusal({"--rows", "2147483648"}), "--index: int32 cannot number so many --rows");
  EXPECT_EQ(refusal({"--rows", "2147483647"}), "");
  EXPECT_EQ(refusal({"--entries", "0", "--duplicates", "1"}), "--duplicates: there is no row to repeat");
  EXPECT_EQ(refusal({"--m", "4"}), "--m: unknown option");
  EXPECT_NE(refusal({"--rows", "4000000000", "--index", "int64", "--features", "4000000000"}), "");
}

}  // namespace
}  // namespace overlap
