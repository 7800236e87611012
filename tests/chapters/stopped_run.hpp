// A rank that throws while the others' kernels wait for it.
#pragma once

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "dense_run.hpp"

namespace overlap {

/// After so many calls of all ranks, `guilty` throws instead of the next one: the others' kernels wait for
/// signals that never arrive and must be released. run_ranks() ends the process if they still run after 5 s.
template <typename Algorithm, typename Problem, typename... More>
void expect_stopped_run(int ranks, int guilty, int calls, MatmulShape whole, More... more) {
  try {
    run_ranks(ranks, [&](Rank& rank) {
      Problem problem(rank, whole, 5);
      problem.fill_exact();
      Algorithm algorithm(rank, whole, more...);
      rank.barrier();
      const auto call = [&] { algorithm.run(problem.a(), problem.b(), problem.c(), rank.stream()); };
      for (int i = 0; i < calls; ++i) call();
      rank.synchronize(rank.stream());
      rank.barrier();
      if (rank.id() == guilty) throw std::runtime_error("planted");
      call();
      EXPECT_THROW(rank.synchronize(rank.stream()), RunStopped);
      throw RunStopped();
    });
    FAIL() << "the run was not stopped";
  } catch (const Skip& skip) {
    GTEST_SKIP() << skip.what();
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(std::string(error.what()), "rank " + std::to_string(guilty) + ": planted");
  }
}

}  // namespace overlap
