// Chapter 11: a graph is recorded once, and calls have different lengths. What a long call leaves in the
// lists must not come out of a short one.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "11_sparse_v3_graph/graph.cuh"
#include "overlap/data/sparse_data.hpp"
#include "overlap/gpu/error.hpp"

namespace overlap {

/// Copies of `elements` values between host and GPU.
///@{
template <typename U>
DeviceBuffer<U> on_device(int device, const std::vector<U>& values) {
  DeviceBuffer<U> buffer(device, values.size());
  if (!values.empty())
    CUDA_CHECK(cudaMemcpy(buffer.data(), values.data(), buffer.bytes(), cudaMemcpyHostToDevice));
  return buffer;
}
template <typename U>
std::vector<U> on_host(const U* values, std::int64_t elements) {
  std::vector<U> host(static_cast<std::size_t>(elements));
  if (elements > 0)
    CUDA_CHECK(cudaMemcpy(host.data(), values, host.size() * sizeof(U), cudaMemcpyDeviceToHost));
  return host;
}
///@}

/// One call on exact data. Throws WrongResult if its result is wrong on this rank.
template <SparseIndex Index, Floating T>
void verify_call(Rank& rank, GraphAllReduce<Index, T>& algorithm, const SparseData& data) {
  const std::vector<std::int64_t>& entries = data.entries(rank.id());
  std::vector<T> values(entries.size() * static_cast<std::size_t>(data.shape().features));
  data.fill<T>(rank.id(), SparseValues::kExact, values);
  const auto indices = on_device(rank.device(), std::vector<Index>(entries.begin(), entries.end()));
  const auto gradient = on_device(rank.device(), values);
  const auto result = algorithm.run(indices.data(), gradient.data(),
                                    static_cast<std::int64_t>(entries.size()), rank.stream());
  rank.synchronize(rank.stream());
  const std::vector<Index> rows_out = on_host(result.indices, result.count);
  const std::vector<T> values_out = on_host(result.values, result.count * data.shape().features);
  std::string wrong = data.difference<Index, T>(SparseValues::kExact, std::span<const Index>(rows_out),
                                                std::span<const T>(values_out));
  const int lost = algorithm.lost_rows(rank.stream());
  if (wrong.empty() && lost != 0)
    wrong = std::to_string(lost) + " rows without a place, or places with a wrong row";
  if (!wrong.empty())
    throw WrongResult("v3_graph, a call of " + std::to_string(entries.size()) + " rows: " + wrong);
}

/// Four calls on one graph: all ranks have the first rows of the table; then each has a few of them, and no
/// two have the same; then none has any; then all again. Rank 0 prints. Throws WrongResult.
template <SparseIndex Index, Floating T>
void verify_lengths(Rank& rank, GraphAllReduce<Index, T>& algorithm, SparseShape shape) {
  const std::int64_t most = std::min<std::int64_t>({shape.rows, shape.entries, 64});
  std::string lengths;
  for (const int step : {1, rank.size() + 1, 0, 1}) {
    std::vector<std::vector<std::int64_t>> rows(static_cast<std::size_t>(rank.size()));
    for (int owner = 0; owner < rank.size() && step > 0; ++owner) {
      // Of each `step` rows one has no owner: so the global list is shorter, too.
      for (std::int64_t row = step == 1 ? 0 : owner; row < most; row += step)
        rows[static_cast<std::size_t>(owner)].push_back(row);
    }
    lengths += (lengths.empty() ? "" : ", ") + std::to_string(rows.front().size());
    verify_call(rank, algorithm, SparseData(shape, std::move(rows), 1));
    rank.barrier();
  }
  if (rank.id() == 0) std::cout << "v3_graph: calls of " << lengths << " rows are right, on one graph\n";
}

}  // namespace overlap
