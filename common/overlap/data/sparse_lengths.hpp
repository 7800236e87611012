// Calls of different lengths on one object: what a long call leaves behind must not come out of a short one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "overlap/data/sparse_data.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/gpu/host_copy.hpp"
#include "overlap/gpu/ranks.hpp"

namespace overlap {

/// One call of the sparse all-reduce `name` on exact data. Throws WrongResult if its result is wrong on this
/// rank.
template <SparseIndex Index, Floating T, typename Algorithm>
void verify_call(Rank& rank, const std::string& name, Algorithm& algorithm, const SparseData& data) {
  const std::vector<std::int64_t>& entries = data.entries(rank.id());
  std::vector<T> values(data.shape().elements(std::ssize(entries)));
  data.fill<T>(rank.id(), SparseValues::kExact, values);
  const auto indices = on_device(rank.device(), std::vector<Index>(entries.begin(), entries.end()));
  const auto gradient = on_device(rank.device(), values);
  const auto result = algorithm.run(indices.data(), gradient.data(), std::ssize(entries), rank.stream());
  rank.synchronize(rank.stream());
  const std::vector<Index> rows_out = on_host(result.indices, result.count);
  const std::vector<T> values_out = on_host(result.values, result.count * data.shape().features);
  std::string wrong = data.difference<Index, T>(SparseValues::kExact, std::span<const Index>(rows_out),
                                                std::span<const T>(values_out));
  const int lost = algorithm.lost_rows(rank.stream());
  if (wrong.empty() && lost != 0)
    wrong = std::to_string(lost) + " rows without a place, or places with a wrong row";
  if (!wrong.empty())
    throw WrongResult(name + ", a call of " + std::to_string(entries.size()) + " rows: " + wrong);
}

/// Four calls on one object: all ranks have the first rows of the table; then each has a few of them, and no
/// two have the same; then none has any; then all again. Returns how many rows rank 0 has in each of them,
/// "64, 13, 0, 64". Collective. Throws WrongResult.
template <SparseIndex Index, Floating T, typename Algorithm>
std::string verify_lengths(Rank& rank, const std::string& name, Algorithm& algorithm, SparseShape shape) {
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
    verify_call<Index, T>(rank, name, algorithm, SparseData(shape, std::move(rows), 1));
    rank.barrier();
  }
  return lengths;
}

}  // namespace overlap
