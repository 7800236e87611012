// The frame of the programs on sparse gradients.
#pragma once

#include "overlap/bench/sparse_bench.hpp"
#include "overlap/program/chapter.hpp"
#include "overlap/program/report.hpp"

namespace overlap {

/// The program of a chapter on sparse gradients. On each rank: makes a SparseBench of the options' types,
/// calls add(bench), verifies, times, prints and saves. `add` is generic: `bench` is a SparseBench<Index,
/// T>&; on rank 0 it may add results of its own.
template <typename Add>
void run_sparse_chapter(const Options& options, Report& report, const Add& add) {
  const SparseOptions& sparse = options.sparse;
  const SparseData data(sparse.shape, options.gpus, sparse.pattern, sparse.duplicates, options.seed);
  if (options.check) require_exact_sums(data, options);
  run_ranks(options.gpus, [&](Rank& rank) {
    visit_sparse(sparse.index, options.type, [&](auto index, auto type) {
      SparseBench<typename decltype(index)::type, typename decltype(type)::type> bench(rank, data, options,
                                                                                       sparse.pattern);
      add(bench);
      bench.run(report);
    });
  });
}

}  // namespace overlap
