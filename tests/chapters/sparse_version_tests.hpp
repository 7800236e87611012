// The tests of every version of the sparse all-reduce. Each function compares every row number and every
// value on every rank.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "09_sparse_v1_nonzero/sparse_cost.cuh"
#include "overlap/data/sparse_data.hpp"
#include "overlap/gpu/phase_clock.hpp"
#include "sparse_run.hpp"
#include "sparse_values.hpp"

namespace overlap {

/// A version, with all its types of indices and values, as one type.
template <template <SparseIndex, Floating> class Algorithm>
struct VersionOf {
  template <typename Index, typename T>  // with constraints g++ 12 takes it for no Algorithm where it is used
  using Type = Algorithm<Index, T>;
};

/// What decides the cost of a call with that gradient.
inline sparse_nonzero::SparseCall call_of(const SparseData& data, int rank) {
  sparse_nonzero::SparseCall call = {.ranks = data.ranks(), .rank = rank, .features = data.shape().features};
  const auto rows_of = [&](int other) { return static_cast<std::int64_t>(data.local_rows(other).size()); };
  for (int other = 0; other < data.ranks(); ++other) call.most = std::max(call.most, rows_of(other));
  call.local = rows_of(rank);
  call.global = static_cast<std::int64_t>(data.global_rows().size());
  return call;
}

/// All distributions of row numbers, each twice on one object, in another order of calls.
template <template <SparseIndex, Floating> class Algorithm, SparseIndex Index, Floating T>
void expect_right_on_distributions(int ranks) {
  expect_sums<Algorithm, Index, T>(distribution_cases(ranks, 2));
}

template <template <SparseIndex, Floating> class Algorithm, SparseIndex Index, Floating T>
void expect_right_on_random_gradients(int ranks, std::uint64_t first_seed, std::uint64_t count) {
  expect_sums<Algorithm, Index, T>(random_cases(ranks, first_seed, count));
}

/// More rows than 32 bits have numbers for: equal in the lower half are 5 and 2^32 + 5, on different ranks.
inline SparseData rows_equal_in_32_bits(int ranks) {
  const std::int64_t far = std::int64_t{1} << 32;
  Entries entries;
  for (int rank = 0; rank < ranks; ++rank) entries.push_back({5, far * (rank % 3) + 5, far + rank});
  return SparseData({4 * far, 3, 3}, std::move(entries), 1);
}

/// One object with gradients of many rows, of few, of none, and of many other ones.
template <template <SparseIndex, Floating> class Algorithm, SparseIndex Index, Floating T>
void expect_right_call_after_call(int ranks) {
  const auto gradient = [&](std::int64_t entries, RowPattern pattern, std::uint64_t seed) {
    const SparseData data({300, 5, entries}, ranks, pattern, entries / 4, seed);
    Entries lists;
    for (int rank = 0; rank < ranks; ++rank) lists.push_back(data.entries(rank));
    return SparseData({300, 5, 60}, lists, seed);  // the same shape for all: that of one object
  };
  expect_sums<Algorithm, Index, T>(
      {gradient(60, RowPattern::kUniform, 1), gradient(3, RowPattern::kUniform, 2),
       gradient(0, RowPattern::kUniform, 3), gradient(33, RowPattern::kZipf, 4),
       gradient(40, RowPattern::kUneven, 5), gradient(60, RowPattern::kIdentical, 6),
       gradient(1, RowPattern::kDisjoint, 7), gradient(60, RowPattern::kUneven, 8)},
      "calls of different sizes");
}

/// Rows of 1 to 300 features: fewer and more than a block has threads.
template <template <SparseIndex, Floating> class Algorithm, SparseIndex Index, Floating T>
void expect_right_with_any_features(int ranks) {
  std::vector<SparseCase> cases;
  for (const std::int64_t features : {1, 2, 3, 5, 8, 33, 256, 257, 300}) {
    cases.push_back({std::to_string(features) + " features",
                     {SparseData({50, features, 7}, ranks, RowPattern::kUniform, 3, 5)}});
  }
  expect_sums<Algorithm, Index, T>(cases);
}

/// Lists whose lengths lie around the sizes of warps, blocks and tiles.
template <template <SparseIndex, Floating> class Algorithm, SparseIndex Index, Floating T>
void expect_right_with_sizes_around(int ranks, std::int64_t tile) {
  std::vector<SparseCase> cases;
  for (const std::int64_t size : sizes_around(tile)) {
    cases.push_back({std::to_string(size) + " rows",
                     {SparseData({3 * size, 1, size}, ranks, RowPattern::kUniform, 0, 9)}});
  }
  expect_sums<Algorithm, Index, T>(cases);
}

/// NaN, infinities, zeros and denormals, in rows of two columns of rank 0 and the last rank; the ranks
/// between have other rows.
template <template <SparseIndex, Floating> class Algorithm, SparseIndex Index>
void expect_special_values(int ranks) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  constexpr float denormal = 3 * std::numeric_limits<float>::denorm_min();
  constexpr float kept = RoundsOnTheWire<Algorithm<Index, float>> ? 0 : denormal;
  std::vector<GivenGradient> gradients(static_cast<std::size_t>(ranks));
  for (int rank = 1; rank < ranks - 1; ++rank)
    gradients[static_cast<std::size_t>(rank)] = {{rank + 100}, {1, 2}};
  gradients.front() = {{10, 11, 12, 13, 14, 15, 16, 17},
                       {nan, 1, inf, 2, -inf, 3, 5, 6, 0, 0, denormal, 7, -0.0F, 8, 1, 1}};
  if (ranks > 1) gradients.back() = {{10, 12, 13, 15, 17}, {4, 4, inf, 4, -5, -6, denormal, 4, -1, -1}};
  const auto result = result_of<Algorithm, Index, float>(200, 2, gradients);
  const auto at = [&](std::int64_t row, std::size_t column) { return result.at(row, column, 2); };
  const float others = ranks > 1 ? 4 : 0;
  EXPECT_TRUE(std::isnan(at(10, 0)));
  EXPECT_EQ(at(10, 1), 1 + others) << "a NaN stays in its column";
  EXPECT_EQ(at(11, 0), inf);
  EXPECT_EQ(at(11, 1), 2);
  EXPECT_TRUE(ranks > 1 ? std::isnan(at(12, 0)) : at(12, 0) == -inf) << "-Inf and +Inf";
  EXPECT_EQ(at(12, 1), 3 + others);
  EXPECT_EQ(at(13, 0), ranks > 1 ? 0 : 5) << "a row that cancels is kept";
  EXPECT_EQ(at(13, 1), ranks > 1 ? 0 : 6);
  EXPECT_EQ(at(14, 0), 0) << "a row of zeros is kept";
  EXPECT_EQ(at(15, 0), ranks > 1 ? 2 * kept : kept) << "denormals are kept, where they travel in f32";
  EXPECT_EQ(at(16, 0), 0) << "-0 may become +0, since the others add zeros";
  EXPECT_EQ(at(16, 1), 8);
  EXPECT_EQ(at(17, 0), ranks > 1 ? 0 : 1);
  std::size_t nans = 0;
  for (const float value : result.values) nans += std::isnan(value) ? 1 : 0;
  EXPECT_EQ(nans, ranks > 1 ? 2U : 1U) << "in just these elements";
  EXPECT_EQ(result.indices.size(), 8U + static_cast<std::size_t>(std::max(0, ranks - 2)));
}

