// Launching kernels. The rewriter turns
//   kernel<<<grid, block, shared, stream>>>(arguments)   into   (configure_launch(...), kernel(arguments))
// and wraps a kernel's body, so that calling the kernel enqueues the body with its arguments copied:
//   void kernel(parameters) { launch_kernel(__PRETTY_FUNCTION__, bounds, [=]() mutable -> void { body },
//                                          {{"pointer", pointer}, ...}); }
#pragma once

#include <cstddef>
#include <cstdint>
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

/// What a kernel's declaration says of its blocks; the rewriter gives {threads, x, y, z} if it has
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

/// The configuration of a launch whose kernel has not been called yet. It is dropped if that never happens,
/// because an argument throws.
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

/// True while a kernel is called only to learn which one it is; records `key`.
bool identifying(const void* key);

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

template <class Body>
class KernelBodyOf final : public KernelBody {
 public:
  explicit KernelBodyOf(Body body) : body_(std::move(body)) {}
  void run_thread() const override {
    Body mine = body_;
    mine();
  }

 private:
  Body body_;
};

template <class Body>
void launch_kernel(const char* signature, KernelBounds bounds, Body body, PointerArguments pointers = {}) {
  if (identifying(&kernel_key<Body>)) return;
  enqueue_kernel({signature, bounds, &kernel_key<Body>},
                 std::make_unique<KernelBodyOf<Body>>(std::move(body)), pointers);
}

void begin_identification();
const void* end_identification();

/// Key of a kernel: calls it in a mode in which it only says which one it is.
template <class... Parameters>
const void* identify(void (*kernel)(Parameters...)) {
  begin_identification();
  kernel(std::remove_cv_t<Parameters>{}...);
  return end_identification();
}

cudaError_t set_function_attribute(const void* key, cudaFuncAttribute attribute, int value);
cudaError_t max_active_blocks(int* blocks, const void* key, int block_size, std::size_t dynamic_shared_bytes);

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
