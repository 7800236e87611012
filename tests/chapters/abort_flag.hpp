// Kernels on virtual GPUs that wait for a rank whose call never comes, until the abort flag is set.
#pragma once

#include <gtest/gtest.h>

#include "dense_run.hpp"
#include "on_virtual_gpus.hpp"

namespace overlap {

/// Rank 0 makes no call: the abort flag alone must end the waits of the others' kernels. A stopped run cannot
/// show that a kernel never reads the flag, because it also opens the words of Signals, and on virtual GPUs
/// discards the kernels.
template <typename Algorithm, typename Problem, typename... More>
void expect_the_abort_flag_ends_waits(int ranks, MatmulShape whole, More... more) {
  vgpu::HostBarrier barrier(ranks);  // Rank::barrier() throws while the flag is set
  run_ranks(ranks, [&](Rank& rank) {
    Problem problem(rank, whole, 5);
    problem.fill_exact();
    Algorithm algorithm(rank, whole, more...);
    rank.barrier();
    if (rank.id() > 0) algorithm.run(problem.a(), problem.b(), problem.c(), rank.stream());
    barrier.wait();
    if (rank.id() == 0) __atomic_store_n(rank.abort_flag(), 1U, __ATOMIC_RELEASE);
    barrier.wait();
    EXPECT_EQ(cudaStreamSynchronize(rank.stream()), cudaSuccess) << "rank " << rank.id();
    barrier.wait();
    if (rank.id() == 0) __atomic_store_n(rank.abort_flag(), 0U, __ATOMIC_RELEASE);
    barrier.wait();
  });
}

}  // namespace overlap
