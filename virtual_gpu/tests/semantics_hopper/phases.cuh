// How the kernels of the tests use the phases of an mbarrier.
#pragma once

#include <cstdint>
#include <cuda/ptx>

namespace phases {

/// Returns once a phase of that number's parity is complete. They are counted from 0; of a new barrier the
/// one before it is complete.
__device__ inline void await_phase(std::uint64_t* barrier, int phase) {
  while (!cuda::ptx::mbarrier_try_wait_parity(barrier, static_cast<std::uint32_t>(phase & 1))) {
  }
}

/// Arrives and says that so many bytes will come.
__device__ inline void expect_bytes(std::uint64_t* barrier, std::uint32_t bytes) {
  namespace ptx = cuda::ptx;
  ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, barrier, bytes);
}

}  // namespace phases
