// Phases of an mbarrier, for the kernels of the tests.
#pragma once

#include <cstdint>
#include <cuda/ptx>

namespace phases {

/// Returns when a phase with that number's parity is complete. Phases count from 0; for a new barrier phase
/// -1 is complete.
__device__ inline void await_phase(std::uint64_t* barrier, int phase) {
  while (!cuda::ptx::mbarrier_try_wait_parity(barrier, static_cast<std::uint32_t>(phase & 1))) {
  }
}

/// Arrives and expects `bytes` bytes.
__device__ inline void expect_bytes(std::uint64_t* barrier, std::uint32_t bytes) {
  namespace ptx = cuda::ptx;
  ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, barrier, bytes);
}

}  // namespace phases
