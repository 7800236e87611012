// Launching kernels. The rewriter turns
//   kernel<<<grid, block, shared, stream>>>(arguments)   into   (configure_launch(...), kernel(arguments))
// and wraps a kernel's body, so that calling the kernel enqueues the body with its arguments copied:
//   void kernel(parameters) { launch_kernel(__PRETTY_FUNCTION__, bounds, [=]() mutable -> void { body },
//                                          {{"pointer", pointer}, ...}); }
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <type_traits>
#include <utility>

#include "types.h"

namespace vgpu {

/// A kernel with its arguments, ready to run as any number of CUDA threads.
class KernelBody {
 public:
  virtual ~KernelBody() = default;
  /// Runs the calling CUDA thread from begin to end, with its own copy of the arguments.
  virtual void run_thread() const = 0;
};

/// The declared limits of a kernel's blocks; the rewriter gives {threads, x, y, z} if it has
/// __cluster_dims__, else the number of threads alone.
struct KernelBounds {
  KernelBounds(int threads, int x = 1, int y = 1, int z = 1)
      : max_threads(threads),
        cluster{static_cast<unsigned>(x), static_cast<unsigned>(y), static_cast<unsigned>(z)} {}
  int max_threads;  // __launch_bounds__, 0 if there is none
  dim3 cluster;     // __cluster_dims__
};

struct KernelInfo {
  const char* signature;  // as the compiler prints it, template arguments included
  KernelBounds bounds;
  const void* key;  // identity, the same for all launches of one kernel
};

/// The configuration of a launch until its kernel is called; dropped if an argument throws.
class [[maybe_unused]] PendingLaunch {
 public:
  explicit PendingLaunch(std::size_t depth) : depth_(depth) {}
  PendingLaunch(const PendingLaunch&) = delete;
  PendingLaunch& operator=(const PendingLaunch&) = delete;
  ~PendingLaunch();

 private:
  std::size_t depth_;
};

/// Sets the configuration of the launch that follows.
PendingLaunch configure_launch(dim3 grid, dim3 block, std::size_t shared_bytes = 0,
                               cudaStream_t stream = nullptr);

/// The same for cudaLaunchCooperativeKernel: all blocks are resident at once, so a grid barrier works.
PendingLaunch configure_cooperative_launch(dim3 grid, dim3 block, std::size_t shared_bytes,
                                           cudaStream_t stream);

/// The same of cudaLaunchKernelEx.
PendingLaunch configure_launch(const cudaLaunchConfig_t& launch);

/// True while a kernel is called only to get its identity; records `key` and `bounds`.
bool identifying(const void* key, const KernelBounds& bounds);

/// A parameter of a kernel that is declared as a pointer, by name; one to a function counts as null.
struct PointerArgument {
  template <class T>
  PointerArgument(const char* parameter, T argument) : name(parameter) {
    if constexpr (std::is_pointer_v<T> && !std::is_function_v<std::remove_pointer_t<T>>)
      pointer = const_cast<const void*>(static_cast<const volatile void*>(argument));
  }
  const char* name;
  const void* pointer = nullptr;
};
using PointerArguments = std::initializer_list<PointerArgument>;

void enqueue_kernel(const KernelInfo& info, std::unique_ptr<KernelBody> body, PointerArguments pointers);

template <class Body>
inline char kernel_key;

/// The arguments as real GPUs get them: their bytes, after the launch has copied them and before it destroys
/// them. A CUDA thread copies bytes only: copy constructors and destructors run on the host.
template <class Body>
class KernelBodyOf final : public KernelBody {
 public:
  explicit KernelBodyOf(const Body& body) {
    std::memcpy(bytes_, static_cast<const void*>(&body), sizeof(Body));
  }
#if defined(__SANITIZE_THREAD__) || VGPU_CHECK
  // All that it calls is inlined, where it can be: g++ tells neither detector of structures that a function
  // gets directly from memory (f(x[i])) or returns there (x[i] = f()).
  [[gnu::flatten]]
#endif
  void
  run_thread() const override {
    alignas(Body) std::byte mine[sizeof(Body)];
    copy(mine);
    (*reinterpret_cast<Body*>(mine))();
  }

 private:
  /// The arguments never change: the race detector need not check each thread's copy.
  [[gnu::no_sanitize_thread, gnu::no_sanitize_coverage]] void copy(std::byte* mine) const {
    std::memcpy(mine, bytes_, sizeof(Body));
  }

