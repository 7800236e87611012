// Chapter 14: the effect of the number of rows per block. The search alone, on the lists of the whole
// all-reduce, without its other steps.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "13_sparse_v5_kernel/tile_search.cuh"
#include "14_sparse_v6_tiled/ordered_search.cuh"
#include "14_sparse_v6_tiled/prefetch_search.cuh"
#include "overlap/bench/result_table.hpp"
#include "overlap/bench/settings.hpp"
#include "overlap/bench/timing.hpp"
#include "overlap/data/sparse_data.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/gpu/host_copy.hpp"
#include "overlap/gpu/stream.hpp"

namespace overlap::sparse_tiled {

/// One rank's list and that of all ranks on its GPU, for searches alone.
template <SparseIndex Index>
class SearchLists {
 public:
  /// Copies the row numbers of `data`.
  SearchLists(Rank& rank, const SparseData& data)
      : rank_(rank),
        local_(data.local_rows(rank.id())),
        global_(data.global_rows()),
        local_on_gpu_(copy(rank, local_)),
        global_on_gpu_(copy(rank, global_)),
        positions_(rank.device(), local_.size()) {}

  RowList<Index> local() const { return {local_on_gpu_.data(), std::ssize(local_)}; }     ///< the rank's rows
  RowList<Index> global() const { return {global_on_gpu_.data(), std::ssize(global_)}; }  ///< of all ranks
  std::int32_t* positions() const { return positions_.data(); }  ///< [local().count], what a search writes

  /// Forgets all positions. Waits.
  void clear() const {
    if (local_.empty()) return;
    CUDA_CHECK(cudaMemsetAsync(positions_.data(), 0xFF, positions_.bytes(), rank_.stream()));
    rank_.synchronize(rank_.stream());
  }
  /// Throws WrongResult, with the search's name, unless each row has its position.
  void check(const std::string& name) const {
    const std::vector<std::int32_t> found = on_host(positions_.data(), std::ssize(local_));
    for (std::size_t row = 0; row < found.size(); ++row) {
      const auto place = static_cast<std::size_t>(found[row]);
      if (found[row] < 0 || place >= global_.size() || global_[place] != local_[row])
        throw WrongResult(name + ": row " + std::to_string(local_[row]) + " is not at place " +
                          std::to_string(found[row]) + " of the global list");
    }
  }

 private:
  static DeviceBuffer<Index> copy(Rank& rank, const std::vector<std::int64_t>& rows) {
    return on_device(rank.device(), std::vector<Index>(rows.begin(), rows.end()));
  }

  Rank& rank_;
  std::vector<std::int64_t> local_, global_;
  DeviceBuffer<Index> local_on_gpu_, global_on_gpu_;
  DeviceBuffer<std::int32_t> positions_;
};

/// Times version 5's search, and those of this chapter for each number of rows per block, checks the
/// positions of each one's last timed run, prints a line for each number, and adds one result. Collective.
template <SparseIndex Index>
void sweep_rows_per_block(Rank& rank, const SparseData& data, const BenchSettings& settings,
                          const std::vector<int>& rows_per_block, Results& results) {
  if (data.local_rows(0).empty()) return;  // no rows to search for
  const SearchLists<Index> lists(rank, data);
  const bool searches_here = rank.id() == 0;  // no communication: one rank's times are enough
  std::vector<TimedVariant> searches;
  const auto add = [&](const std::string& name, const auto& find) {
    const auto enqueue = [&lists, find, searches_here](cudaStream_t stream) {
      if (searches_here) find(lists.local(), lists.global(), lists.positions(), stream);
    };
    const auto check = [&lists, name, wanted = searches_here && settings.check] {
      if (wanted) lists.check(name);
    };
    searches.push_back({name, enqueue, [&lists] { lists.clear(); }, check});
  };
  add("v5_kernel", sparse_kernel::TileSearch());
  struct Search {
    const char *column, *field;
    Compare compare;
    bool prefetch;
  };
  const std::vector<Search> kinds = {{"v6_ordered", "ordered_ms", Compare::kInRange, false},
                                     {"v6_prefetch", "prefetch_ms", Compare::kInRange, true},
                                     {"v6_all_rows", "all_rows_ms", Compare::kAll, false},
                                     {"all, prefetch", "all_rows_prefetch_ms", Compare::kAll, true},
                                     {"v6_skip", "skip_ms", Compare::kUnmatched, false}};
  for (const int rows : rows_per_block) {
    for (const Search& kind : kinds) {
      const std::string name = std::string(kind.column) + " with " + std::to_string(rows) + " rows per block";
      if (kind.prefetch) {
        add(name, PrefetchSearch(rows, kind.compare));
      } else {
        add(name, OrderedSearch(rows, kind.compare));
      }
    }
  }
  const std::vector<VariantTimes> times =
      time_variants(rank, searches, settings.iterations, settings.warmup, false);
  if (rank.id() != 0) return;

  const double v5_ms = times[0].device_ms.median;
  std::vector<Column> columns = {{"rows per block", "rows_per_block"}, {"blocks", "blocks"}};
  for (const Search& kind : kinds) columns.push_back({kind.column, kind.field, microseconds()});
  columns.push_back({"v5 / v6_ordered", "v5_by_ordered", digits(1, 1, " x")});
  ResultTable table(std::move(columns));
  auto next = times.begin() + 1;
  for (const int rows : rows_per_block) {
    Results::Fields fields = {{"section", std::string("sweep")},
                              {"gpus", std::int64_t{rank.size()}},
                              {"rows_per_block", std::int64_t{rows}},
                              {"blocks", sweep_blocks(lists.local().count, rows)},
                              {"local_rows", lists.local().count},
                              {"global_rows", lists.global().count},
                              {"v5_ms", v5_ms}};
    const double ordered_ms = next->device_ms.median;
    for (const Search& kind : kinds) fields.emplace_back(kind.field, next++->device_ms.median);
    fields.emplace_back("v5_by_ordered", v5_ms / ordered_ms);
    table.add(std::move(fields));
  }
  table.finish("\n" + modelled("The search alone, us") + "; v5_kernel takes " + fixed(1e3 * v5_ms, 1) + "\n",
               results);
}

}  // namespace overlap::sparse_tiled
