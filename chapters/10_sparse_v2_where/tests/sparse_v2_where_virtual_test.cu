// Chapter 10 on virtual GPUs: right in any order of events, moving just the bytes of its cost card, faster
// than version 1, and still bound by its launches.
#include <gtest/gtest.h>

#include "10_sparse_v2_where/where.cuh"

#include "far_rows.hpp"
#include "sparse_virtual_suite.hpp"

namespace overlap::sparse_where {
namespace {

INSTANTIATE_TYPED_TEST_SUITE_P(Where, SparseVersionOnVirtualGpus, VersionOf<WhereAllReduce>);

SparseData uniform(int ranks, std::int64_t entries) {
  return SparseData({17 * entries, 8, entries}, ranks, RowPattern::kUniform, 0, 1);
}

TEST_F(OnVirtualGpus, IsFasterThanVersion1InTheModel) {
  for (const int ranks : {1, 4, 8}) {
    const SparseData data = uniform(ranks, 120);
    EXPECT_LT(map_ms<WhereAllReduce>(data), 0.8 * map_ms<sparse_nonzero::NonzeroAllReduce>(data))
        << ranks << " ranks";
  }
}

// Eight ranks have about seven times as many global rows to compare with as one has. If the comparisons took
// the time, it would be seven times as long.
TEST_F(OnVirtualGpus, IsBoundByItsLaunchesInTheModel) {
  const double one = map_ms<WhereAllReduce>(uniform(1, 120));
  EXPECT_LT(map_ms<WhereAllReduce>(uniform(8, 120)), 1.5 * one);
  EXPECT_GT(map_ms<WhereAllReduce>(uniform(1, 240)), 1.9 * one);
}

// Only row numbers, fewer than 2^31 of them, but 2^33 bytes.
TEST_F(FarRows, TheLastPlaceOfTheLongestListIsFound) {
  constexpr std::int64_t count = INT32_MAX, last = count - 1;
  const DeviceBuffer<std::int32_t> global(0, count), sources(0, count), positions(0, 8), numbers(0, 2);
  const DeviceBuffer<char> flags(0, count);
  constexpr std::int32_t wanted = 77, step = 5;
  put(numbers, 0, {wanted, step});
  put(global, last, {wanted});
  const unsigned blocks = blocks_for(count);
  run_block(blocks - 1, [&] {
    sparse_nonzero::mark_equal<<<blocks, kBlockThreads>>>(global.data(), count, numbers.data(), flags.data());
  });
  run_block(blocks - 1, [&] {
    write_where<<<blocks, kBlockThreads>>>(flags.data(), count, numbers.data() + 1, sources.data());
  });
  run_block(blocks - 1,
            [&] { invert_sources<<<blocks, kBlockThreads>>>(sources.data(), count, positions.data()); });
  EXPECT_EQ(at(flags, last - 1), 0);
  EXPECT_EQ(at(flags, last), 1);
  EXPECT_EQ(at(sources, last - 1), sparse_nonzero::kNoRow);
  EXPECT_EQ(at(sources, last), step);
  EXPECT_EQ(at(positions, step), last);
}

}  // namespace
}  // namespace overlap::sparse_where
