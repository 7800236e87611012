// Shared by the tests on sparse gradients: distributions of row numbers, and a run that compares every row
// number and every value on every rank.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "overlap/data/sparse_data.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/host_copy.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/stream.hpp"

namespace overlap {

/// Entries of each rank, by rank.
using Entries = std::vector<std::vector<std::int64_t>>;

/// One rank's gradient on its GPU.
template <SparseIndex Index, Floating T>
class DeviceGradient {
 public:
  DeviceGradient(Rank& rank, const SparseData& data, SparseValues kind)
      : count_(static_cast<std::int64_t>(data.entries(rank.id()).size())),
        indices_(rank.device(), static_cast<std::size_t>(count_)),
        values_(rank.device(), static_cast<std::size_t>(count_ * data.shape().features)) {
    const std::vector<Index> indices(data.entries(rank.id()).begin(), data.entries(rank.id()).end());
    std::vector<T> values(values_.size());
    data.fill<T>(rank.id(), kind, values);
    if (count_ == 0) return;
    CUDA_CHECK(cudaMemcpyAsync(indices_.data(), indices.data(), indices_.bytes(), cudaMemcpyHostToDevice,
                               rank.stream()));
    CUDA_CHECK(cudaMemcpyAsync(values_.data(), values.data(), values_.bytes(), cudaMemcpyHostToDevice,
                               rank.stream()));
    rank.synchronize(rank.stream());
  }

  Index* indices() const { return indices_.data(); }
  T* values() const { return values_.data(); }
  std::int64_t count() const { return count_; }

 private:
  std::int64_t count_;
  DeviceBuffer<Index> indices_;
  DeviceBuffer<T> values_;
};

/// What is wrong with a result of the whole sum; empty if nothing is.
template <SparseIndex Index, Floating T>
std::string difference(const SparseData& data, SparseValues kind, const SparseRows<Index, T>& result,
                       const SparsePromise& promise = {}) {
  const std::vector<Index> indices = on_host(result.indices, result.count);
  const std::vector<T> values = on_host(result.values, result.count * data.shape().features);
  return data.difference<Index, T>(kind, std::span<const Index>(indices), std::span<const T>(values),
                                   promise);
}

/// Exact values, unless one row has so many entries that no 16-bit sum of them is exact; then real values,
/// which are compared within the bound.
template <typename Algorithm>
SparseValues values_to_compare(const SparseData& data) {
  const bool too_many =
      RoundsOnTheWire<Algorithm> && data.max_entries_per_row() > largest_integer<__nv_bfloat16>();
  return too_many ? SparseValues::kReal : exact_values<Algorithm>();
}

/// One call of a constructed algorithm on `data`, compared on this rank.
template <SparseIndex Index, Floating T, typename Algorithm>
void expect_sum(Rank& rank, Algorithm& algorithm, const SparseData& data, const std::string& what,
                std::optional<SparseValues> values = {}) {
  const SparseValues kind = values.value_or(values_to_compare<Algorithm>(data));
  const DeviceGradient<Index, T> gradient(rank, data, kind);
  const auto result = algorithm.run(gradient.indices(), gradient.values(), gradient.count(), rank.stream());
  rank.synchronize(rank.stream());
  EXPECT_EQ(difference(data, kind, result, promise_of(algorithm, data, rank.id())), "")
      << what << ", rank " << rank.id() << " of " << rank.size();
  EXPECT_EQ(algorithm.lost_rows(rank.stream()), 0) << what;
  rank.barrier();
}

/// Whether so many ranks can run here; if not, call GTEST_SKIP().
inline bool enough_gpus(int ranks) {
  int gpus = 0;
  CUDA_CHECK(cudaGetDeviceCount(&gpus));
  return ranks <= gpus;
}

/// What runs on each of several numbers of ranks: INSTANTIATE_TEST_SUITE_P says on which.
class OnRanks : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (!enough_gpus(GetParam())) GTEST_SKIP() << "NCCL wants a GPU for each of " << GetParam() << " ranks";
  }
};

