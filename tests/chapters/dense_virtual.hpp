// Shared by tests of dense products on virtual GPUs: bytes and modelled time of a call.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "dense_run.hpp"
#include "link_traffic.hpp"
#include "on_virtual_gpus.hpp"
#include "overlap/bench/timing.hpp"

namespace overlap {

/// One call of the algorithm on the problem's matrices.
template <typename Algorithm, typename Problem>
auto call_of(Algorithm& algorithm, Problem& problem) {
  return [&](cudaStream_t stream) { algorithm.run(problem.a(), problem.b(), problem.c(), stream); };
}

/// What one call of an Algorithm(rank, whole, more...) moves.
template <typename Algorithm, typename Problem, typename... More>
LinkTraffic traffic_of_a_call(int ranks, MatmulShape whole, More... more) {
  LinkTraffic moved;
  run_ranks(ranks, [&](Rank& rank) {
    Problem problem(rank, whole, 1);
    Algorithm algorithm(rank, whole, more...);
    problem.fill_exact();
    const LinkTraffic all = traffic_of(rank, call_of(algorithm, problem));
    if (rank.id() == 0) moved = all;
  });
  return moved;
}

/// Each rank sends only to the rank `places` to its right, as its cost card `cost_of(rank)` says.
/// `all_copied`: false if some messages may be signals alone, which are not counted.
template <typename CostOf>
void expect_one_neighbour(const LinkTraffic& moved, int ranks, int places, const CostOf& cost_of,
                          bool all_copied = true) {
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) {
      if (to == from) continue;
      const bool is_link = to == (from + places + ranks) % ranks;
      const Moved& link = moved.over(from, to);
      EXPECT_EQ(link.bytes, is_link ? cost_of(from).bytes_out : 0) << from << " to " << to << " of " << ranks;
      EXPECT_EQ(link.bytes, is_link ? cost_of(to).bytes_in : 0) << from << " to " << to << " of " << ranks;
      if (all_copied || !is_link) {
        EXPECT_EQ(link.copies, is_link ? cost_of(from).messages : 0) << from << " to " << to;
      }
    }
  }
}

/// The algorithm cannot run here, and says why.
template <typename Algorithm, typename Problem>
void expect_skipped(int ranks, MatmulShape whole, const std::string& why) {
  const std::string reason = run_dense<Algorithm, Problem>(ranks, whole, 1).skipped;
  EXPECT_NE(reason.find(why), std::string::npos) << reason;
}

/// So many ranks share a GPU, whose multiprocessors have no room for a waiting block of each.
template <typename Algorithm, typename Problem>
void expect_no_room(int ranks, MatmulShape whole) {
  expect_skipped<Algorithm, Problem>(ranks, whole,
                                     "waits in 1 blocks at the same time, and GPU 0 has room for 0");
}

/// The modelled time of each of these calls on the slowest rank, in milliseconds. Collective.
inline std::vector<double> modelled_ms(Rank& rank,
                                       const std::vector<std::function<void(cudaStream_t)>>& calls) {
  std::vector<TimedVariant> variants;
  for (const auto& call : calls) variants.push_back({"call " + std::to_string(variants.size()), call});
  std::vector<double> ms;
  for (const VariantTimes& times : time_variants(rank, variants, 1, 1, false))
    ms.push_back(times.device_ms.median);
  return ms;
}

/// The modelled time of one call of an Algorithm(rank, whole, more...).
template <typename Algorithm, typename Problem, typename... More>
double modelled_ms(int ranks, MatmulShape whole, More... more) {
  double ms = 0;
  run_ranks(ranks, [&](Rank& rank) {
    Problem problem(rank, whole, 1);
    Algorithm algorithm(rank, whole, more...);
    problem.fill_exact();
    const double own = modelled_ms(rank, {call_of(algorithm, problem)}).front();
    if (rank.id() == 0) ms = own;
  });
  return ms;
}

}  // namespace overlap
