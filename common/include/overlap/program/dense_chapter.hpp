// The frame of the programs on dense products.
#pragma once

#include "overlap/bench/dense_bench.hpp"
#include "overlap/program/chapter.hpp"
#include "overlap/program/report.hpp"

namespace overlap {

/// On each rank, with the options' type: calls body(tag, rank), where `tag` is the type's TypeTag.
template <typename Body>
void run_dense_ranks(const Options& options, const Body& body) {
  run_ranks(options.gpus, [&](Rank& rank) {
    visit_type<__half, __nv_bfloat16, float>(options.type, [&](auto tag) { body(tag, rank); });
  });
}

/// The same with the rank's part of the problem, which is printed: calls body(problem).
template <template <Floating> class Problem, typename Body>
void run_dense_problem(const Options& options, const Body& body) {
  run_dense_ranks(options, [&](auto tag, Rank& rank) {
    Problem<typename decltype(tag)::type> problem(rank, options.shape, options.seed);
    print_problem(problem);
    body(problem);
  });
}

/// The program of a chapter on dense products. On each rank: makes problem and bench, calls add(bench,
/// problem), verifies, times, prints and saves, and calls finish(bench).
template <template <Floating> class Problem, typename Add, typename Finish>
void run_dense_chapter(const Options& options, Report& report, const Add& add, const Finish& finish) {
  run_dense_problem<Problem>(options, [&](auto& problem) {
    DenseBench bench(problem, options);
    add(bench, problem);
    bench.run(report);
    finish(bench);
  });
}
/// The same without an end of its own.
template <template <Floating> class Problem, typename Add>
void run_dense_chapter(const Options& options, Report& report, const Add& add) {
  run_dense_chapter<Problem>(options, report, add, [](const DenseBench&) {});
}

}  // namespace overlap