/// Gradients for consecutive calls of one object, so that state left behind meets the next call.
struct SparseCase {
  std::string what;
  std::vector<SparseData> gradients;
};

/// Runs the algorithm on each case, with a new object (`more`: constructor arguments). All cases share one
/// run, because creating communicators takes longer than most cases on real GPUs.
template <template <SparseIndex, Floating> class Algorithm, SparseIndex Index, Floating T, typename... More>
void expect_sums(const std::vector<SparseCase>& cases, const More&... more) {
  ASSERT_FALSE(cases.empty());
  run_ranks(cases.front().gradients.front().ranks(), [&](Rank& rank) {
    for (const SparseCase& each : cases) {
      {
        Algorithm<Index, T> algorithm(rank, each.gradients.front().shape(), more...);
        for (std::size_t i = 0; i < each.gradients.size(); ++i) {
          expect_sum<Index, T>(rank, algorithm, each.gradients[i],
                               each.what + ", gradient " + std::to_string(i));
        }
      }
      // Freeing memory waits for GPUs: none of them may already wait for this rank's part of the next case.
      rank.barrier();
    }
  });
}

template <template <SparseIndex, Floating> class Algorithm, SparseIndex Index, Floating T, typename... More>
void expect_sums(const std::vector<SparseData>& gradients, const std::string& what, const More&... more) {
  expect_sums<Algorithm, Index, T>(std::vector<SparseCase>{{what, gradients}}, more...);
}

/// A distribution of row numbers, by name.
struct Distribution {
  std::string name;
  SparseShape shape;  // entries: the largest number of distinct rows of a rank
  Entries entries;
};

/// begin, begin + step, ..., `count` of them.
inline std::vector<std::int64_t> stride(std::int64_t begin, std::int64_t step, std::int64_t count) {
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < count; ++i) rows.push_back(begin + i * step);
  return rows;
}

/// Distributions that have broken sparse collectives: empty ranks, one row, identical, disjoint and nested
/// ranks, both ends of the table, all rows, tables of one row and of odd sizes, runs and strides, sizes
/// around warps, blocks and tiles, very different ranks, duplicates, unsorted entries. Small enough for all
/// versions.
inline std::vector<Distribution> distributions(int ranks) {
  std::vector<Distribution> all;
  const auto add = [&](const std::string& name, std::int64_t rows, Entries entries,
                       std::int64_t features = 3) {
    std::size_t most = 0;
    for (std::vector<std::int64_t> list : entries) {
      std::sort(list.begin(), list.end());
      most = std::max<std::size_t>(
          most, static_cast<std::size_t>(std::unique(list.begin(), list.end()) - list.begin()));
    }
    all.push_back({name, {rows, features, static_cast<std::int64_t>(most)}, std::move(entries)});
  };
  const auto each = [&](const std::function<std::vector<std::int64_t>(int)>& list) {
    Entries entries;
    for (int rank = 0; rank < ranks; ++rank) entries.push_back(list(rank));
    return entries;
  };
  const auto none = std::vector<std::int64_t>{};
  add("all ranks empty", 50, each([&](int) { return none; }));
  for (const int empty : {0, ranks / 2, ranks - 1})
    add("rank " + std::to_string(empty) + " empty", 50,
        each([&](int rank) { return rank == empty ? none : stride(rank, 3, 7); }));
  for (const int only : {0, ranks - 1})
    add("only rank " + std::to_string(only) + " has rows", 50,
        each([&](int rank) { return rank == only ? stride(1, 4, 9) : none; }));
  add("one row in all", 50, each([&](int rank) { return rank == ranks - 1 ? stride(17, 1, 1) : none; }));
  add("identical", 50, each([](int) { return stride(2, 5, 9); }));
  add("disjoint, interleaved", 20 * ranks, each([&](int rank) { return stride(rank, ranks, 20); }));
  add("disjoint ranges", 20 * ranks, each([](int rank) { return stride(20 * rank, 1, 20); }));
  add("nested", 100, each([](int rank) { return stride(0, 3, 2 + 3 * rank); }));
  add("first and last row", 1000, each([](int rank) {
        return std::vector<std::int64_t>{0, 10 + rank, 999};
      }));
  add("all rows", 37, each([](int) { return stride(0, 1, 37); }));
  add("a table of one row", 1, each([](int) { return stride(0, 1, 1); }));
  add("a table of 2 rows", 2, each([](int rank) { return stride(rank % 2, 1, 1); }));
  add("a table of 64 rows, the last one", 64, each([](int) { return stride(63, 1, 1); }));
  add("runs", 97, each([](int rank) { return stride(31 + rank, 1, 34); }));
  for (const std::int64_t step : {32, 33}) {
    add("every " + std::to_string(step) + "th row", 40 * step + ranks,
        each([&](int rank) { return stride(rank, step, 40); }));
  }
  add("1 row against 300", 600,
      each([](int rank) { return rank == 0 ? stride(599, 1, 1) : stride(rank, 2, 295); }), 1);
  add("rows at the end of the global list", 400,
      each([](int rank) { return rank == 0 ? stride(390, 1, 9) : stride(rank, 1, 300); }), 1);
  add("only the last row of a rank is far away", 900, each([](int rank) {
        std::vector<std::int64_t> rows = stride(rank, 2, 20);
        rows.push_back(899 - rank);
        return rows;
      }));
  add("duplicates", 60,
      each([](int rank) { return std::vector<std::int64_t>{5, 5, 7, 5, rank, rank, 59, 7, 5}; }));
  add("one row 200 times", 60, each([](int rank) { return stride(30 + rank % 2, 0, 200); }));
  add("descending", 60, each([](int rank) { return stride(59 - rank, -2, 20); }));
  return all;
}

