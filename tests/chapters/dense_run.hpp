// Runs of the chapters' algorithms on dense products, compared on every element. For the chapters' tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "calls_at_once.hpp"
#include "overlap/bench/dense_problem.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/signals.hpp"

namespace overlap {

/// For algorithms that use NCCL, which needs a GPU for each rank. With fewer GPUs a test is skipped before
/// its run, because a failed run destroys the communicators and cuBLAS handles that the next tests reuse.
class OnRanksOfNccl : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    int gpus = 0;
    CUDA_CHECK(cudaGetDeviceCount(&gpus));
    if (GetParam() > gpus) GTEST_SKIP() << "NCCL needs " << GetParam() << " GPUs";
  }
};

/// Runs it; where it cannot run, the test is skipped.
template <typename Run>
void run_or_skip(const Run& run) {
  try {
    run();
  } catch (const Skip& skip) {
    GTEST_SKIP() << skip.what();
  }
}

/// The same for ranks.
inline void run_ranks_or_skip(int ranks, const std::function<void(Rank&)>& run) {
  run_or_skip([&] { run_ranks(ranks, run); });
}

/// `run` throws an Error whose sentence has this part. Where its ranks cannot run, the test is skipped.
template <typename Error, typename Run>
void expect_thrown(const Run& run, const std::string& sentence) {
  try {
    run();
    FAIL() << "not thrown: " << sentence;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(sentence), std::string::npos) << error.what();
  } catch (const Skip& skip) {
    GTEST_SKIP() << skip.what();
  }
}

/// What `compare(rank)` finds on all ranks together.
template <typename Compare>
Verification found_on(int ranks, const Compare& compare) {
  std::vector<Verification> found(static_cast<std::size_t>(ranks));
  run_ranks(ranks, [&](Rank& rank) { found[static_cast<std::size_t>(rank.id())] = compare(rank); });
  Verification all;
  for (const Verification& own : found) all += own;
  return all;
}

/// The result of a comparison on all ranks; `skipped`: why the algorithm could not run.
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

/// Enqueues `calls` calls of an Algorithm(rank, whole, more...) without waiting, each with its own data and
/// result (except the first ones of more than kCallsWithResults calls), then compares every element. Finds
/// algorithms that depend on the previous call's state or overwrite what it still reads.
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
  // Before cudaFree, which waits for the GPU: another rank of the same GPU could not enqueue what its own
  // stream waits for, and both would deadlock.
  rank.barrier();
  Verification found;
  for (const auto& problem : problems) found += problem->compare_exact(false);
  return found;
}

/// The same for each shape in one run: creating ranks and their handles takes longer than a small GEMM.
template <typename Algorithm, typename Problem, typename... More>
std::vector<DenseRun> run_dense_all(int ranks, const std::vector<MatmulShape>& shapes, std::uint64_t seed,
                                    int calls = 1, More... more) {
  std::vector<DenseRun> runs(shapes.size());
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
    for (DenseRun& run : runs) run.skipped = skip.what();
    return runs;
  }
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    for (const Verification& own : found[i]) runs[i].found += own;
  }
  return runs;
}

template <typename Algorithm, typename Problem, typename... More>
DenseRun run_dense(int ranks, MatmulShape whole, std::uint64_t seed, int calls = 1, More... more) {
  return run_dense_all<Algorithm, Problem>(ranks, {whole}, seed, calls, more...).front();
}

/// All elements must be right, elements_of(shape) of each call; skips where the algorithm cannot run.
template <typename Elements>
void expect_runs_right(int ranks, const std::vector<MatmulShape>& shapes, int calls,
                       const std::vector<DenseRun>& runs, const Elements& elements_of) {
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (!runs[i].skipped.empty()) GTEST_SKIP() << runs[i].skipped;
    EXPECT_TRUE(runs[i].found.ok()) << shapes[i].m << " x " << shapes[i].n << " x " << shapes[i].k << " on "
                                    << ranks << " ranks: " << describe(runs[i].found);
    EXPECT_EQ(runs[i].found.elements, elements_of(shapes[i]) * results_of(calls));
  }
}

/// All of these shapes must be right, in one run.
template <typename Algorithm, typename Problem, typename... More>
void expect_all_right(int ranks, const std::vector<MatmulShape>& shapes, std::uint64_t seed = 1,
                      int calls = 1, More... more) {
  expect_runs_right(ranks, shapes, calls,
                    run_dense_all<Algorithm, Problem>(ranks, shapes, seed, calls, more...),
                    [](MatmulShape shape) { return shape.m * shape.n; });
}

template <typename Algorithm, typename Problem, typename... More>
void expect_right(int ranks, MatmulShape whole, std::uint64_t seed = 1, int calls = 1, More... more) {
  expect_all_right<Algorithm, Problem>(ranks, {whole}, seed, calls, more...);
}

/// While it lives, the words of signals that are made overflow in the fourth call.
struct WordsThatOverflow {
  WordsThatOverflow() { Signals::before_first = -4U; }
  ~WordsThatOverflow() { Signals::before_first = 0; }
  WordsThatOverflow(const WordsThatOverflow&) = delete;
  WordsThatOverflow& operator=(const WordsThatOverflow&) = delete;
};

/// Those of the shapes whose number is `which` mod `ways`: for algorithms that take turns.
inline std::vector<MatmulShape> every(std::size_t ways, std::size_t which,
                                      const std::vector<MatmulShape>& shapes) {
  std::vector<MatmulShape> chosen;
  for (std::size_t i = which; i < shapes.size(); i += ways) chosen.push_back(shapes[i]);
  return chosen;
}

/// Sizes for every chapter on dense products: even, uneven, smaller than the number of ranks, odd.
inline std::vector<MatmulShape> dense_shapes() {
  return {{64, 64, 32}, {96, 40, 24}, {33, 37, 29}, {17, 100, 5},
          {1, 129, 64}, {100, 1, 3},  {5, 3, 7},    {64, 48, 1}};
}

/// A size that is drawn: 1 to `most` times `step`.
struct Drawn {
  int most = 70;
  int step = 1;
};

/// `count` random sizes, drawn from the seed.
inline std::vector<MatmulShape> random_shapes(int count, unsigned seed, Drawn m = {}, Drawn n = {},
                                              Drawn k = {}) {
  std::mt19937 random(seed);
  const auto draw = [&random](Drawn size) {
    return size.step * static_cast<std::int64_t>(1 + random() % static_cast<unsigned>(size.most));
  };
  std::vector<MatmulShape> shapes;
  for (int i = 0; i < count; ++i) shapes.push_back({draw(m), draw(n), draw(k)});
  return shapes;
}

}  // namespace overlap
