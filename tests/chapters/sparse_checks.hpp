// What versions of the sparse all-reduce are tested with that find all places at once: distributions, random
// gradients, values that are no ordinary numbers, and the search alone, on lists that no all-reduce would
// give it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "09_sparse_v1_nonzero/sparse_cost.cuh"
#include "sparse_run.hpp"

namespace overlap {

/// Every distribution, in every type of numbers and of row numbers.
template <template <SparseIndex, Floating> class Algorithm>
void expect_right_on_distributions(int ranks) {
  for_distributions(ranks, [&](const Distribution& distribution, const SparseData& data) {
    expect_sums<Algorithm, std::int32_t, float>({data}, distribution.name);
    expect_sums<Algorithm, std::int64_t, __half>({data}, distribution.name + ", f16");
    expect_sums<Algorithm, std::int64_t, __nv_bfloat16>({data}, distribution.name + ", bf16");
  });
}

/// So many random gradients, each of a table of its own.
template <template <SparseIndex, Floating> class Algorithm>
void expect_right_on_random_gradients(int ranks, int count, std::uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  for (int i = 0; i < count; ++i) {
    const SparseData data = random_gradient(ranks, seed + static_cast<std::uint64_t>(i));
    const std::string what = "random gradient " + std::to_string(i);
    if (i % 2 == 0) {
      expect_sums<Algorithm, std::int32_t, float>({data}, what);
    } else {
      expect_sums<Algorithm, std::int64_t, __half>({data}, what);
    }
  }
}

/// Numbers of features around those that a thread, a warp or a block takes.
template <template <SparseIndex, Floating> class Algorithm>
void expect_right_with_features(int ranks) {
  for (const std::int64_t features : {1, 2, 3, 5, 8, 33, 257}) {
    const SparseData data({50, features, 9}, ranks, RowPattern::kUniform, 3, 1);
    const std::string what = std::to_string(features) + " features";
    expect_sums<Algorithm, std::int32_t, float>({data}, what);
    expect_sums<Algorithm, std::int64_t, __nv_bfloat16>({data}, what);
  }
}

/// A list of `sizes` around `tile`, as local and as global list: rank 0 has so many rows, the others all rows
/// of the table.
template <template <SparseIndex, Floating> class Algorithm>
void expect_right_around(int ranks, std::int64_t tile) {
  for (const std::int64_t size : sizes_around(tile)) {
    const SparseShape shape{size + 5, 1, size + 5};
    Entries entries = {stride(5, 1, size)};
    for (int rank = 1; rank < ranks; ++rank) entries.push_back(stride(0, 1, size + 5));
    expect_sums<Algorithm, std::int32_t, float>({SparseData(shape, entries, 3)},
                                                std::to_string(size) + " rows");
  }
}

/// On one object: a long call, a short one, one without rows, and a long one again. What is left of the first
/// must not be found by the next.
template <template <SparseIndex, Floating> class Algorithm>
void expect_right_call_after_call(int ranks) {
  const SparseShape shape{2000, 3, 600};
  std::vector<SparseData> calls;
  for (const std::int64_t count : {600, 5, 0, 1, 333, 600}) {
    Entries entries;
    for (int rank = 0; rank < ranks; ++rank)
      entries.push_back(stride(7 * rank + count % 5, count == 333 ? 2 : 3, count));
    calls.emplace_back(shape, std::move(entries), static_cast<std::uint64_t>(count));
  }
  expect_sums<Algorithm, std::int32_t, float>(calls, "long, short, empty");
  expect_sums<Algorithm, std::int64_t, __half>(calls, "long, short, empty, int64");
}

/// Rows and values on the host: a gradient, or a sum.
struct WrittenRows {
  std::vector<std::int32_t> rows;
  std::vector<float> values;
};

/// The sum of gradients that are written out, by rank.
template <template <SparseIndex, Floating> class Algorithm>
void expect_written_sum(const std::vector<WrittenRows>& gradients, const WrittenRows& sum) {
  const auto features = static_cast<std::int64_t>(sum.rows.empty() ? 1 : sum.values.size() / sum.rows.size());
  run_ranks(static_cast<int>(gradients.size()), [&](Rank& rank) {
    const WrittenRows& own = gradients[static_cast<std::size_t>(rank.id())];
    const DeviceBuffer<std::int32_t> rows(rank.device(), own.rows.size());
    const DeviceBuffer<float> values(rank.device(), own.values.size());
    if (!own.rows.empty()) {
      CUDA_CHECK(cudaMemcpy(rows.data(), own.rows.data(), rows.bytes(), cudaMemcpyHostToDevice));
      CUDA_CHECK(cudaMemcpy(values.data(), own.values.data(), values.bytes(), cudaMemcpyHostToDevice));
    }
    Algorithm<std::int32_t, float> algorithm(rank, {100, features, 8});
    const auto result =
        algorithm.run(rows.data(), values.data(), static_cast<std::int64_t>(own.rows.size()), rank.stream());
    rank.synchronize(rank.stream());
    EXPECT_EQ(on_host(result.indices, result.count), sum.rows);
    const std::vector<float> found = on_host(result.values, result.count * features);
    ASSERT_EQ(found.size(), sum.values.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (std::isnan(sum.values[i])) {
        EXPECT_TRUE(std::isnan(found[i])) << "value " << i << " is " << found[i];
      } else {
        EXPECT_EQ(found[i], sum.values[i]) << "value " << i;
      }
    }
    rank.barrier();
  });
}

/// NaN and infinities stay in their elements, rows of zeros are rows, what is denormal stays so.
template <template <SparseIndex, Floating> class Algorithm>
void expect_all_values_carried(int ranks) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const float tiny = std::numeric_limits<float>::denorm_min();
  const auto all = static_cast<float>(ranks);
  // Rank 0 has all rows, the others the first one and the one of the denormals.
  std::vector<WrittenRows> gradients = {
      {{3, 5, 6, 8, 90}, {nan, 1, inf, 2, -inf, inf, 0, 0, tiny, -3 * tiny}}};
  for (int rank = 1; rank < ranks; ++rank) gradients.push_back({{3, 90}, {1, 1, tiny, -3 * tiny}});
  expect_written_sum<Algorithm>(
      gradients, {{3, 5, 6, 8, 90}, {nan, all, inf, 2, -inf, inf, 0, 0, all * tiny, -3 * all * tiny}});
  if (ranks == 1) return;
  // Rows that cancel out are kept; infinities of both signs are no number.
  gradients.assign(static_cast<std::size_t>(ranks), {});
  gradients.front() = {{7, 50}, {1.5F, -2, inf, 1}};
  gradients.back() = {{7, 50}, {-1.5F, 2, -inf, 1}};
  expect_written_sum<Algorithm>(gradients, {{7, 50}, {0, 0, nan, 2}});
}