/// One case for each of distributions(), its gradient `calls` times.
inline std::vector<SparseCase> distribution_cases(int ranks, std::size_t calls) {
  std::vector<SparseCase> cases;
  for (const Distribution& distribution : distributions(ranks)) {
    const SparseData data(distribution.shape, distribution.entries, 7);
    cases.push_back({distribution.name, std::vector<SparseData>(calls, data)});
  }
  return cases;
}

/// Random small gradients: number of rows, entries, features, empty ranks and duplicates as `seed` has it.
inline SparseData random_gradient(int ranks, std::uint64_t seed, std::int64_t max_entries = 40) {
  std::mt19937_64 draw(seed);
  const auto below = [&](std::int64_t count) {
    return static_cast<std::int64_t>(draw() % static_cast<std::uint64_t>(count));
  };
  const SparseShape shape{1 + below(200), 1 + below(9), max_entries};
  Entries entries;
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<std::int64_t> rows(static_cast<std::size_t>(below(5) == 0 ? 0 : below(max_entries + 1)));
    const std::int64_t first = below(shape.rows), span = 1 + below(shape.rows - first);
    for (std::int64_t& row : rows) row = first + below(span);
    entries.push_back(std::move(rows));
  }
  return SparseData(shape, std::move(entries), seed);
}

/// The gradient in which each rank has every step-th row from its own number on, so many of them.
inline SparseData lists_of(SparseShape shape, int ranks, std::int64_t step,
                           const std::function<std::int64_t(int)>& count) {
  Entries entries;
  for (int rank = 0; rank < ranks; ++rank) entries.push_back(stride(rank, step, count(rank)));
  return SparseData(shape, std::move(entries), 5);
}

inline std::vector<SparseCase> random_cases(int ranks, std::uint64_t first_seed, std::uint64_t count,
                                            std::int64_t max_entries = 40) {
  std::vector<SparseCase> cases;
  for (std::uint64_t seed = first_seed; seed < first_seed + count; ++seed)
    cases.push_back({"seed " + std::to_string(seed), {random_gradient(ranks, seed, max_entries)}});
  return cases;
}

