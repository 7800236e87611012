// The smallest runtime for rewritten code: a launch runs the kernel at once, one CUDA thread after another.
// It tests the rewriter without the virtual GPUs.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <utility>
#include <vector>

#define __forceinline__ inline __attribute__((always_inline))
#define __align__(n) __attribute__((aligned(n)))

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
using cudaStream_t = struct CUstream_st*;
enum cudaError_t { cudaSuccess };
enum cudaMemcpyKind { cudaMemcpyDeviceToHost };

template <typename T>
cudaError_t cudaMalloc(T** memory, std::size_t bytes) {
  *memory = static_cast<T*>(std::malloc(bytes));
  return cudaSuccess;
}
inline cudaError_t cudaFree(void* memory) { return std::free(memory), cudaSuccess; }
inline cudaError_t cudaMemset(void* memory, int value, std::size_t bytes) {
  return std::memset(memory, value, bytes), cudaSuccess;
}
inline cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  return std::memcpy(to, from, bytes), cudaSuccess;
}
inline cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }

namespace vgpu {

struct Launch {
  dim3 grid, block, block_index, thread_index;
  std::size_t shared_bytes = 0;
  const char* kernel = "";
  int thread_bound = 0;
};
inline Launch launch;  // of the running thread
inline std::vector<Launch>
    pending;  // arguments may launch, too: the launch that was configured last starts first

inline void configure_launch(dim3 grid, dim3 block, std::size_t shared_bytes = 0, cudaStream_t = nullptr) {
  pending.push_back(Launch{grid, block, {}, {}, shared_bytes, "", 0});
}

struct PointerArgument {
  const char* name;
  const volatile void* pointer;
};
inline std::vector<PointerArgument> pointers;  // of the last launch

template <typename Body>
void launch_kernel(const char* name, int thread_bound, Body body,
                   std::vector<PointerArgument> arguments = {}) {
  pointers = std::move(arguments);
  Launch mine = pending.at(pending.size() - 1);  // throws if the kernel was called without a launch
  pending.pop_back();
  mine.kernel = name;
  mine.thread_bound = thread_bound;
  for (unsigned block = 0; block < mine.grid.x; ++block) {
    for (unsigned thread = 0; thread < mine.block.x; ++thread) {
      mine.block_index = dim3(block, 0, 0);
      mine.thread_index = dim3(thread, 0, 0);
      launch = mine;
      Body own = body;
      own();
    }
  }
}

inline bool program_note(const char*) { return true; }

template <typename Variables>
Variables& shared(const char* /*names*/) {
  alignas(Variables) static unsigned char bytes[sizeof(Variables)];
  return reinterpret_cast<Variables&>(bytes);
}
inline void* dynamic_shared() {
  alignas(256) static unsigned char bytes[1 << 16];
  return bytes;
}

}  // namespace vgpu

// Macros of a system header, as on the virtual GPUs: each use adds line markers to the user's text.
#define threadIdx (::vgpu::launch.thread_index)
#define blockIdx (::vgpu::launch.block_index)
#define blockDim (::vgpu::launch.block)
#define gridDim (::vgpu::launch.grid)
