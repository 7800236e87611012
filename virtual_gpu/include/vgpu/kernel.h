// The names that a CUDA kernel uses, on a virtual GPU.
#pragma once

#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstdio>

#include "cluster.h"
#include "types.h"

// The rewriter removes __global__, __device__, __host__, __shared__, __noinline__, __launch_bounds__ and
// __cluster_dims__; the rest are macros.
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __grid_constant__

// Built-in variables. The runtime sets them whenever it switches to a CUDA thread; for that thread they are
// constant.
extern const uint3 threadIdx;
extern const uint3 blockIdx;
extern const dim3 blockDim;
extern const dim3 gridDim;
inline constexpr int warpSize = 32;

/// Waits for all threads of the block that have not ended.
void __syncthreads();
/// The same; every thread gets the number of threads whose predicate was non-zero (or whether all, any were).
int __syncthreads_count(int predicate);
int __syncthreads_and(int predicate);
int __syncthreads_or(int predicate);

/// The kernel behind this one, if it was launched with cudaLaunchAttributeProgrammaticStreamSerialization,
/// may begin once each block has called this or has ended. Orders nothing.
void cudaTriggerProgrammaticLaunchCompletion();
/// Waits until the kernel before this one has ended, of one that was launched so.
void cudaGridDependencySynchronize();

/// Lets other blocks and streams run for at least `nanoseconds` of modelled time; for spin-waits.
void __nanosleep(unsigned int nanoseconds);

/// Modelled cycles: grows with every basic block that any kernel runs. Good for waiting, not for timing.
long long clock64();

/// Stops the kernel with cudaErrorLaunchFailure.
[[noreturn]] void __trap();

namespace vgpu {

/// Between the parts of an access that others may see in parts: with --schedule SEED, other blocks and
/// streams run here now and then.
void between_parts();

/// Storage of a __shared__ declaration: one per block and declaration. Freshly poisoned for every block.
/// For reports: the names of its variables, and where they are declared.
void* shared_storage(const void* declaration, std::size_t bytes, std::size_t alignment, const char* names,
                     const char* file, int line);
/// The block's dynamic shared memory (third launch parameter).
void* dynamic_shared();
/// The offset of an address of shared memory in that of its block.
std::size_t shared_offset(const void* address);

template <class Declaration>
inline char shared_declaration;

/// The rewriter turns `__shared__ T x[N], y;` into a local struct with these members and a call of this
/// function.
template <class Declaration>
Declaration& shared(const char* names, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return *static_cast<Declaration*>(shared_storage(&shared_declaration<Declaration>, sizeof(Declaration),
                                                   alignof(Declaration), names, file, line));
}

}  // namespace vgpu

/// The same place in the shared memory of another block of the cluster.
[[gnu::always_inline]] inline void* __cluster_map_shared_rank(const void* pointer, unsigned int rank) {
  return vgpu::cluster_map(pointer, rank);
}

/// The hardware's address of shared memory, as in swizzles and descriptors.
inline std::size_t __cvta_generic_to_shared(const void* pointer) { return vgpu::shared_offset(pointer); }
