// Chapter 15 on virtual GPUs: right in any order of events, moving just the bytes of its cost card, and a
// look-up faster than the search of version 6.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "14_sparse_v6_tiled/ordered_search.cuh"
#include "15_sparse_beyond/contributor_owners.cuh"
#include "15_sparse_beyond/experiments/chunked_all_reduce.cuh"
#include "15_sparse_beyond/fixed_owners.cuh"
#include "15_sparse_beyond/look_up.cuh"
#include "15_sparse_beyond/narrow_owners.cuh"
#include "15_sparse_beyond/planned_all_reduce.cuh"
#include "15_sparse_beyond/range_owners.cuh"

#include "dense_run.hpp"
#include "sparse_virtual_tests.hpp"

namespace overlap::sparse_beyond {
namespace {

TEST_F(OnVirtualGpus, MoreRanksThanTheKernelsParametersHaveRoomForAreRefused) {
  vgpu::use_gpus(kMaxRanks + 1);
  const auto make = [](Rank& rank) { RangeOwnersAllReduce<std::int32_t, float>(rank, {100, 2, 5}); };
  expect_thrown<UsageError>([&] { run_ranks(kMaxRanks + 1, make); },
                            "have room for 16 ranks, and there are 17");
}

TEST_F(OnVirtualGpus, BitmapPlanIsRightInTwentySchedules) {
  expect_right_in_schedules<BitmapPlanAllReduce>(20);
}

TEST_F(OnVirtualGpus, ContributorOwnersAreRightInTwentySchedules) {
  expect_right_in_schedules<ContributorOwnersAllReduce>(20);
}

TEST_F(OnVirtualGpus, RangeOwnersAreRightInTwentySchedules) {
  expect_right_in_schedules<RangeOwnersAllReduce>(20);
}

TEST_F(OnVirtualGpus, NarrowOwnersAreRightInTwentySchedules) {
  expect_right_in_schedules<Bf16OwnersAllReduce>(20);
}

TEST_F(OnVirtualGpus, ReduceScatterIsRightInTwentySchedules) { expect_right_in_schedules<ReduceScatter>(20); }

TEST_F(OnVirtualGpus, FetchIsRightInTwentySchedules) { expect_right_in_schedules<ReduceScatterFetch>(20); }

TEST_F(OnVirtualGpus, ChunksAreRightInTwentySchedules) { expect_right_in_schedules<ChunkedAllReduce>(20); }

TEST_F(OnVirtualGpus, LookUpsTakeLessTimeThanTheSearchInTheModel) {
  // So many rows that two launches take less time than the comparisons of the search.
  const SparseData data({60'000, 1, 4'000}, 4, RowPattern::kUniform, 0, 1);
  const double search = map_ms<sparse_tiled::OrderedSearchAllReduce>(data);
  EXPECT_LT(map_ms<TableAllReduce>(data), search);
  EXPECT_LT(map_ms<BinaryAllReduce>(data), search);
}

/// Bytes that a call moves by copies and by NCCL, in and out.
template <template <SparseIndex, Floating> class Algorithm, typename... More>
void expect_bytes(int ranks, SparseShape shape, bool bitmaps, const More&... more) {
  vgpu::reset();
  const SparseData data(shape, ranks, RowPattern::kUneven, 0, 3);
  run_ranks(ranks, [&](Rank& rank) {
    Algorithm<std::int32_t, float> algorithm(rank, shape);
    EXPECT_EQ(algorithm.last_plan().uses_bitmaps(), bitmaps);
    const LinkTraffic moved = traffic_of_a_call(rank, algorithm, data);
    expect_bytes_of(Algorithm<std::int32_t, float>::cost(call_of(data, rank.id()), shape, more(data)...),
                    moved, rank.id());
  });
}

TEST_F(OnVirtualGpus, BitmapPlanMovesTheBytesOfItsCostCard) {
  for (const int ranks : {1, 2, 3, 8}) {
    expect_bytes<BitmapPlanAllReduce>(ranks, {200, 5, 40}, true);
    expect_bytes<BitmapPlanAllReduce>(ranks, {20'000, 5, 40}, false);
  }
}

/// The number of rows of each rank that each owner adds, if owners have ranges.
std::vector<std::vector<std::int64_t>> rows_of_ranges(const SparseData& data) {
  const int ranks = data.ranks();
  const auto global = static_cast<std::int64_t>(data.global_rows().size());
  std::vector<std::vector<std::int64_t>> rows;
  for (int rank = 0; rank < ranks; ++rank) {
    rows.emplace_back(ranks);
    for (const std::int64_t row : data.local_rows(rank)) {
      const auto at = std::lower_bound(data.global_rows().begin(), data.global_rows().end(), row);
      int owner = 0;
      while (range_begin(global, ranks, owner + 1) <= at - data.global_rows().begin()) ++owner;
      ++rows.back()[static_cast<std::size_t>(owner)];
    }
  }
  return rows;
}

TEST_F(OnVirtualGpus, RangeOwnersMoveTheBytesOfTheirCostCard) {
  for (const int ranks : {1, 2, 3, 8}) {
    expect_bytes<RangeOwnersAllReduce>(ranks, {200, 5, 40}, true, rows_of_ranges);
    expect_bytes<RangeOwnersAllReduce>(ranks, {20'000, 5, 40}, false, rows_of_ranges);
  }
}

/// The rank that adds each of the global rows, in so many chunks.
std::vector<int> owners_in_chunks(const SparseData& data, int chunks) {
  const std::vector<std::int64_t>& rows = data.global_rows();
  std::vector<int> owners;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const auto first = [&](int of) {
      return std::lower_bound(rows.begin(), rows.end(), data.shape().rows * of / chunks) - rows.begin();
    };
    const std::int64_t count = first(chunk + 1) - first(chunk);
    for (std::int64_t i = 0; i < count; ++i) {
      int owner = 0;
      while (count * (owner + 1) / data.ranks() <= i) ++owner;
      owners.push_back(owner);
    }
  }
  return owners;
}

/// Bytes that all ranks get in a call of the chunks: their plans, rows of others to add up, and sums.
std::int64_t bytes_in_chunks(const SparseData& data) {
  const std::vector<int> owners = owners_in_chunks(data, kChunks);
  std::int64_t rows = (data.ranks() - 1) * std::ssize(owners);
  for (int rank = 0; rank < data.ranks(); ++rank) {
    const std::vector<std::int64_t> own = data.local_rows(rank);
    for (std::size_t g = 0; g < owners.size(); ++g)
      rows += owners[g] != rank && std::binary_search(own.begin(), own.end(), data.global_rows()[g]);
  }
  const std::int64_t message = RowPlan<std::int32_t>::message_bytes(data.shape(), data.ranks());
  return data.ranks() * (data.ranks() - 1) * message + rows * data.shape().features * 4;
}

TEST_F(OnVirtualGpus, ChunksMoveEachRowOnceToItsOwnerAndBack) {
  for (const int ranks : {1, 2, 3, 8}) {
    vgpu::reset();
    const SparseData data({200, 5, 40}, ranks, RowPattern::kUneven, 0, 3);
    run_ranks(ranks, [&](Rank& rank) {
      ChunkedAllReduce<std::int32_t, float> sum(rank, data.shape());
      const LinkTraffic moved = traffic_of_a_call(rank, sum, data);
      std::int64_t bytes = 0;
      for (int to = 0; to < ranks; ++to) bytes += moved.into(to).bytes;
      EXPECT_EQ(bytes, bytes_in_chunks(data)) << ranks << " ranks";
    });
  }
}

}  // namespace
}  // namespace overlap::sparse_beyond
