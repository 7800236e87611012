// The implementation of the virtual overlap/gpu/wgmma.hpp: a Hopper warpgroup's asynchronous MMAs, and other
// PTX that <cuda/ptx> does not have, called by the running CUDA thread. An MMA is done at the wait that
// observes it or, with a seed, at any time from its issue on.
#pragma once

#include <cstdint>

namespace vgpu {

/// D[64, columns] (+)= A[64, 16] B[16, columns]: all 128 threads of the warpgroup give the same arguments.
struct WgmmaRequest {
  std::uint64_t a, b;  // descriptors
  int columns;
  bool bfloat16;  // or half
  bool a_mn_major, b_mn_major, accumulate;
  bool operator==(const WgmmaRequest&) const = default;
};

/// The thread's part of D is the columns / 2 floats at `fragment`.
void wgmma(float* fragment, const WgmmaRequest& request);
void wgmma_fence();
void wgmma_commit();
/// Waits for all but the last `pending` groups of the thread's warpgroup.
void wgmma_wait(unsigned int pending);
/// Floats that a fresh Fragment holds: all ones, as fresh memory.
void begin_fragment(float* values, int count);
/// The Fragment with these values is destroyed.
void end_fragment(const float* values);

/// setmaxnreg: the thread's warpgroup asks for, or gives back, registers until each thread has `count`.
void set_registers(int count, bool more);
bool elect_one();
void named_barrier(int id, int threads);
void store_matrix(void* row, const std::uint32_t* pairs);
void prefetch_tensor_map(const void* map);

}  // namespace vgpu
