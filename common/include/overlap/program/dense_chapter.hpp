// The frame of the programs on dense products.
#pragma once

#include "overlap/bench/dense_bench.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/program/chapter.hpp"
#include "overlap/program/report.hpp"

namespace overlap {

/// On each rank, with the options' type: calls body(tag, rank), where `tag` is the type's TypeTag. Types:
/// those of the chapter; without them f16, bf16 and f32.
template <Floating... Types, typename Body>
void run_dense_ranks(const Options& options, const Body& body) {
  if (options.processes != nullptr && backend::modelled_time())
    throw Skip("virtual GPUs have no network between processes; nodes of one process: --gpus-per-node");
  run_ranks(
      options.gpus,
      [&](Rank& rank) {
        const auto with_type = [&](auto tag) { body(tag, rank); };
        if constexpr (sizeof...(Types) == 0) {
          visit_type<__half, __nv_bfloat16, float>(options.type, with_type);
        } else {
          visit_type<Types...>(options.type, with_type);
        }
      },
      options.processes);
}

/// The same with the rank's part of the problem, which is printed: calls body(problem).
template <template <Floating> class Problem, Floating... Types, typename Body>
void run_dense_problem(const Options& options, const Body& body) {
  run_dense_ranks<Types...>(options, [&](auto tag, Rank& rank) {
    Problem<typename decltype(tag)::type> problem(rank, options.shape, options.seed);
    print_problem(problem);
    body(problem);
  });
}

/// The program of a chapter on dense products. On each rank: makes problem and bench, calls add(bench,
/// problem), verifies, times, prints and saves, and calls finish(bench).
template <template <Floating> class Problem, Floating... Types, typename Add, typename Finish>
void run_dense_chapter(const Options& options, Report& report, const Add& add, const Finish& finish) {
  run_dense_problem<Problem, Types...>(options, [&](auto& problem) {
    DenseBench bench(problem, options);
    add(bench, problem);
    bench.run(report);
    finish(bench);
  });
}
/// The same without an end of its own.
template <template <Floating> class Problem, Floating... Types, typename Add>
void run_dense_chapter(const Options& options, Report& report, const Add& add) {
  run_dense_chapter<Problem, Types...>(options, report, add, [](const DenseBench&) {});
}

}  // namespace overlap
