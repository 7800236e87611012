// Chapter 06: how far the results are from the sums in f32, and how far they may be.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "overlap/bench/dense_bench.hpp"
#include "overlap/bench/dense_problem.hpp"
#include "overlap/bench/device_data.hpp"
#include "overlap/data/tolerance.hpp"

namespace overlap::reduce_scatter {

/// How a variant rounds on the way to its result: which type its partial sums are stored in, and how often
/// one of them, or a sum of them, is rounded to it. The last rounding is that of C itself, which does not
/// count here; one rank has no other.
inline Accumulation accumulation_of(std::string_view variant, ElementType type, int ranks) {
  if (ranks == 1) return {};
  if (variant == "all_to_all") return {type, 1};  // each partial product once; they are added in f32
  if (variant == "rotating_f32") return {ElementType::kF32, ranks - 1};
  return {type, ranks - 1};  // nccl, rotating: each partial product, and each sum of two
}

/// Errors of all elements on all ranks, against the sums in f32.
struct Errors {
  double largest = 0;           ///< of any element, absolute
  double root_mean_square = 0;  ///< over all elements, absolute
  double bound = 0;             ///< the largest error that any element may have: proven, see tolerance.hpp
};

/// The errors of what C holds, after problem.fill_normal() and a run. Collective.
template <Floating T>
Errors errors_of(const ScatterProblem<T>& problem, Accumulation accumulation) {
  Rank& rank = problem.rank();
  const std::vector<double>& right = problem.reference();
  const std::vector<T> c = download(rank, problem.c(), static_cast<std::int64_t>(right.size()));
  const Tolerance tolerance =
      matmul_tolerance(problem.whole().k, problem.type(), problem.type(), accumulation);
  struct Own {
    double largest, squares, bound;
  } own = {};
  const std::vector<double>& columns = problem.norms().b_columns;
  for (std::size_t i = 0; i < c.size(); ++i) {
    const double error = std::abs(value_of(c[i]) - right[i]);
    const double norms = problem.norms().a_rows[i / columns.size()] * columns[i % columns.size()];
    own.largest = std::max(own.largest, error);
    own.squares += error * error;
    own.bound = std::max(
        own.bound, tolerance.magnitude * norms + tolerance.value * std::abs(right[i]) + tolerance.absolute);
  }
  Errors all;
  double squares = 0;
  for (const Own& other : rank.exchange(own)) {
    all.largest = std::max(all.largest, other.largest);
    all.bound = std::max(all.bound, other.bound);
    squares += other.squares;
  }
  const MatmulShape whole = problem.whole();
  all.root_mean_square = std::sqrt(squares / (static_cast<double>(whole.m) * static_cast<double>(whole.n)));
  return all;
}

/// The number with two digits: "1.8e-02".
inline std::string scientific(double value) {
  char text[16];
  std::snprintf(text, sizeof text, "%.1e", value);
  return text;
}

/// Prints and adds to the results the errors of all algorithms, on the random normals that were timed.
/// Collective.
template <Floating T>
void report_errors(DenseBench& bench, const ScatterProblem<T>& problem, Results& results) {
  const int ranks = problem.rank().size();
  ResultTable table({{"", "variant"},
                     {"largest error", "largest_error", scientific},
                     {"root mean square", "rms_error", scientific},
                     {"proven bound", "bound", scientific}});
  bench.look_at_results([&](const std::string& name) {
    const Errors errors = errors_of(problem, accumulation_of(name, problem.type(), ranks));
    if (problem.rank().id() != 0) return;
    table.add({{"section", std::string("error")},
               {"variant", name},
               {"gpus", std::int64_t{ranks}},
               {"largest_error", errors.largest},
               {"rms_error", errors.root_mean_square},
               {"bound", errors.bound}});
  });
  if (problem.rank().id() == 0) table.finish("\nagainst sums in f32, random normals:\n", results);
}

}  // namespace overlap::reduce_scatter