  alignas(Body) std::byte bytes_[sizeof(Body)];
};

template <class Body>
void launch_kernel(const char* signature, KernelBounds bounds, Body body, PointerArguments pointers = {}) {
  if (identifying(&kernel_key<Body>, bounds)) return;
  enqueue_kernel({signature, bounds, &kernel_key<Body>}, std::make_unique<KernelBodyOf<Body>>(body),
                 pointers);
}

/// A kernel without its arguments; the key is null if the function is no kernel.
struct KernelIdentity {
  const void* key;
  KernelBounds bounds;
};

void begin_identification();
KernelIdentity end_identification();

cudaError_t peek_at_last_error();

/// An argument of a call that does nothing with it.
template <class T>
struct Nothing {
  T& value() { return *reinterpret_cast<T*>(bytes); }
  alignas(T) std::byte bytes[sizeof(T)] = {};
};

/// Calls the kernel in a mode in which it only records its identity.
template <class... Parameters>
KernelIdentity identity_of(void (*kernel)(Parameters...)) {
  begin_identification();
  kernel(Nothing<std::remove_cv_t<Parameters>>().value()...);
  return end_identification();
}

/// Key of a kernel.
template <class... Parameters>
const void* identify(void (*kernel)(Parameters...)) {
  return identity_of(kernel).key;
}

template <class... Parameters, std::size_t... index>
cudaError_t launch_unpacked(PendingLaunch, void (*kernel)(Parameters...), void** arguments,
                            std::index_sequence<index...>) {
  kernel(*static_cast<std::remove_cv_t<Parameters>*>(arguments[index])...);
  return peek_at_last_error();
}

cudaError_t set_function_attribute(const void* key, cudaFuncAttribute attribute, int value);
cudaError_t function_attributes(cudaFuncAttributes* attributes, const void* key);
cudaError_t best_block_size(int* grid, int* block, const void* key, std::size_t dynamic_shared_bytes,
                            int limit);
cudaError_t max_active_blocks(int* blocks, const void* key, int block_size, std::size_t dynamic_shared_bytes);
cudaError_t max_active_clusters(int* clusters, const KernelIdentity& kernel,
                                const cudaLaunchConfig_t* launch);

}  // namespace vgpu

template <class... Parameters>
cudaError_t cudaFuncSetAttribute(void (*kernel)(Parameters...), cudaFuncAttribute attribute, int value) {
  return vgpu::set_function_attribute(vgpu::identify(kernel), attribute, value);
}

/// Counts threads, blocks and dynamic shared memory; registers and static shared memory are not known here.
template <class... Parameters>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void (*kernel)(Parameters...),
                                                          int block_size, std::size_t dynamic_shared_bytes) {
  return vgpu::max_active_blocks(blocks, vgpu::identify(kernel), block_size, dynamic_shared_bytes);
}
/// As above, and each block of a cluster has a multiprocessor of its own.
template <class... Parameters>
cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, void (*kernel)(Parameters...),
                                           const cudaLaunchConfig_t* launch) {
  return vgpu::max_active_clusters(clusters, vgpu::identity_of(kernel), launch);
}
/// The largest block, and as many of them as the GPU holds at once.
template <class... Parameters>
cudaError_t cudaOccupancyMaxPotentialBlockSize(int* grid, int* block, void (*kernel)(Parameters...),
                                               std::size_t dynamic_shared_bytes = 0, int limit = 0) {
  return vgpu::best_block_size(grid, block, vgpu::identify(kernel), dynamic_shared_bytes, limit);
}

template <class... Parameters>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, void (*kernel)(Parameters...)) {
  return vgpu::function_attributes(attributes, vgpu::identify(kernel));
}
template <class... Parameters>
cudaError_t cudaFuncSetCacheConfig(void (*)(Parameters...), cudaFuncCache) {
  return cudaSuccess;
}

// The kernel as itself: the rewriter takes a cast to void* away that stands in the call.
template <class... Parameters>
cudaError_t cudaLaunchKernel(void (*kernel)(Parameters...), dim3 grid, dim3 block, void** arguments,
                             std::size_t shared_bytes = 0, cudaStream_t stream = nullptr) {
  return vgpu::launch_unpacked(vgpu::configure_launch(grid, block, shared_bytes, stream), kernel, arguments,
                               std::index_sequence_for<Parameters...>{});
}
template <class... Parameters>
cudaError_t cudaLaunchCooperativeKernel(void (*kernel)(Parameters...), dim3 grid, dim3 block,
                                        void** arguments, std::size_t shared_bytes = 0,
                                        cudaStream_t stream = nullptr) {
  return vgpu::launch_unpacked(vgpu::configure_cooperative_launch(grid, block, shared_bytes, stream), kernel,
                               arguments, std::index_sequence_for<Parameters...>{});
}
/// Attributes: cooperative, clusters along x, programmatic dependent launch.
template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* launch, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  const vgpu::PendingLaunch pending = vgpu::configure_launch(*launch);
  kernel(std::forward<Arguments>(arguments)...);
  return vgpu::peek_at_last_error();
}
template <class... Parameters>
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* launch, void (*kernel)(Parameters...),
                                void** arguments) {
  return vgpu::launch_unpacked(vgpu::configure_launch(*launch), kernel, arguments,
                               std::index_sequence_for<Parameters...>{});
}
