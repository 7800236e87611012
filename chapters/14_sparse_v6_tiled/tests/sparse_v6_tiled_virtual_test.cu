// Chapter 14 on virtual GPUs: right in any order of events, moving just the bytes of its cost card, and the
// gain from the order of rows in the model.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "13_sparse_v5_kernel/tile_search.cuh"
#include "14_sparse_v6_tiled/ordered_search.cuh"
#include "14_sparse_v6_tiled/prefetch_search.cuh"

#include "far_rows.hpp"
#include "sparse_virtual_suite.hpp"

namespace overlap::sparse_tiled::virtual_gpus {
namespace {

INSTANTIATE_TYPED_TEST_SUITE_P(OrderedSearch, SparseVersionOnVirtualGpus, VersionOf<OrderedSearchAllReduce>);

template <SparseIndex Index, Floating T>
class AllRows : public OrderedSearchAllReduce<Index, T> {
 public:
  AllRows(Rank& rank, SparseShape shape)
      : OrderedSearchAllReduce<Index, T>(rank, shape, kRowsPerBlock, Compare::kAll) {}
};
template <SparseIndex Index, Floating T>
class Skip : public OrderedSearchAllReduce<Index, T> {
 public:
  Skip(Rank& rank, SparseShape shape)
      : OrderedSearchAllReduce<Index, T>(rank, shape, kRowsPerBlock, Compare::kUnmatched) {}
};

template <SparseIndex Index, Floating T>
class OneRow : public OrderedSearchAllReduce<Index, T> {
 public:
  OneRow(Rank& rank, SparseShape shape) : OrderedSearchAllReduce<Index, T>(rank, shape, 1) {}
};
template <SparseIndex Index, Floating T>
class OneRowPrefetch : public PrefetchSearchAllReduce<Index, T> {
 public:
  OneRowPrefetch(Rank& rank, SparseShape shape) : PrefetchSearchAllReduce<Index, T>(rank, shape, 1) {}
};

// The time depends on the number of blocks.
TEST_F(OnVirtualGpus, BlocksHaveTheRowsThatAreAskedFor) {
  const SparseData data({12'000, 4, 400}, 4, RowPattern::kUniform, 0, 1);
  EXPECT_NE(map_ms<OneRow>(data), map_ms<OrderedSearchAllReduce>(data));
  EXPECT_NE(map_ms<OneRowPrefetch>(data), map_ms<PrefetchSearchAllReduce>(data));
}

TEST_F(OnVirtualGpus, PrefetchingIsRightInTenSchedules) {
  expect_right_in_schedules<PrefetchSearchAllReduce>(10);
}

// Version 5 compares all with all, the article's version 6 less than half of that, this one a small part; and
// skipping rows that have a match takes longer than comparing them.
TEST_F(OnVirtualGpus, EachUseOfTheOrderSavesTimeInTheModelAndSkippingDoesNot) {
  const SparseData data({12'000, 4, 400}, 4, RowPattern::kUniform, 0, 1);
  const double v5 = map_ms<sparse_kernel::TileSearchAllReduce>(data), all_rows = map_ms<AllRows>(data);
  const double ordered = map_ms<OrderedSearchAllReduce>(data);
  EXPECT_LT(all_rows, v5 / 2);
  EXPECT_LT(ordered, all_rows);
  EXPECT_GT(map_ms<Skip>(data), all_rows);
}

/// Rank 0 has the rows `own`, rank 1 all rows of the table but a few.
SparseData two_ranks(std::vector<std::int64_t> own, std::int64_t table) {
  return SparseData({table, 1, table}, {std::move(own), stride(0, 1, table)}, 1);
}

// A block whose rows are in front ends after the first tile. The block is not full: it must not wait for more
// rows than it has.
TEST_F(OnVirtualGpus, TheSweepEndsWithTheLastMatchInTheModel) {
  const double front = map_ms<AllRows>(two_ranks({3, 5}, 4000));
  const double back = map_ms<AllRows>(two_ranks({3, 3995}, 4000));
  EXPECT_LT(front, 0.7 * back);
}

// If all ranks have the same rows, each block begins with the tile of its first row and ends with it.
TEST_F(OnVirtualGpus, TheSweepBeginsWithTheFirstPossibleTileInTheModel) {
  const double same = map_ms<AllRows>(two_ranks(stride(0, 1, 2048), 2048));
  const double v5 = map_ms<sparse_kernel::TileSearchAllReduce>(two_ranks(stride(0, 1, 2048), 2048));
  EXPECT_LT(same, v5 / 2);
}

/// The longest possible lists, which are equal; the rows of the last block are in the last tile.
template <typename Kernel>
void expect_last_rows(const Kernel& kernel) {
  constexpr std::int64_t count = INT32_MAX, rows = count % kRowsPerBlock, tile = kSweepThreads;
  const DeviceBuffer<std::int32_t> list(0, count), positions(0, count);
  std::vector<std::int32_t> numbers;
  for (std::int64_t place = count / tile * tile; place < count; ++place)
    numbers.push_back(static_cast<std::int32_t>(place));
  put(list, count / tile * tile, numbers);
  const auto blocks = static_cast<unsigned>(sweep_blocks(count, kRowsPerBlock));
  run_block(blocks - 1, [&] {
    kernel<<<blocks, kSweepThreads>>>(list.data(), count, list.data(), count, kRowsPerBlock,
                                      positions.data());
  });
  for (std::int64_t row = count - rows; row < count; ++row) EXPECT_EQ(at(positions, row), row);
  EXPECT_EQ(at(positions, count - rows - 1), -1) << "another block's";
}

// Only row numbers, fewer than 2^31 of them, but 2^33 bytes.
TEST_F(FarRows, TheLastRowsOfTheLongestListsAreFound) {
  expect_last_rows(ordered_search<Compare::kInRange, std::int32_t>);
  expect_last_rows(ordered_search<Compare::kAll, std::int32_t>);
  expect_last_rows(ordered_search<Compare::kUnmatched, std::int32_t>);
  expect_last_rows(prefetch_search<Compare::kInRange, std::int32_t>);
  expect_last_rows(prefetch_search<Compare::kAll, std::int32_t>);
}

}  // namespace
}  // namespace overlap::sparse_tiled::virtual_gpus
