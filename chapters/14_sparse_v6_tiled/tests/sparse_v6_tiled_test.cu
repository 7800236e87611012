// Chapter 14 on any GPUs: version 6 and its variants are right for every distribution of rows, every number
// of rows per block, and every position of the rows in the global list.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "14_sparse_v6_tiled/ordered_search.cuh"
#include "14_sparse_v6_tiled/prefetch_search.cuh"

#include "sparse_version_suite.hpp"

namespace overlap::sparse_tiled {
namespace {

const bool kOrderedSearch = test_sparse_version<VersionOf<OrderedSearchAllReduce>>("OrderedSearch");
INSTANTIATE_TEST_SUITE_P(OrderedSearch, OnRanks, testing::Values(1, 2, 3, 4, 8),
                         testing::PrintToStringParamName());

TEST_P(OnRanks, MakesTheHostWaitAsOftenAsItsCostCardSays) {
  expect_host_waits_of_the_cost_card<OrderedSearchAllReduce>(GetParam());
}

// Few rows per block, so that there are many blocks, the last one with fewer rows, even if a rank has few
// rows.
template <SparseIndex Index, Floating T>
class Ordered : public OrderedSearchAllReduce<Index, T> {
 public:
  Ordered(Rank& rank, SparseShape shape) : OrderedSearchAllReduce<Index, T>(rank, shape, 3) {}
};
template <SparseIndex Index, Floating T>
class AllRows : public OrderedSearchAllReduce<Index, T> {
 public:
  AllRows(Rank& rank, SparseShape shape) : OrderedSearchAllReduce<Index, T>(rank, shape, 8, Compare::kAll) {}
};
template <SparseIndex Index, Floating T>
class Skip : public OrderedSearchAllReduce<Index, T> {
 public:
  Skip(Rank& rank, SparseShape shape)
      : OrderedSearchAllReduce<Index, T>(rank, shape, 7, Compare::kUnmatched) {}
};
template <SparseIndex Index, Floating T>
class Prefetch : public PrefetchSearchAllReduce<Index, T> {
 public:
  Prefetch(Rank& rank, SparseShape shape) : PrefetchSearchAllReduce<Index, T>(rank, shape, 33) {}
};

TEST_P(OnRanks, EachVariantIsRightOnEveryDistribution) {
  expect_right_on_distributions<Ordered, std::int64_t, float>(GetParam());
  expect_right_on_distributions<AllRows, std::int32_t, float>(GetParam());
  expect_right_on_distributions<Skip, std::int32_t, float>(GetParam());
  expect_right_on_distributions<Prefetch, std::int64_t, float>(GetParam());
}

TEST_P(OnRanks, EachVariantIsRightInEveryType) {
  expect_right_with_any_features<Ordered, std::int64_t, __half>(GetParam());
  expect_right_with_any_features<Prefetch, std::int32_t, __nv_bfloat16>(GetParam());
}

TEST_P(OnRanks, EachVariantIsRightOnRandomGradients) {  // 200 in all, over the five numbers of ranks
  const std::uint64_t seed = 20261124 + 1000 * static_cast<std::uint64_t>(GetParam());
  expect_right_on_random_gradients<Ordered, std::int32_t, float>(GetParam(), seed, 20);
  expect_right_on_random_gradients<Prefetch, std::int64_t, __half>(GetParam(), seed + 20, 20);
}

TEST_P(OnRanks, IsRightAroundBlocksAndTiles) {
  expect_right_with_sizes_around<OrderedSearchAllReduce, std::int32_t, float>(GetParam(), kRowsPerBlock);
  expect_right_with_sizes_around<Prefetch, std::int64_t, float>(GetParam(), kSweepThreads);
}

TEST_P(OnRanks, EachVariantIsRightCallAfterCall) {
  expect_right_call_after_call<Ordered, std::int32_t, float>(GetParam());
  expect_right_call_after_call<Prefetch, std::int64_t, __half>(GetParam());
}

TEST_P(OnRanks, EachVariantTellsRowsApartThatAreEqualInThirtyTwoBits) {
  const SparseData data = rows_equal_in_32_bits(GetParam());
  expect_sums<Ordered, std::int64_t, float>({data}, "rows above 2^32");
  expect_sums<Skip, std::int64_t, float>({data}, "rows above 2^32, skip");
  expect_sums<Prefetch, std::int64_t, float>({data}, "rows above 2^32, prefetch");
}

// ---- The search alone -------------------------------------------------------------------------------------

/// All searches of the chapter, by name.
struct Search {
  std::string name;
  Compare compare;
  bool prefetch;
};
const std::vector<Search> kSearches = {{"ordered", Compare::kInRange, false},
                                       {"all rows", Compare::kAll, false},
                                       {"skip", Compare::kUnmatched, false},
                                       {"prefetch", Compare::kInRange, true},
                                       {"all rows, prefetch", Compare::kAll, true}};

/// A global list and the positions of the local rows in it, both ascending.
struct Lists {
  std::vector<std::int64_t> global, places;
};

/// Every third number, and the local rows at `places`.
Lists lists_with(std::int64_t global, std::vector<std::int64_t> places) {
  return {stride(2, 3, global), std::move(places)};
}

/// Searches these lists in each way with each of these numbers of rows per block. Nothing is written but the
/// positions.
template <SparseIndex Index>
void expect_places(Rank& rank, const Lists& lists, const std::vector<int>& rows_per_block) {
  constexpr std::int32_t kUntouched = 0x5a5a5a5a;
  constexpr std::size_t kBehind = 300;  // more than a block of threads
  const auto rows = static_cast<std::int64_t>(lists.places.size());
  std::vector<Index> local;
  for (const std::int64_t place : lists.places)
    local.push_back(static_cast<Index>(lists.global[static_cast<std::size_t>(place)]));
  const std::vector<Index> global(lists.global.begin(), lists.global.end());
  std::vector<std::int32_t> expected(lists.places.begin(), lists.places.end());
  expected.resize(expected.size() + kBehind, kUntouched);
  // Arrays of the exact sizes, so that the GPU or a tool detects a read behind an end.
  const auto local_on_gpu = on_device(rank.device(), local), global_on_gpu = on_device(rank.device(), global);
  const RowList<Index> local_rows{local_on_gpu.data(), rows};
  const RowList<Index> global_rows{global_on_gpu.data(), std::ssize(global)};
  const DeviceBuffer<std::int32_t> positions(rank.device(), expected.size());
  for (const int per_block : rows_per_block) {
    for (const Search& search : kSearches) {
      CUDA_CHECK(cudaMemset(positions.data(), 0x5a, positions.bytes()));
      CUDA_CHECK(cudaDeviceSynchronize());
      if (search.prefetch) {
        PrefetchSearch(per_block, search.compare)(local_rows, global_rows, positions.data(), rank.stream());
      } else {
        OrderedSearch(per_block, search.compare)(local_rows, global_rows, positions.data(), rank.stream());
      }
      rank.synchronize(rank.stream());
      EXPECT_EQ(on_host(positions.data(), static_cast<std::int64_t>(expected.size())), expected)
          << search.name << ": " << rows << " rows among " << global.size() << ", " << per_block
          << " per block";
    }
  }
}

/// One rank with its GPU.
void on_a_gpu(const std::function<void(Rank&)>& test) { run_ranks(1, test); }

TEST(OrderedSearchAlone, IsRightWithEachNumberOfRowsPerBlock) {
  std::vector<int> all;
  for (int rows = 1; rows < kSweepThreads; ++rows) all.push_back(rows);
  on_a_gpu([&](Rank& rank) { expect_places<std::int32_t>(rank, lists_with(700, stride(1, 2, 260)), all); });
}

// Sizes around multiples of the rows per block: the last block has all of its rows, or one, or lacks one.
TEST(OrderedSearchAlone, IsRightAroundMultiplesOfTheRowsPerBlock) {
  on_a_gpu([](Rank& rank) {
    for (const int per_block : {1, 8, 31, 32, 33, 64, 255}) {
      for (const std::int64_t blocks : {1, 2, 5}) {
        for (const std::int64_t more : {-1, 0, 1}) {
          const std::int64_t rows = std::max<std::int64_t>(1, blocks * per_block + more);
          expect_places<std::int64_t>(rank, lists_with(rows + 300, stride(0, 1, rows)), {per_block});
        }
      }
    }
  });
}

// Lists that end with a tile, one entry before and one behind its end.
TEST(OrderedSearchAlone, IsRightAroundTiles) {
  on_a_gpu([](Rank& rank) {
    for (const std::int64_t entries : {1, 255, 256, 257, 511, 512, 513, 1025}) {
      expect_places<std::int32_t>(rank, lists_with(entries, {entries - 1}), {1, 32});
      expect_places<std::int32_t>(rank, lists_with(entries, stride(0, 1, entries)), {7, 255});
    }
  });
}

// The worst cases. For the start: all rows are at the end, and the sweep begins at the beginning. For the
// early end: all rows but one are in front. And the best case: rows and entries are the same.
TEST(OrderedSearchAlone, IsRightWhereOrderHelpsLeastAndMost) {
  on_a_gpu([](Rank& rank) {
    expect_places<std::int32_t>(rank, lists_with(3000, stride(2900, 1, 100)), {1, 32, 99, 100});
    std::vector<std::int64_t> places = stride(0, 1, 100);
    places.push_back(2999);
    expect_places<std::int32_t>(rank, lists_with(3000, places), {1, 32, 100, 101, 102});
    expect_places<std::int64_t>(rank, lists_with(1500, stride(0, 1, 1500)), {1, 32, 255});
  });
}

// Numbers that other versions use as padding: -1 is no row's number in either list, but 0 is.
TEST(OrderedSearchAlone, FindsTheFirstAndTheLastNumberThereIs) {
  on_a_gpu([](Rank& rank) {
    const std::int64_t last = std::numeric_limits<std::int64_t>::max() - 1;
    expect_places<std::int64_t>(rank, {{0, 1, last - 1, last}, {0, 3}}, {1, 2, 32});
    expect_places<std::int32_t>(rank, {{0, INT32_MAX - 1}, {0, 1}}, {1, 2, 32});
  });
}

TEST(OrderedSearchAlone, IsRightOnRandomLists) {
  constexpr std::uint64_t kSeed = 20261125;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  on_a_gpu([](Rank& rank) {
    std::mt19937_64 draw(kSeed);
    const auto below = [&](std::int64_t count) {
      return static_cast<std::int64_t>(draw() % static_cast<std::uint64_t>(count));
    };
    for (int i = 0; i < 200; ++i) {
      Lists lists;
      std::int64_t number = below(3);
      for (const std::int64_t end = 1 + below(1500); std::ssize(lists.global) < end;) {
        lists.global.push_back(number);
        number += 1 + below(4);
      }
      const std::int64_t step = 1 + below(9);  // the average distance of two local rows
      for (std::int64_t place = below(step); place < std::ssize(lists.global); place += 1 + below(2 * step))
        lists.places.push_back(place);
      if (lists.places.empty()) continue;
      expect_places<std::int32_t>(rank, lists, {1 + static_cast<int>(below(kSweepThreads - 1))});
    }
  });
}

/// The message of the exception from making an algorithm with so many rows per block.
template <template <SparseIndex, Floating> class Algorithm>
std::string refusal_with(int rows_per_block) {
  try {
    run_ranks(1, [&](Rank& rank) { Algorithm<std::int32_t, float>(rank, {9, 1, 1}, rows_per_block); });
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

/// The message of a search's exception.
template <typename Search>
std::string refusal_of(int rows_per_block) {
  try {
    Search{rows_per_block};
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

std::string refusal(int rows_per_block) {
  return "rows per block: " + std::to_string(rows_per_block) + " is not between 1 and 255";
}

TEST(OrderedSearchAlone, TakesSomeRowsPerBlockAndFewerThanThreads) {
  for (const int rows : {-1, 0, kSweepThreads, kSweepThreads + 1}) {
    EXPECT_EQ(refusal_of<OrderedSearch>(rows), refusal(rows));
    EXPECT_EQ(refusal_of<PrefetchSearch>(rows), refusal(rows));
  }
  // The all-reduce passes the number on. On real GPUs a refused run takes a second, because its communicator
  // is aborted.
  EXPECT_EQ(refusal_with<OrderedSearchAllReduce>(kSweepThreads), "rank 0: " + refusal(kSweepThreads));
  EXPECT_EQ(refusal_with<PrefetchSearchAllReduce>(0), "rank 0: " + refusal(0));
  for (const int rows : {1, kSweepThreads - 1}) EXPECT_EQ(refusal_with<OrderedSearchAllReduce>(rows), "");
}

// ---- The cost card ----------------------------------------------------------------------------------------

TEST(OrderedSearchCost, CountsWhatABlockSweeps) {
  // 4 rows, at places 0, 256, 512 and 768 of 1024. One row per block: block k sweeps tiles 0 to k.
  EXPECT_EQ(sweep_comparisons(4, 1024, 1, Compare::kAll), 256 * (1 + 2 + 3 + 4));
  // And each of its last tile's entries is compared with the row once more.
  EXPECT_EQ(sweep_comparisons(4, 1024, 1, Compare::kInRange), 256 * (1 + 2 + 3 + 4) + 256 * 4);
  // Two blocks of two rows each: the first one sweeps tiles 0 and 1, the second one all four.
  EXPECT_EQ(sweep_comparisons(4, 1024, 2, Compare::kAll), 2 * 256 * (2 + 4));
  EXPECT_EQ(sweep_comparisons(4, 1024, 2, Compare::kInRange), 256 * (2 + 4) + 2 * 256 * (2 + 2));
  // The last tile may be short, and so may the last block.
  EXPECT_EQ(sweep_comparisons(3, 450, 2, Compare::kAll), 2 * 256 + 450);
  EXPECT_EQ(sweep_comparisons(0, 300, 2, Compare::kAll), 0);
  // If all ranks have the same rows, block k begins at its own rows and ends with them.
  EXPECT_EQ(sweep_comparisons(1024, 1024, 256, Compare::kAll), 1024 * 256);
}

TEST(OrderedSearchCost, IsThePagesCostCard) {
  const sparse_nonzero::SparseCall call = {
      .ranks = 8, .rank = 1, .features = 2048, .local = 50'000, .most = 50'000, .global = 386'277};
  using Version32 = OrderedSearchAllReduce<std::int32_t, float>;
  const Cost cost = Version32::cost(call);
  EXPECT_EQ(cost.launches, 1);
  EXPECT_EQ(cost.memory, 0);
  EXPECT_EQ(cost.host_waits, 3);
  EXPECT_EQ(cost.comparisons, 162'733'194);
  EXPECT_EQ(Version32::cost(call, kRowsPerBlock, Compare::kAll).comparisons, 8'431'671'184);
  EXPECT_EQ(Version32::cost(call, 8, Compare::kAll).comparisons, 8'420'877'472);
  sparse_nonzero::SparseCall none = call;
  none.local = 0;
  EXPECT_EQ(Version32::cost(none).comparisons, 0);
  EXPECT_EQ(Version32::cost(none).launches, 0);
}

}  // namespace
}  // namespace overlap::sparse_tiled
