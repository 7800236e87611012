// Runs of the chapters' algorithms on dense products, compared on every element. For the chapters' tests.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "calls_at_once.hpp"
#include "overlap/dense_problem.hpp"
#include "overlap/error.hpp"
#include "overlap/ranks.hpp"

namespace overlap {

/// What a comparison on all ranks found. `skipped`: why the algorithm cannot run here, and nothing was
/// compared.
struct DenseRun {
  Verification found = {};
  std::string skipped = {};
};

/// The last calls of a row have data and results of their own; those before them share a few.
inline constexpr int kCallsWithResults = 100, kSharedResults = 10;

/// How many results of so many calls are compared.
inline int results_of(int calls) {
  return calls <= kCallsWithResults ? calls : kCallsWithResults + kSharedResults;
}

/// Makes an Algorithm(rank, whole, more...), and calls it `calls` times in a row without waiting, each time
/// with data and a result of its own (but for the first ones of more than kCallsWithResults calls); then
/// compares every element of every result. Algorithms that hold something back from the call before, or
/// overwrite what it still needs, show here.
template <typename Algorithm, typename Problem, typename... More>
Verification run_dense_on(Rank& rank, MatmulShape whole, std::uint64_t seed, int calls, More... more) {
  Algorithm algorithm(rank, whole, more...);
  std::vector<std::unique_ptr<Problem>> problems;
  for (int i = 0; i < results_of(calls); ++i) {
    problems.push_back(std::make_unique<Problem>(rank, whole, seed + 2 * static_cast<std::uint64_t>(i)));
    problems.back()->fill_exact();
    problems.back()->poison_result();
  }
  rank.barrier();
  for (int call = 0; call < calls; ++call) {
    const int left = calls - call;
    const int result = left <= kCallsWithResults ? results_of(calls) - left : call % kSharedResults;
    const auto& problem = problems[static_cast<std::size_t>(result)];
    algorithm.run(problem->a(), problem->b(), problem->c(), rank.stream());
  }
  rank.synchronize(rank.stream());
  // Before anything is freed: cudaFree waits for the GPU. If another rank of the same GPU had still to
  // enqueue what its own stream waits for, it could not, and both would wait for ever.
  rank.barrier();
  Verification found;
  for (const auto& problem : problems) found += problem->compare_exact(false);
  return found;
}

/// The same on so many ranks.
template <typename Algorithm, typename Problem, typename... More>
DenseRun run_dense(int ranks, MatmulShape whole, std::uint64_t seed, int calls = 1, More... more) {
  DenseRun run;
  std::vector<Verification> found(static_cast<std::size_t>(ranks));
  try {
    run_ranks(ranks, [&](Rank& rank) {
      found[static_cast<std::size_t>(rank.id())] =
          run_dense_on<Algorithm, Problem>(rank, whole, seed, calls, more...);
    });
  } catch (const Skip& skip) {
    run.skipped = skip.what();
    return run;
  }
  for (const Verification& own : found) run.found += own;
  return run;
}

/// A DenseRun that must be right; skips the test where the algorithm cannot run.
template <typename Algorithm, typename Problem, typename... More>
void expect_right(int ranks, MatmulShape whole, std::uint64_t seed = 1, int calls = 1, More... more) {
  const DenseRun run = run_dense<Algorithm, Problem>(ranks, whole, seed, calls, more...);
  if (!run.skipped.empty()) GTEST_SKIP() << run.skipped;
  EXPECT_TRUE(run.found.ok()) << whole.m << " x " << whole.n << " x " << whole.k << " on " << ranks
                              << " ranks: " << describe(run.found);
  EXPECT_EQ(run.found.elements, whole.m * whole.n * results_of(calls));
}

/// The same for each of these shapes, in one run: a run with NCCL takes a while to begin.
template <typename Algorithm, typename Problem, typename... More>
void expect_all_right(int ranks, const std::vector<MatmulShape>& shapes, std::uint64_t seed = 1,
                      int calls = 1, More... more) {
  std::vector<std::vector<Verification>> found(shapes.size(),
                                               std::vector<Verification>(static_cast<std::size_t>(ranks)));
  try {
    run_ranks(ranks, [&](Rank& rank) {
      for (std::size_t i = 0; i < shapes.size(); ++i) {
        found[i][static_cast<std::size_t>(rank.id())] =
            run_dense_on<Algorithm, Problem>(rank, shapes[i], seed + 2 * i, calls, more...);
      }
    });
  } catch (const Skip& skip) {
    GTEST_SKIP() << skip.what();
  }
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    Verification all;
    for (const Verification& own : found[i]) all += own;
    EXPECT_TRUE(all.ok()) << shapes[i].m << " x " << shapes[i].n << " x " << shapes[i].k << " on " << ranks
                          << " ranks: " << describe(all);
    EXPECT_EQ(all.elements, shapes[i].m * shapes[i].n * results_of(calls));
  }
}

/// How many random schedules a test runs.
inline std::uint64_t schedules() { return 20; }

/// The sizes that every chapter on dense products must stand: even and uneven ones, smaller than the number
/// of ranks, not a multiple of anything.
inline std::vector<MatmulShape> dense_shapes() {
  return {{64, 64, 32}, {96, 40, 24}, {33, 37, 29}, {17, 100, 5},
          {1, 129, 64}, {100, 1, 3},  {5, 3, 7},    {64, 48, 1}};
}

/// `count` random sizes of 1 to 70, drawn from the seed.
inline std::vector<MatmulShape> random_shapes(int count, unsigned seed) {
  std::mt19937 random(seed);
  const auto size = [&random] { return static_cast<std::int64_t>(1 + random() % 70); };
  std::vector<MatmulShape> shapes;
  for (int i = 0; i < count; ++i) {
    const std::int64_t m = size(), n = size(), k = size();
    shapes.push_back({m, n, k});
  }
  return shapes;
}

}  // namespace overlap
