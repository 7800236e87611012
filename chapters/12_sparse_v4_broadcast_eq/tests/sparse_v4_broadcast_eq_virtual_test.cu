// Chapter 12 on virtual GPUs: right in any order of events, moving just the bytes of its cost card, and
// faster than the loop of version 2.
#include <gtest/gtest.h>

#include <cstdint>

#include "10_sparse_v2_where/where.cuh"
#include "12_sparse_v4_broadcast_eq/broadcast_eq.cuh"

#include "far_rows.hpp"
#include "sparse_virtual_suite.hpp"

namespace overlap::sparse_broadcast_eq {
namespace {

INSTANTIATE_TYPED_TEST_SUITE_P(BroadcastEq, SparseVersionOnVirtualGpus, VersionOf<BroadcastEqAllReduce>);

// Two launches for all rows, where version 2 has two for each.
TEST_F(OnVirtualGpus, IsFasterThanVersion2InTheModel) {
  const SparseData data({1000, 8, 60}, 4, RowPattern::kUniform, 0, 1);
  EXPECT_LT(2 * map_ms<BroadcastEqAllReduce>(data), map_ms<sparse_where::WhereAllReduce>(data));
}

// The matrix has vectors of 16 bytes, so many that their indices exceed 2^31 and 2^32. One block compares a
// strip of rows; a block of the second kernel has the first eight of the rows that match.
TEST_F(FarRows, TheMatrixIsAddressedIn64Bits) {
  constexpr std::int64_t vectors = kMatrixThreads, columns = vectors * kFlagsPerVector;
  constexpr std::int64_t count = (std::int64_t{1} << 24) + kRowsOfStrip;
  ASSERT_EQ(vectors_per_row(columns), vectors);
  const DeviceBuffer<FlagVec16> matrix(0, count * vectors);
  EXPECT_EQ(matrix.bytes(), static_cast<std::size_t>(matrix_bytes(count, columns)));
  const DeviceBuffer<std::int32_t> local(0, count), global(0, columns), positions(0, count);
  const auto place_of = [](std::int64_t row) {
    return static_cast<std::int32_t>(row / 8192 + 61 * (row % 32));
  };
  std::vector<std::int32_t> numbers;
  for (std::int64_t column = 0; column < columns; ++column)
    numbers.push_back(static_cast<std::int32_t>(1000 + 3 * column));
  put(global, 0, numbers);
  const unsigned compare_blocks = matrix_blocks(vectors * (count / kRowsOfStrip), kMaxBlocks);
  const unsigned find_blocks = matrix_blocks(count * kWarp, kMaxBlocks);
  const std::vector<std::int64_t> firsts = {0, std::int64_t{1} << 23, std::int64_t{1} << 24};
  for (const std::int64_t first : firsts) {
    for (std::int64_t row = first; row < first + kRowsOfStrip; ++row)
      put(local, row, {numbers[static_cast<std::size_t>(place_of(row))]});
    run_block(static_cast<std::uint64_t>(first / kRowsOfStrip), [&] {
      compare_all<<<compare_blocks, kMatrixThreads>>>(local.data(), count, global.data(), columns,
                                                      matrix.data());
    });
  }
  // 2^23 warps take three rows each: the first block all that were compared.
  ASSERT_EQ(std::int64_t{find_blocks} * kMatrixThreads / kWarp, firsts[1]);
  run_block(0, [&] {
    find_true<<<find_blocks, kMatrixThreads>>>(matrix.data(), count, columns, positions.data());
  });
  for (const std::int64_t first : firsts) {
    for (std::int64_t row = first; row < first + kMatrixThreads / kWarp; ++row)
      EXPECT_EQ(at(positions, row), place_of(row)) << row;
  }
}

}  // namespace
}  // namespace overlap::sparse_broadcast_eq
