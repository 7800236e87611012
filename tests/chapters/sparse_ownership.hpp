// Ownership of gradients and results of the sparse all-reduces: back-to-back calls without a wait, in some of
// which some ranks have no rows; the caller overwrites everything on its stream directly behind each.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "on_ranks.hpp"
#include "overlap/data/sparse_data.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/stream.hpp"
#include "schedule.hpp"
#include "sparse_run.hpp"

namespace overlap {

/// Gradients of five calls: all ranks have rows; the first has none; the last has none; only one has any; all
/// have other rows. A rank without rows has nothing to wait for and starts the next call first.
inline std::vector<SparseData> calls_with_empty_ranks(int ranks) {
  const SparseShape shape{40, 3, 6};
  std::vector<SparseData> calls;
  for (const int call : {0, 1, 2, 3, 4}) {
    Entries entries;
    for (int rank = 0; rank < ranks; ++rank) {
      const bool empty =
          (call == 1 && rank == 0) || (call == 2 && rank == ranks - 1) || (call == 3 && rank != ranks / 2);
      entries.emplace_back();
      for (int i = 0; i < 6 && !empty; ++i)
        entries.back().push_back((7 * rank + 5 * i + 11 * call) % shape.rows);
    }
    calls.emplace_back(shape, std::move(entries), 1 + static_cast<std::uint64_t>(call));
  }
  return calls;
}

/// What the caller takes of a call's result, directly behind it.
template <SparseIndex Index, Floating T>
struct TakenRows {
  TakenRows(const Rank& rank, const SparseData& data)
      : indices(rank.device(), data.global_rows().size()),
        values(rank.device(), data.global_rows().size() * static_cast<std::size_t>(data.shape().features)) {}

  void take(const SparseRows<Index, T>& result, std::int64_t features, cudaStream_t stream) {
    count = result.count;
    ASSERT_LE(static_cast<std::size_t>(count), indices.size());
    if (count == 0) return;
    const auto rows = static_cast<std::size_t>(count);
    CUDA_CHECK(
        cudaMemcpyAsync(indices.data(), result.indices, rows * sizeof(Index), cudaMemcpyDefault, stream));
    CUDA_CHECK(cudaMemcpyAsync(values.data(), result.values,
                               rows * static_cast<std::size_t>(features) * sizeof(T), cudaMemcpyDefault,
                               stream));
  }
  SparseRows<Index, T> rows() const { return {indices.data(), values.data(), count}; }

  DeviceBuffer<Index> indices;
  DeviceBuffer<T> values;
  std::int64_t count = 0;
};

/// Calls without a wait between them, on this rank; each result must be right.
template <template <SparseIndex, Floating> class Algorithm>
void expect_caller_owns_gradients_on(Rank& rank, const std::vector<SparseData>& calls) {
  using Index = std::int32_t;
  using T = float;
  Algorithm<Index, T> algorithm(rank, calls.front().shape());
  constexpr SparseValues exact = exact_values<Algorithm<Index, T>>();
  std::vector<std::unique_ptr<DeviceGradient<Index, T>>> gradients;
  std::vector<TakenRows<Index, T>> taken;
  for (const SparseData& data : calls) {
    gradients.push_back(std::make_unique<DeviceGradient<Index, T>>(rank, data, exact));
    taken.emplace_back(rank, data);
  }
  const cudaStream_t stream = rank.stream();
  const std::int64_t features = calls.front().shape().features;
  rank.barrier();
  for (std::size_t call = 0; call < calls.size(); ++call) {
    const DeviceGradient<Index, T>& gradient = *gradients[call];
    const auto count = static_cast<std::size_t>(gradient.count());
    taken[call].take(algorithm.run(gradient.indices(), gradient.values(), gradient.count(), stream), features,
                     stream);
    if (count == 0) continue;
    CUDA_CHECK(cudaMemsetAsync(gradient.indices(), 0xFF, count * sizeof(Index), stream));
    CUDA_CHECK(cudaMemsetAsync(gradient.values(), 0xFF,
                               count * static_cast<std::size_t>(features) * sizeof(T), stream));
  }
  rank.synchronize(stream);
  rank.barrier();
  for (std::size_t call = 0; call < calls.size(); ++call) {
    EXPECT_EQ(
        difference(calls[call], exact, taken[call].rows(), promise_of(algorithm, calls[call], rank.id())), "")
        << "call " << call << ", rank " << rank.id() << " of " << rank.size();
  }
  rank.barrier();
}

/// The same on so many ranks, in the order of time and in random ones.
template <template <SparseIndex, Floating> class Algorithm>
void expect_caller_owns_gradients(int ranks) {
  if (!enough_gpus(ranks)) GTEST_SKIP() << "NCCL wants a GPU for each of " << ranks << " ranks";
  const std::vector<SparseData> calls = calls_with_empty_ranks(ranks);
  in_schedules([&] {
    run_ranks(ranks, [&](Rank& rank) { expect_caller_owns_gradients_on<Algorithm>(rank, calls); });
  });
}

}  // namespace overlap
