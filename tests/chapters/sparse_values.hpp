// Gradients that a test gives value by value, and what becomes of them.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "overlap/gpu/check.hpp"
#include "overlap/gpu/element.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/stream.hpp"
#include "sparse_run.hpp"

namespace overlap {

/// One rank's gradient, given value by value.
struct GivenGradient {
  std::vector<std::int64_t> rows;
  std::vector<float> values;  // [rows, F]
};

/// What came out, on one rank.
template <SparseIndex Index, Floating T>
struct HostResult {
  std::vector<Index> indices;
  std::vector<T> values;

  /// The value of a column of a row of the table; an error if the row is not there.
  float at(std::int64_t row, std::size_t column, std::int64_t features) const {
    for (std::size_t g = 0; g < indices.size(); ++g) {
      if (indices[g] == row)
        return static_cast<float>(value_of(values[g * static_cast<std::size_t>(features) + column]));
    }
    ADD_FAILURE() << "row " << row << " is not there";
    return 0;
  }
};

template <typename T>
bool same_bits(const std::vector<T>& left, const std::vector<T>& right) {
  return left.size() == right.size() &&
         (left.empty() || std::memcmp(left.data(), right.data(), left.size() * sizeof(T)) == 0);
}

/// Rank 0's result of a call with these gradients, of at most so many rows each; all ranks must have its
/// bits.
template <template <SparseIndex, Floating> class Algorithm, SparseIndex Index, Floating T>
HostResult<Index, T> result_of(std::int64_t table_rows, std::int64_t features,
                               const std::vector<GivenGradient>& gradients, std::int64_t max_entries = 8) {
  std::vector<HostResult<Index, T>> results(gradients.size());
  run_ranks(static_cast<int>(gradients.size()), [&](Rank& rank) {
    const GivenGradient& own = gradients[static_cast<std::size_t>(rank.id())];
    const std::vector<Index> rows(own.rows.begin(), own.rows.end());
    std::vector<T> numbers;
    for (const float value : own.values) numbers.push_back(from_float<T>(value));
    const DeviceBuffer<Index> indices(rank.device(), rows.size());
    const DeviceBuffer<T> values(rank.device(), numbers.size());
    if (!rows.empty()) {
      CUDA_CHECK(cudaMemcpyAsync(indices.data(), rows.data(), indices.bytes(), cudaMemcpyHostToDevice,
                                 rank.stream()));
      CUDA_CHECK(cudaMemcpyAsync(values.data(), numbers.data(), values.bytes(), cudaMemcpyHostToDevice,
                                 rank.stream()));
    }
    const auto count = static_cast<std::int64_t>(rows.size());
    Algorithm<Index, T> algorithm(rank, {table_rows, features, max_entries});
    const SparseRows<Index, T> result = algorithm.run(indices.data(), values.data(), count, rank.stream());
    rank.synchronize(rank.stream());
    EXPECT_EQ(algorithm.lost_rows(rank.stream()), 0);
    results[static_cast<std::size_t>(rank.id())] = {on_host(result.indices, result.count),
                                                    on_host(result.values, result.count * features)};
    rank.barrier();
  });
  for (std::size_t rank = 1; rank < results.size(); ++rank) {
    EXPECT_TRUE(same_bits(results[rank].indices, results[0].indices)) << "rank " << rank;
    EXPECT_TRUE(same_bits(results[rank].values, results[0].values)) << "rank " << rank;
  }
  return results[0];
}

}  // namespace overlap
