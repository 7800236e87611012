// Chapter 15 on any GPUs: look-ups find every row; plans by bitmaps and by lists are the same; both ways to
// add are right for every distribution of rows; owners are ranks that have the row, and share the work. Its
// other ways are in 15_sparse_beyond_wire_test.cu.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "15_sparse_beyond/contributor_owners.cuh"
#include "15_sparse_beyond/look_up.cuh"
#include "15_sparse_beyond/narrow_owners.cuh"
#include "15_sparse_beyond/planned_all_reduce.cuh"
#include "15_sparse_beyond/range_owners.cuh"
#include "sparse_search_tests.hpp"

#include "sparse_version_suite.hpp"

namespace overlap::sparse_beyond {
namespace {

const bool kBitmapPlan = test_sparse_version<VersionOf<BitmapPlanAllReduce>>("BitmapPlan");
const bool kContributorOwners =
    test_sparse_version<VersionOf<ContributorOwnersAllReduce>>("ContributorOwners");
const bool kRangeOwners = test_sparse_version<VersionOf<RangeOwnersAllReduce>>("RangeOwners");
INSTANTIATE_TEST_SUITE_P(Beyond, OnRanks, testing::Values(1, 2, 3, 4, 8), testing::PrintToStringParamName());

// ---- The look-ups, in the frame of versions 1 to 6 --------------------------------------------------------

TEST(BinarySearch, FindsEachRowThatIsThereAndNoOther) {
  run_ranks(1, [](Rank& rank) {
    expect_all_places(rank, kBlockThreads, BinarySearch(), {.before = sparse_nonzero::kNoRow, .rows = true});
  });
}

TEST(TableSearch, FindsEachRowAndIsNeverCleared) {
  run_ranks(1, [](Rank& rank) {
    const FrameAlone alone(rank, {2000, 1, 1});
    const TableSearch search(alone.frame);
    for (const std::int64_t size : sizes_around(kBlockThreads)) {
      const std::vector<std::int32_t> all = list_of<std::int32_t>(stride(size % 5, 2, size));
      // In any order, and not all of them: the content that other calls have left must not matter.
      std::vector<std::int32_t> own(all.rbegin(), all.rend());
      own.resize(static_cast<std::size_t>(size / 2 + 1));
      expect_places<std::int32_t>(rank, own, all, search, kAsInAnAllReduce);
    }
  });
}

TEST_P(OnRanks, LookUpsAreRightOnAllDistributions) {
  expect_right_on_distributions<TableAllReduce, std::int32_t, float>(GetParam());
  expect_right_on_distributions<BinaryAllReduce, std::int64_t, __half>(GetParam());
  expect_sums<TableAllReduce, std::int64_t, float>({rows_equal_in_32_bits(GetParam())}, "rows above 2^32");
  expect_sums<BinaryAllReduce, std::int64_t, float>({rows_equal_in_32_bits(GetParam())}, "rows above 2^32");
}

TEST(LookUpCost, IsThePagesCostCard) {
  const SparseCall call = {
      .ranks = 2, .rank = 1, .features = 2048, .local = 50'000, .most = 50'000, .global = 99'500};
  EXPECT_EQ(BinarySearch::cost(call).comparisons, 850'000);
  EXPECT_EQ(BinarySearch::cost(call).memory, 0);
  EXPECT_EQ(TableSearch::cost(call, 5'000'000).memory, 20'000'000);
  EXPECT_EQ(TableSearch::cost(call, 5'000'000).launches, 2);
}

// ---- The plan ---------------------------------------------------------------------------------------------

/// A table for which bits are exchanged, and one for which lists are, with the same rows.
std::array<SparseShape, 2> short_and_long_table(std::int64_t rows, std::int64_t entries) {
  return {SparseShape{rows, 1, std::max(entries, rows / 32 + 1)},
          SparseShape{rows + 4096 * entries, 1, entries}};
}

/// A rank whose `own` rows all have a place has lost none; once the places are overwritten, it has lost all.
void expect_lost_rows_counted(Rank& rank, const RowPlan<std::int32_t>& plan, const PlanCounts& counts,
                              std::int64_t own) {
  EXPECT_EQ(plan.lost_rows(counts, rank.stream()), 0);
  auto* const places = const_cast<std::int32_t*>(plan.places()) + rank.id() * plan.max_global();
  CUDA_CHECK(
      cudaMemsetAsync(places, 0xFF, static_cast<std::size_t>(counts.global) * sizeof *places, rank.stream()));
  EXPECT_EQ(plan.lost_rows(counts, rank.stream()), own);
}

TEST_P(OnRanks, PlansByBitsAndByListsAreTheSame) {
  const int ranks = GetParam();
  for (const Distribution& distribution : distributions(ranks)) {
    SCOPED_TRACE(distribution.name);
    const SparseData data(distribution.shape, distribution.entries, 1);
    const std::int64_t entries = std::max<std::int64_t>(distribution.shape.entries, 1);
    int which = 0;
    for (const SparseShape shape : short_and_long_table(distribution.shape.rows, entries)) {
      run_ranks(ranks, [&](Rank& rank) {
        RowPlan<std::int32_t> plan(rank, shape);
        EXPECT_EQ(plan.uses_bitmaps(), which == 0);
        const std::vector<std::int64_t> own = data.local_rows(rank.id());
        const auto rows = on_device(rank.device(), list_of<std::int32_t>(own));
        const auto found =
            on_device(rank.device(), std::vector<std::int32_t>{static_cast<std::int32_t>(own.size()), 0});
        CUDA_CHECK(cudaDeviceSynchronize());
        plan.build(own.empty() ? nullptr : rows.data(), found.data(), rank.stream());
        plan.publish(rank.stream());
        sparse_nonzero::HostWaits waits(rank);
        const PlanCounts counts = plan.wait(waits);
        rank.synchronize(rank.stream());
        EXPECT_EQ(on_host(plan.rows(), counts.global), list_of<std::int32_t>(data.global_rows()));
        for (int of = 0; of < ranks; ++of) {
          const std::vector<std::int64_t> theirs = data.local_rows(of);
          EXPECT_EQ(counts.local[static_cast<std::size_t>(of)], std::ssize(theirs));
          std::vector<std::int32_t> places;
          for (const std::int64_t row : data.global_rows()) {
            const auto at = std::lower_bound(theirs.begin(), theirs.end(), row);
            places.push_back(at != theirs.end() && *at == row ? static_cast<std::int32_t>(at - theirs.begin())
                                                              : -1);
          }
          EXPECT_EQ(on_host(plan.places() + of * plan.max_global(), counts.global), places) << "rank " << of;
        }
        expect_lost_rows_counted(rank, plan, counts, std::ssize(own));
        rank.barrier();
      });
      ++which;
    }
  }
}

TEST_P(OnRanks, ARankWithMoreRowsThanThereIsRoomForIsNamed) {
  const SparseShape shape{50, 3, 4};
  const SparseData right(shape, GetParam(), RowPattern::kUneven, 0, 3);
  run_ranks(GetParam(), [&](Rank& rank) {
    const int guilty = rank.size() - 1;
    const std::vector<std::int64_t> entries =
        rank.id() == guilty ? stride(1, 3, 5) : std::vector<std::int64_t>{2, 2, 2, 2, 2, 2};
    const std::string sentence =
        "rank " + std::to_string(guilty) + " has 5 different rows, and there is room for 4";
    ContributorOwnersAllReduce<std::int32_t, float> owners(rank, shape);
    expect_refused<std::int32_t, float>(rank, owners, shape, entries, sentence, right);
    BitmapPlanAllReduce<std::int32_t, float> plan(rank, shape);
    expect_refused<std::int32_t, float>(rank, plan, shape, entries, sentence, right);
  });
}

TEST_P(OnRanks, TheHostWaitsOnce) {
  const SparseData data({200, 2, 20}, GetParam(), RowPattern::kUneven, 3, 6);
  run_ranks(GetParam(), [&](Rank& rank) {
    ContributorOwnersAllReduce<std::int32_t, float> algorithm(rank, data.shape());
    expect_sum<std::int32_t, float>(rank, algorithm, data, "one call");
    EXPECT_EQ(algorithm.host_waits(), 1);
  });
}

// 8 ranks with bitmaps of 2^28 words: one scan over 9 times as many would be too long for CUB.
TEST(RowPlan, TakesListsWhereTheScanOfAllBitmapsWouldBeTooLong) {
  const std::int64_t words = (std::int64_t{1} << 28) - 32, entries = std::int64_t{1} << 27;
  EXPECT_EQ(RowPlan<std::int64_t>::message_bytes({32 * words, 1, entries}, 8), 16 + 8 * entries);
  EXPECT_EQ(RowPlan<std::int64_t>::message_bytes({32 * words, 1, entries}, 6), 16 + 4 * words);
}

TEST(RowPlan, SendsWhicheverIsSmaller) {
  for (const std::int64_t entries : {1, 3, 8, 100, 1000}) {
    for (std::int64_t rows = entries; rows < 100 * entries; rows += 1 + rows / 7) {
      const std::int64_t bitmap = (rows + 31) / 32 * 4, list = entries * 4;
      EXPECT_EQ(RowPlan<std::int32_t>::message_bytes({rows, 1, entries}, 4),
                16 + (std::min(bitmap, list) + 15) / 16 * 16)
          << entries << " of " << rows << " rows";
    }
  }
}

TEST(RowPlan, RefusesMoreThanTwoToTheThirtyRows) {
  EXPECT_THROW(
      run_ranks(1,
                [](Rank& rank) {
                  RowPlan<std::int64_t>(rank, {std::int64_t{1} << 40, 1, (std::int64_t{1} << 30) + 1});
                }),
      UsageError);
}

TEST_P(OnRanks, APlanServesSeveralGradients) {
  const SparseShape shape{200, 3, 20};
  run_ranks(GetParam(), [&](Rank& rank) {
    const SparseData first(shape, rank.size(), RowPattern::kUneven, 3, 6);
    Entries entries;
    for (int of = 0; of < rank.size(); ++of) entries.push_back(first.entries(of));
    const SparseData second(shape, entries, 7);  // the same rows, other values
    const DeviceGradient<std::int32_t, float> gradients[] = {{rank, first, SparseValues::kExact},
                                                             {rank, second, SparseValues::kExact}};
    ContributorOwnersAllReduce<std::int32_t, float> owners(rank, shape);
    RangeOwnersAllReduce<std::int32_t, float> ranges(rank, shape);
    BitmapPlanAllReduce<std::int32_t, float> dense(rank, shape);
    const auto expect_both = [&](auto& algorithm) {
      algorithm.plan(gradients[0].indices(), gradients[0].count(), rank.stream());
      for (const int which : {0, 1, 0}) {
        const auto result = algorithm.reduce(gradients[which].values(), rank.stream());
        rank.synchronize(rank.stream());
        EXPECT_EQ(difference(which == 0 ? first : second, SparseValues::kExact, result), "");
        rank.barrier();
      }
    };
    expect_both(owners);
    expect_both(ranges);
    expect_both(dense);
  });
}

/// A rank throws between the two halves of a call: the streams of the others wait for its rows and must be
/// released.
template <template <SparseIndex, Floating> class Algorithm>
void expect_a_rank_that_throws_to_end_the_run(int ranks) {
  const SparseData data({200, 2, 20}, ranks, RowPattern::kIdentical, 0, 3);
  try {
    run_ranks(ranks, [&](Rank& rank) {
      const DeviceGradient<std::int32_t, float> gradient(rank, data, SparseValues::kExact);
      Algorithm<std::int32_t, float> algorithm(rank, data.shape());
      algorithm.plan(gradient.indices(), gradient.count(), rank.stream());
      rank.barrier();
      if (rank.id() == ranks - 1) throw std::runtime_error("planted");
      EXPECT_THROW(
          {
            algorithm.reduce(gradient.values(), rank.stream());
            rank.synchronize(rank.stream());
          },
          RunStopped);
      throw RunStopped();
    });
    FAIL() << "the run was not stopped";
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(std::string(error.what()), "rank " + std::to_string(ranks - 1) + ": planted");
  }
}

TEST_P(OnRanks, ARankThatThrowsBehindThePlanEndsTheRun) {
  if (GetParam() == 1) GTEST_SKIP() << "nobody waits";
  expect_a_rank_that_throws_to_end_the_run<ContributorOwnersAllReduce>(GetParam());
  expect_a_rank_that_throws_to_end_the_run<RangeOwnersAllReduce>(GetParam());
  expect_a_rank_that_throws_to_end_the_run<BitmapPlanAllReduce>(GetParam());
}

// ---- Owners -----------------------------------------------------------------------------------------------

TEST(OwnerOf, IsARankThatHasTheRow) {
  for (std::uint32_t contributors = 1; contributors < 256; ++contributors) {
    for (std::int64_t row = 0; row < 50; ++row)
      EXPECT_NE(contributors >> owner_of(contributors, row) & 1, 0U) << contributors << ", row " << row;
  }
}

TEST(OwnerOf, SharesTheRowsEvenly) {
  for (const std::uint32_t contributors : {0b11U, 0b1011U, 0xFFU}) {
    std::vector<int> owned(8);
    for (std::int64_t row = 0; row < 8000; ++row)
      ++owned[static_cast<std::size_t>(owner_of(contributors, 7 * row))];
    const int ranks =
        static_cast<int>(std::count_if(owned.begin(), owned.end(), [](int n) { return n > 0; }));
    std::erase(owned, 0);
    for (const int rows : owned) EXPECT_NEAR(rows, 8000 / ranks, 400) << contributors;
  }
}

TEST(RangeOwners, ShareTheRowsEvenly) {
  for (const std::int64_t global : {0, 1, 7, 16, 1000}) {
    for (const int ranks : {1, 2, 3, 8, 16}) {
      EXPECT_EQ(range_begin(global, ranks, 0), 0);
      EXPECT_EQ(range_begin(global, ranks, ranks), global);
      for (int owner = 0; owner < ranks; ++owner) {
        const std::int64_t rows = range_begin(global, ranks, owner + 1) - range_begin(global, ranks, owner);
        EXPECT_TRUE(rows == global / ranks || rows == global / ranks + 1) << rows << " of " << global;
      }
    }
  }
}

/// Values of which the order of addition can be seen: 2^24 + 1 is 2^24 in f32.
TEST_P(OnRanks, OwnersAddInTheOrderOfTheRanks) {
  const int ranks = GetParam();
  std::vector<GivenGradient> gradients;
  float expected = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const float value = rank % 3 == 0 ? 16777216.0F : rank % 3 == 1 ? 1.0F : -16777215.0F;
    expected = rank == 0 ? value : expected + value;
    gradients.push_back({{}, {}});
    for (std::int64_t row = 0; row < 8; ++row) {  // so that several ranks own some
      gradients.back().rows.push_back(row);
      gradients.back().values.push_back(value);
    }
  }
  const auto contributors = result_of<ContributorOwnersAllReduce, std::int32_t, float>(20, 1, gradients);
  const auto ranges = result_of<RangeOwnersAllReduce, std::int32_t, float>(20, 1, gradients);
  for (std::int64_t row = 0; row < 8; ++row) {
    EXPECT_EQ(contributors.at(row, 0, 1), expected) << "row " << row;
    EXPECT_EQ(ranges.at(row, 0, 1), expected) << "row " << row;
  }
}

/// The sum of a row of -0 that only the last rank has, and of one that all ranks have.
template <template <SparseIndex, Floating> class Algorithm>
void expect_negative_zeros_kept(int ranks) {
  std::vector<GivenGradient> gradients(static_cast<std::size_t>(ranks), {{3}, {-0.0F}});
  gradients.back() = {{3, 5}, {-0.0F, -0.0F}};
  const auto sum = result_of<Algorithm, std::int32_t, float>(20, 1, gradients);
  for (const std::int64_t row : {3, 5}) {
    EXPECT_EQ(sum.at(row, 0, 1), 0) << "row " << row;
    EXPECT_TRUE(std::signbit(sum.at(row, 0, 1))) << "row " << row;
  }
}

// Owners add existing rows only, without zeros, so -0 stays -0. (In a dense sum the other ranks' zeros give
// +0.)
TEST_P(OnRanks, OwnersKeepNegativeZeros) {
  expect_negative_zeros_kept<ContributorOwnersAllReduce>(GetParam());
  expect_negative_zeros_kept<RangeOwnersAllReduce>(GetParam());
  expect_negative_zeros_kept<Bf16OwnersAllReduce>(GetParam());
}

}  // namespace
}  // namespace overlap::sparse_beyond
