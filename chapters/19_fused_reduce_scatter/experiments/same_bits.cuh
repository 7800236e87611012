// Experiment of chapter 19: whether several calls give the same bits, and how far they are from sums in f32.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "06_reduce_scatter/experiments/errors.cuh"
#include "19_fused_reduce_scatter/experiments/reduce_add.cuh"
#include "overlap/bench/dense_bench.hpp"
#include "overlap/bench/dense_problem.hpp"
#include "overlap/bench/device_data.hpp"

namespace overlap::fused_reduce_scatter {

inline constexpr int kCallsCompared = 5;  ///< of each variant, on the same random normals

/// How a variant rounds on the way to its result, see Accumulation.
inline Accumulation accumulation_of(std::string_view variant, ElementType type, int ranks) {
  if (ranks == 1) return {};
  const bool in_f32 = variant.ends_with("_f32");
  // `added_up` rounds a partial sum, then each sum that contains it; the first sum, 0 + x, is exact.
  const int roundings = variant.starts_with("added_up") ? ranks - 1 : 1;
  return {in_f32 ? ElementType::kF32 : type, roundings};
}

/// Memory of a rank for other ranks' partial sums.
struct Memory {
  std::string variant;
  std::int64_t bytes;  ///< flags included
};

/// The elements of C that the rank holds, as bits.
template <SixteenBit T>
std::vector<std::uint16_t> bits_of_result(const ScatterProblem<T>& problem) {
  return download(problem.rank(), reinterpret_cast<const std::uint16_t*>(problem.c()),
                  static_cast<std::int64_t>(problem.reference().size()));
}

/// For each algorithm, prints and adds to the results: its bytes, the number of different results of
/// kCallsCompared calls on the random normals that were timed, and the errors of the last call. Collective.
template <SixteenBit T>
void report_bits(DenseBench& bench, const ScatterProblem<T>& problem, const std::vector<Memory>& algorithms,
                 Results& results) {
  Rank& rank = problem.rank();
  std::map<std::string, std::set<std::vector<std::uint16_t>>> found;
  std::map<std::string, reduce_scatter::Errors> errors;
  for (int call = 0; call < kCallsCompared; ++call) {
    bench.look_at_results([&](const std::string& name) {
      found[name].insert(bits_of_result(problem));
      errors[name] = reduce_scatter::errors_of(problem, accumulation_of(name, problem.type(), rank.size()));
    });
  }
  ResultTable table({{"", "variant"},
                     {"bytes for sums and flags", "memory"},
                     {"different results of " + std::to_string(kCallsCompared) + " calls", "different"},
                     {"largest error", "largest_error", reduce_scatter::scientific},
                     {"root mean square", "rms_error", reduce_scatter::scientific},
                     {"proven bound", "bound", reduce_scatter::scientific}});
  for (const auto& [name, bytes] : algorithms) {
    if (!found.contains(name)) continue;
    // The largest number over all ranks, because each rank compares its own rows only.
    std::int64_t different = 0;
    for (const std::int64_t own : rank.exchange(static_cast<std::int64_t>(found[name].size())))
      different = std::max(different, own);
    if (rank.id() != 0) continue;
    table.add({{"section", std::string("bits")},
               {"variant", name},
               {"gpus", std::int64_t{rank.size()}},
               {"memory", bytes},
               {"different", different},
               {"largest_error", errors[name].largest},
               {"rms_error", errors[name].root_mean_square},
               {"bound", errors[name].bound}});
  }
  if (rank.id() == 0) table.finish("\nagainst sums in f32, random normals:\n", results);
}

}  // namespace overlap::fused_reduce_scatter