/// The bad row numbers that all versions refuse, each followed by a right call.
template <template <SparseIndex, Floating> class Algorithm>
void expect_bad_rows_refused(int ranks) {
  const SparseData right({100, 3, 20}, ranks, RowPattern::kUniform, 2, 1);
  run_ranks(ranks, [&](Rank& rank) {
    Algorithm<std::int64_t, float> algorithm(rank, right.shape());
    for (const std::int64_t bad : {std::int64_t{-1}, std::int64_t{100}, std::int64_t{1} << 32,
                                   std::numeric_limits<std::int64_t>::max()}) {
      // Only the last rank has it.
      const std::vector<std::int64_t> rows = {4, rank.id() + 1 == rank.size() ? bad : 7};
      expect_refused<std::int64_t, float>(rank, algorithm, right.shape(), rows,
                                          "an index that is not between 0 and 99", right);
    }
  });
}

/// The waits of one call are those of the cost card.
template <template <SparseIndex, Floating> class Algorithm>
void expect_host_waits_of_the_card(int ranks) {
  const SparseData data({300, 2, 40}, ranks, RowPattern::kUniform, 5, 1);
  run_ranks(ranks, [&](Rank& rank) {
    Algorithm<std::int32_t, float> algorithm(rank, data.shape());
    expect_sum<std::int32_t, float>(rank, algorithm, data, "host waits");
    const auto cost = Algorithm<std::int32_t, float>::cost(
        {.ranks = ranks,
         .rank = rank.id(),
         .features = 2,
         .local = 40,
         .most = 40,
         .global = static_cast<std::int64_t>(data.global_rows().size())});
    EXPECT_EQ(algorithm.host_waits(), cost.host_waits);
    EXPECT_EQ(cost.comparisons, 40 * static_cast<std::int64_t>(data.global_rows().size()));
  });
}

