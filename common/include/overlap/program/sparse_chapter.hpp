// The frame of the programs on sparse gradients.
#pragma once

#include <type_traits>

#include "overlap/bench/sparse_bench.hpp"
#include "overlap/program/options.hpp"
#include "overlap/program/report.hpp"

namespace overlap {

namespace detail {

// `function` takes the bench, and the report only where it adds results of its own.
template <typename Function, typename Bench>
void call_with(const Function& function, Bench& bench, Report& report) {
  if constexpr (std::is_invocable_v<const Function&, Bench&, Report&>) {
    function(bench, report);
  } else {
    function(bench);
  }
}

}  // namespace detail

/// The program of a chapter on sparse gradients. On each rank: makes a SparseBench of the options' types,
/// calls add(bench), verifies, times, prints and saves, and calls finish(bench). Skips if all chosen variants
/// are skipped. Both are generic: `bench` is
/// a SparseBench<Index, T>&. Where they take a Report&, too, rank 0 may add results of its own.
template <typename Add, typename Finish>
void run_sparse_chapter(const ChapterInfo& chapter, const Options& options, const Add& add,
                        const Finish& finish) {
  Report report(chapter, options);
  const SparseData data(options.sparse, options.gpus, options.pattern, options.duplicates, options.seed);
  if (options.check) require_exact_sums(data, options);
  run_ranks(options.gpus, [&](Rank& rank) {
    visit_sparse(options.index, options.type, [&](auto index, auto type) {
      SparseBench<typename decltype(index)::type, typename decltype(type)::type> bench(rank, data, options);
      detail::call_with(add, bench, report);
      try {
        bench.verify();
        bench.time();
      } catch (const Skip&) {  // each reason was told; what finish() measures may be possible
      }
      bench.print();
      bench.save(report);
      detail::call_with(finish, bench, report);
      if (rank.id() == 0) report.require_some();
    });
  });
  report.save();
}
/// The same without an end of its own.
template <typename Add>
void run_sparse_chapter(const ChapterInfo& chapter, const Options& options, const Add& add) {
  run_sparse_chapter(chapter, options, add, [](auto&) {});
}

}  // namespace overlap