/// Sizes of lists around warps, blocks of 256 threads, and `tile` rows.
inline std::vector<std::int64_t> sizes_around(std::int64_t tile) {
  std::vector<std::int64_t> sizes = {1,        31,   32,       33,           255,      256,         257,
                                     tile - 1, tile, tile + 1, 3 * tile - 1, 3 * tile, 3 * tile + 1};
  std::erase_if(sizes, [](std::int64_t size) { return size < 1; });
  return sizes;
}

/// All ranks refuse the call by a SparseInputError with the same text, which contains `sentence`; the next,
/// valid call of the same object is right. `entries` may hold wrong row numbers.
template <SparseIndex Index, Floating T, typename Algorithm>
void expect_refused(Rank& rank, Algorithm& algorithm, SparseShape shape,
                    const std::vector<std::int64_t>& entries, const std::string& sentence,
                    const SparseData& right) {
  const auto count = static_cast<std::int64_t>(entries.size());
  const DeviceBuffer<Index> indices(rank.device(), entries.size());
  const DeviceBuffer<T> values(rank.device(), static_cast<std::size_t>(count * shape.features));
  const std::vector<Index> narrow(entries.begin(), entries.end());
  const std::vector<T> ones(values.size(), from_float<T>(1));
  if (count > 0) {
    CUDA_CHECK(cudaMemcpyAsync(indices.data(), narrow.data(), indices.bytes(), cudaMemcpyHostToDevice,
                               rank.stream()));
    CUDA_CHECK(
        cudaMemcpyAsync(values.data(), ones.data(), values.bytes(), cudaMemcpyHostToDevice, rank.stream()));
  }
  std::string refusal;
  try {
    algorithm.run(indices.data(), values.data(), count, rank.stream());
  } catch (const SparseInputError& error) {
    refusal = error.what();
  }
  rank.synchronize(rank.stream());
  EXPECT_NE(refusal.find(sentence), std::string::npos) << "rank " << rank.id() << ": " << refusal;
  rank.barrier();
  expect_sum<Index, T>(rank, algorithm, right, "after a refusal");
}

/// An index outside a table of so many rows, on one rank from `first` on: all ranks refuse; the next call is
/// right.
template <template <SparseIndex, Floating> class Algorithm, SparseIndex Index>
void expect_bad_indices_refused(int ranks, std::int64_t rows, int first) {
  const SparseData right({rows, 3, 9}, ranks, RowPattern::kUneven, 2, 4);
  const auto power = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(rows + 1)));
  const std::string last = std::to_string(rows - 1);
  run_ranks(ranks, [&](Rank& rank) {
    Algorithm<Index, float> algorithm(rank, right.shape());
    for (int guilty = first; guilty < ranks; ++guilty) {
      for (const std::int64_t bad :
           {std::int64_t{-1}, rows, power - 1, power, std::int64_t{std::numeric_limits<Index>::max()},
            std::int64_t{std::numeric_limits<Index>::min()}}) {
        SCOPED_TRACE("index " + std::to_string(bad) + " on rank " + std::to_string(guilty));
        const std::vector<std::int64_t> entries = rank.id() == guilty
                                                      ? std::vector<std::int64_t>{3, bad, rows - 1}
                                                      : std::vector<std::int64_t>{7, 0};
        expect_refused<Index, float>(
            rank, algorithm, right.shape(), entries,
            "rank " + std::to_string(guilty) + " has an index that is not between 0 and " + last, right);
      }
    }
  });
}

/// In a table that ends within a word of its bitmap; on the last rank also in one that fills the bitmap's
/// last 16 bytes, and in one for which chapter 15 sends lists.
template <template <SparseIndex, Floating> class Algorithm, SparseIndex Index>
void expect_bad_indices_refused(int ranks) {
  expect_bad_indices_refused<Algorithm, Index>(ranks, 50, 0);
  for (const std::int64_t rows : {128, 1024})
    expect_bad_indices_refused<Algorithm, Index>(ranks, rows, ranks - 1);
}

}  // namespace overlap