/// The search alone, on one GPU. find(rank, local, local_count, global, global_count, positions, stream)
/// enqueues it. Rows that are not in the list have no place: -1, whatever stood there before. Nothing is
/// written behind the last position.
template <SparseIndex Index, typename Find>
void expect_places(const std::vector<Index>& local, const std::vector<Index>& global, const Find& find) {
  constexpr std::int32_t kUntouched = 0x5a5a5a5a;
  constexpr std::size_t kBehind = 300;  // more than a block of threads
  run_ranks(1, [&](Rank& rank) {
    const DeviceBuffer<Index> local_on_gpu(rank.device(), local.size());
    const DeviceBuffer<Index> global_on_gpu(rank.device(), global.size());
    const DeviceBuffer<std::int32_t> positions(rank.device(), local.size() + kBehind);
    if (!local.empty())
      CUDA_CHECK(cudaMemcpy(local_on_gpu.data(), local.data(), local_on_gpu.bytes(), cudaMemcpyHostToDevice));
    if (!global.empty())
      CUDA_CHECK(
          cudaMemcpy(global_on_gpu.data(), global.data(), global_on_gpu.bytes(), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemset(positions.data(), 0x5a, positions.bytes()));
    CUDA_CHECK(cudaDeviceSynchronize());
    find(rank, local_on_gpu.data(), static_cast<std::int64_t>(local.size()), global_on_gpu.data(),
         static_cast<std::int64_t>(global.size()), positions.data(), rank.stream());
    rank.synchronize(rank.stream());
    std::vector<std::int32_t> places;
    for (const Index row : local) {
      const auto place = std::find(global.begin(), global.end(), row);
      places.push_back(place == global.end() ? -1 : static_cast<std::int32_t>(place - global.begin()));
    }
    places.resize(places.size() + kBehind, kUntouched);
    EXPECT_EQ(on_host(positions.data(), static_cast<std::int64_t>(positions.size())), places)
        << local.size() << " rows among " << global.size();
  });
}

/// A list of row numbers in another type.
template <SparseIndex Index>
std::vector<Index> list_of(const std::vector<std::int64_t>& rows) {
  return {rows.begin(), rows.end()};
}

/// Lists of all sizes around warps, blocks and `tile`, with rows that are in the other list and rows that are
/// not.
template <typename Find>
void expect_all_places(std::int64_t tile, const Find& find) {
  std::vector<std::int64_t> sizes = sizes_around(tile);
  sizes.push_back(0);
  for (const std::int64_t local : {0, 1, 31, 257}) {
    for (const std::int64_t global : sizes)  // every third one of the local list is in it
      expect_places<std::int32_t>(list_of<std::int32_t>(stride(2, 2, local)),
                                  list_of<std::int32_t>(stride(0, 3, global)), find);
  }
  for (const std::int64_t local : sizes)
    expect_places<std::int64_t>(stride(0, 2, local), stride(0, 3, 100), find);
  // Equal in 32 bits, and not in 64.
  const std::int64_t far = std::int64_t{1} << 32;
  expect_places<std::int64_t>({5, 7, far + 6, far + 7, 3 * far}, {5, 6, far + 5, far + 7, 3 * far}, find);
  // No row of this rank is the padding's, and no thread without a row has one.
  expect_places<std::int32_t>({0}, {-1, 0}, find);
}

}  // namespace overlap