/// The same bits in each of `calls` calls of one object, of another object, and with both index types.
template <template <SparseIndex, Floating> class Algorithm>
void expect_same_bits_in_each_call(int ranks, int calls) {
  const SparseData data({80, 7, 25}, ranks, RowPattern::kUniform, 40, 3);
  const auto bits_of = [&]<SparseIndex Index>(Index) {
    std::vector<float> first;
    run_ranks(ranks, [&](Rank& rank) {
      Algorithm<Index, float> algorithm(rank, data.shape());
      const DeviceGradient<Index, float> gradient(rank, data, SparseValues::kReal);
      std::vector<float> of_rank;
      for (int call = 0; call < calls; ++call) {
        const auto result =
            algorithm.run(gradient.indices(), gradient.values(), gradient.count(), rank.stream());
        rank.synchronize(rank.stream());
        const std::vector<float> values = on_host(result.values, result.count * 7);
        if (call == 0) of_rank = values;
        EXPECT_TRUE(same_bits(values, of_rank)) << "call " << call << " of rank " << rank.id();
      }
      rank.barrier();
      if (rank.id() == 0) first = of_rank;
      rank.barrier();
      EXPECT_TRUE(same_bits(first, of_rank)) << "rank " << rank.id();
    });
    return first;
  };
  const std::vector<float> bits = bits_of(std::int32_t{});
  EXPECT_FALSE(bits.empty());
  EXPECT_TRUE(same_bits(bits_of(std::int32_t{}), bits)) << "another object";
  EXPECT_TRUE(same_bits(bits_of(std::int64_t{}), bits)) << "int64";
}

