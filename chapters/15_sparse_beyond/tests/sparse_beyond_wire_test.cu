// Chapter 15 on any GPUs, the variants that do not return every sum unchanged: sums sent in 16 bits are
// within their proven bound; sums that stay with their owners exist there and can be fetched.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "15_sparse_beyond/contributor_owners.cuh"
#include "15_sparse_beyond/fixed_owners.cuh"
#include "15_sparse_beyond/narrow_owners.cuh"

#include "sparse_version_suite.hpp"

namespace overlap::sparse_beyond {
namespace {

const bool kBf16Owners = test_sparse_version<VersionOf<Bf16OwnersAllReduce>>("Bf16Owners");
const bool kF16Owners = test_sparse_version<VersionOf<F16OwnersAllReduce>>("F16Owners");

// ---- 16 bits on the wire ----------------------------------------------------------------------------------

/// The largest error of a call with that data, in units of its proven bound: no element may be beyond it.
/// `values` become real numbers between -scale and scale.
template <template <SparseIndex, Floating> class Algorithm>
double error_over_bound(const SparseData& data, float scale, double u, double smallest) {
  const auto features = static_cast<std::size_t>(data.shape().features);
  const int ranks = data.ranks();
  std::vector<GivenGradient> gradients;
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<float> values(data.entries(rank).size() * features);
    data.fill<float>(rank, SparseValues::kReal, std::span<float>(values));
    for (float& value : values) value *= scale;
    gradients.push_back({data.entries(rank), std::move(values)});
  }
  const auto result = result_of<Algorithm, std::int32_t, float>(data.shape().rows, data.shape().features,
                                                                gradients, data.shape().entries);
  double worst = 0;
  for (std::size_t g = 0; g < result.indices.size(); ++g) {
    for (std::size_t column = 0; column < features; ++column) {
      double sum = 0, contributions = 0;
      for (const GivenGradient& own : gradients) {
        for (std::size_t j = 0; j < own.rows.size();
             ++j) {  // no rank has a row twice: nothing else is rounded
          if (own.rows[j] != result.indices[g]) continue;
          sum += static_cast<double>(own.values[j * features + column]);
          contributions += std::abs(static_cast<double>(own.values[j * features + column]));
        }
      }
      const double bound = narrow_bound(contributions, std::abs(sum), ranks, u, smallest);
      worst =
          std::max(worst, std::abs(static_cast<double>(result.values[g * features + column]) - sum) / bound);
    }
  }
  return worst;
}

constexpr double kBf16 = 0x1p-8, kBf16Smallest = 0x1p-133, kF16 = 0x1p-11, kF16Smallest = 0x1p-24;

TEST_P(OnRanks, WhatTravelsInSixteenBitsIsWithinItsBound) {
  for (const RowPattern pattern : {RowPattern::kUniform, RowPattern::kIdentical, RowPattern::kUneven}) {
    const SparseData data({60, 40, 20}, GetParam(), pattern, 0, 11);
    const double bf16 = error_over_bound<Bf16OwnersAllReduce>(data, 1, kBf16, kBf16Smallest);
    const double f16 = error_over_bound<F16OwnersAllReduce>(data, 1, kF16, kF16Smallest);
    // The error must not be far below the bound, because f32 instead of 16 bits would be within it, too.
    EXPECT_LE(bf16, 1);
    EXPECT_GT(bf16, 0.2);
    EXPECT_LE(f16, 1);
    EXPECT_GT(f16, 0.2);
    // Numbers below the smallest normal one of f16 have fewer bits there, and all of theirs in bf16.
    EXPECT_LE(error_over_bound<F16OwnersAllReduce>(data, 0x1p-18F, kF16, kF16Smallest), 1);
    EXPECT_GT(error_over_bound<F16OwnersAllReduce>(data, 0x1p-18F, kF16, 0), 1);
    EXPECT_LE(error_over_bound<Bf16OwnersAllReduce>(data, 0x1p-18F, kBf16, 0), 1);
  }
}

TEST(NarrowBound, IsTightForOneRank) {  // 1 + 2^-8 lies between two numbers of bf16, and goes to 1
  const auto result = result_of<Bf16OwnersAllReduce, std::int32_t, float>(5, 1, {{{3}, {1 + 0x1p-8F}}});
  EXPECT_EQ(result.at(3, 0, 1), 1);
  EXPECT_GT(narrow_bound(1 + 0x1p-8, 1 + 0x1p-8, 1, kBf16, 0), 0x1p-8);
}

TEST_P(OnRanks, LargeSumsAreInfiniteInF16AndNotInBf16) {
  std::vector<GivenGradient> gradients(static_cast<std::size_t>(GetParam()), {{2}, {65504}});
  const auto f16 = result_of<F16OwnersAllReduce, std::int32_t, float>(5, 1, gradients);
  const auto bf16 = result_of<Bf16OwnersAllReduce, std::int32_t, float>(5, 1, gradients);
  EXPECT_EQ(f16.at(2, 0, 1), GetParam() == 1 ? 65504 : std::numeric_limits<float>::infinity());
  EXPECT_NEAR(bf16.at(2, 0, 1), 65504.0 * GetParam(), 65504.0 * GetParam() * kBf16 * 2);
}

TEST_P(OnRanks, WhatHasSixteenBitsAlreadyTravelsAsItIs) {
  const SparseData data({50, 16, 20}, GetParam(), RowPattern::kUniform, 4, 5);
  run_ranks(GetParam(), [&](Rank& rank) {
    F16OwnersAllReduce<std::int32_t, __nv_bfloat16> owners(rank, data.shape());
    EXPECT_EQ(owners.kWireRoundoff, 0);
    expect_sum<std::int32_t, __nv_bfloat16>(rank, owners, data, "bf16 is not made f16", SparseValues::kReal);
  });
}

/// The numbers of owned, read and given rows, counted from the data.
template <typename OwnerOf>
OwnedRows owned_rows(const SparseData& data, int rank, const OwnerOf& owner_of_row) {
  OwnedRows rows;
  for (const std::int64_t row : data.global_rows()) {
    std::uint32_t contributors = 0;
    for (int of = 0; of < data.ranks(); ++of) {
      const auto& entries = data.entries(of);
      contributors |= std::uint32_t{std::find(entries.begin(), entries.end(), row) != entries.end()} << of;
    }
    const int owner = owner_of_row(contributors, row);
    if (owner == rank) {
      ++rows.owned;
      rows.pulled += __builtin_popcount(contributors & ~(1U << rank));
    } else if ((contributors >> rank & 1) != 0) {
      ++rows.given;
    }
  }
  return rows;
}

TEST(NarrowCost, IsHalfOfTheWideOne) {
  const SparseData data({4000, 8, 100}, 4, RowPattern::kUniform, 0, 3);
  for (int rank = 0; rank < 4; ++rank) {
    const SparseCall call = call_of(data, rank);
    const OwnedRows rows = owned_rows(data, rank, owner_of);
    const Cost wide = ContributorOwners<std::int32_t, float>::cost(call, rows);
    const Cost narrow = Bf16Owners<std::int32_t, float>::cost(call, rows);
    EXPECT_GT(wide.bytes_in, 0);
    EXPECT_EQ(2 * narrow.bytes_in, wide.bytes_in);
    EXPECT_EQ(2 * narrow.bytes_out, wide.bytes_out);
    EXPECT_EQ(narrow.launches, wide.launches + 1);
  }
}

// ---- Sums that stay with their owners ---------------------------------------------------------------------

const bool kScatter = test_sums<VersionOf<ReduceScatter>>("ReduceScatter", "OwnerKeepsSums");
const bool kFetch = test_sums<VersionOf<ReduceScatterFetch>>("Fetch", "OwnerKeepsSums");

TEST(HomeOf, SharesRowsOfAnyStrideEvenly) {
  for (const std::int64_t step : {1, 2, 8, 32, 33}) {
    std::array<int, 8> owned = {};
    for (std::int64_t row = 0; row < 8000; ++row) ++owned[static_cast<std::size_t>(home_of(step * row, 8))];
    for (const int rows : owned) EXPECT_NEAR(rows, 1000, 150) << "every " << step << "th row";
  }
}

TEST_P(OnRanks, TheOwnersTogetherHaveEachRowOnce) {
  const SparseData data({300, 2, 60}, GetParam(), RowPattern::kZipf, 0, 6);
  std::vector<std::vector<std::int32_t>> rows(static_cast<std::size_t>(GetParam()));
  run_ranks(GetParam(), [&](Rank& rank) {
    ReduceScatter<std::int32_t, float> algorithm(rank, data.shape());
    const DeviceGradient<std::int32_t, float> gradient(rank, data, SparseValues::kExact);
    const auto result = algorithm.run(gradient.indices(), gradient.values(), gradient.count(), rank.stream());
    rank.synchronize(rank.stream());
    rows[static_cast<std::size_t>(rank.id())] = on_host(result.indices, result.count);
    EXPECT_EQ(algorithm.host_waits(), 1);
    rank.barrier();
  });
  std::multiset<std::int64_t> all;
  for (const auto& own : rows) all.insert(own.begin(), own.end());
  EXPECT_TRUE(std::equal(all.begin(), all.end(), data.global_rows().begin(), data.global_rows().end()));
}

TEST(ReduceScatterCost, IsThePagesCostCard) {
  const SparseData data({4000, 8, 100}, 4, RowPattern::kUniform, 0, 3);
  std::int64_t in = 0, out = 0, fetched = 0;
  for (int rank = 0; rank < 4; ++rank) {
    const SparseCall call = call_of(data, rank);
    const OwnedRows rows =
        owned_rows(data, rank, [](std::uint32_t, std::int64_t row) { return home_of(row, 4); });
    const Cost scatter = FixedOwners<std::int32_t, float>::cost(call, rows);
    const Cost both = FixedOwnersFetch<std::int32_t, float>::cost(call, rows);
    in += scatter.bytes_in;
    out += scatter.bytes_out;
    fetched += both.bytes_in - scatter.bytes_in;
    EXPECT_EQ(both.bytes_in, both.bytes_out) << "what is given is fetched again";
  }
  EXPECT_EQ(in, out);
  EXPECT_EQ(in, fetched);
  EXPECT_NEAR(static_cast<double>(in), 0.75 * 400 * 8 * 4, 0.1 * 400 * 8 * 4);  // N (P - 1) / P rows
}

}  // namespace
}  // namespace overlap::sparse_beyond
