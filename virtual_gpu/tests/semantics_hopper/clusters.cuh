// Clusters of two blocks, for the kernels of the tests.
#pragma once

#include "hopper_test.hpp"

namespace semantics {

/// A barrier of all threads of the cluster.
__device__ inline void meet_cluster() {
  ptx::barrier_cluster_arrive(ptx::sem_release);
  ptx::barrier_cluster_wait(ptx::sem_acquire);
}

/// The rank of the other block.
__device__ inline unsigned cluster_partner() { return ptx::get_sreg_cluster_ctarank() ^ 1; }

/// Arrives at the same mbarrier of the block `rank`.
__device__ inline void arrive_at(std::uint64_t* barrier, unsigned rank) {
  auto* there = static_cast<std::uint64_t*>(__cluster_map_shared_rank(barrier, rank));
  ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cluster, ptx::space_cluster, there);
}

/// await_phase() with acquire at cluster scope, for remote arrivals.
__device__ inline void await_phase_of_cluster(std::uint64_t* barrier, int phase) {
  while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, barrier,
                                        static_cast<std::uint32_t>(phase & 1))) {
  }
}

}  // namespace semantics