/// Right after many calls that follow each other at once, of two alternating gradients.
template <template <SparseIndex, Floating> class Algorithm>
void expect_right_after(int ranks, int calls) {
  const SparseData data[] = {{{80, 7, 25}, ranks, RowPattern::kUniform, 40, 3},
                             {{80, 7, 25}, ranks, RowPattern::kUneven, 0, 4}};
  run_ranks(ranks, [&](Rank& rank) {
    Algorithm<std::int32_t, float> algorithm(rank, data[0].shape());
    constexpr SparseValues exact = exact_values<Algorithm<std::int32_t, float>>();
    const DeviceGradient<std::int32_t, float> gradients[] = {{rank, data[0], exact}, {rank, data[1], exact}};
    for (int call = 0; call < calls; ++call) {
      const auto& gradient = gradients[call % 2];
      const auto result =
          algorithm.run(gradient.indices(), gradient.values(), gradient.count(), rank.stream());
      if (call + 2 < calls) continue;
      rank.synchronize(rank.stream());
      EXPECT_EQ(difference(data[call % 2], exact, result, promise_of(algorithm, data[call % 2], rank.id())),
                "")
          << "call " << call << " of rank " << rank.id();
    }
    rank.barrier();
  });
}

/// What run() refuses, on this rank; empty if it does not.
template <SparseIndex Index, Floating T, typename Algorithm>
std::string refusal_of(Algorithm& algorithm, const Index* indices, const T* values, std::int64_t entries,
                       cudaStream_t stream) {
  try {
    algorithm.run(indices, values, entries, stream);
  } catch (const SparseInputError& error) {
    return error.what();
  }
  return "";
}

/// All ranks have the same phases, also those without rows: a measurement compares them one by one.
template <template <SparseIndex, Floating> class Algorithm>
void expect_same_phases_on_all_ranks(int ranks) {
  const SparseData data({50, 2, 1}, ranks, RowPattern::kUneven, 0, 6);  // only the last rank has a row
  std::vector<std::vector<std::string>> names(static_cast<std::size_t>(ranks));
  run_ranks(ranks, [&](Rank& rank) {
    Algorithm<std::int32_t, float> algorithm(rank, data.shape());
    expect_sum<std::int32_t, float>(rank, algorithm, data, "one row");
    for (const Phase& phase : algorithm.phases())
      names[static_cast<std::size_t>(rank.id())].push_back(phase.name);
  });
  EXPECT_EQ(names.back().back(), "all_reduce");
  for (const std::vector<std::string>& of_rank : names) EXPECT_EQ(of_rank, names.back());
}

/// How often a call makes the host of each rank wait: as often as cost() says.
template <template <SparseIndex, Floating> class Algorithm>
void expect_host_waits_of_the_cost_card(int ranks) {
  run_ranks(ranks, [&](Rank& rank) {
    for (const RowPattern pattern : {RowPattern::kUniform, RowPattern::kUneven}) {
      for (const std::int64_t entries : {0, 1, 20}) {
        const SparseData data({200, 2, entries}, ranks, pattern, 0, 6);
        rank.barrier();  // what the object before this one had is freed
        Algorithm<std::int32_t, float> algorithm(rank, data.shape());
        expect_sum<std::int32_t, float>(rank, algorithm, data, "the first call");
        expect_sum<std::int32_t, float>(rank, algorithm, data, "another one");
        EXPECT_EQ(algorithm.host_waits(),
                  (Algorithm<std::int32_t, float>::cost(call_of(data, rank.id())).host_waits))
            << "rank " << rank.id() << " of " << ranks << ", " << entries << " rows";
      }
    }
  });
}

}  // namespace overlap
