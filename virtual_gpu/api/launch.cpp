// Launching kernels: configuration, CUDA's limits, attributes of kernels.
#include "vgpu/launch.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "cuda_runtime_api.h"
#include "engine/host/api_call.hpp"
#include "engine/kernel/kernel.hpp"

namespace vgpu {
namespace {

constexpr unsigned kMaxClusterSize = 8;  // blocks, as every GPU of compute capability 9.0 has them

struct Identification {
  bool active = false;
  KernelIdentity kernel{nullptr, 0};
};
Identification& identification() {
  static Identification state;
  return state;
}

/// "void overlap::multiply(const int*, int) [with T = int]" -> "overlap::multiply [with T = int]".
std::string short_name(const std::string& signature) {
  const std::size_t with = signature.find(" [with ");
  std::string name = signature.substr(0, with);
  int depth = 0;
  std::size_t end = name.size();
  while (end > 0) {  // the parameter list is the last parenthesis, and may hold others
    --end;
    if (name[end] == ')') ++depth;
    if (name[end] == '(' && --depth == 0) break;
  }
  name = name.substr(0, end);
  // The return type ends at the last space outside of template arguments and parentheses.
  depth = 0;
  for (std::size_t i = name.size(); i-- > 0;) {
    if (name[i] == '>' || name[i] == ')') ++depth;
    if (name[i] == '<' || name[i] == '(') --depth;
    if (name[i] == ' ' && depth == 0) {
      name = name.substr(i + 1);
      break;
    }
  }
  return with == std::string::npos ? name : name + signature.substr(with);
}

/// True if there is memory at this address.
bool is_mapped(const void* pointer) {
  const auto page_size = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto page = reinterpret_cast<std::uintptr_t>(pointer) / page_size * page_size;
  return msync(reinterpret_cast<void*>(page), page_size, MS_ASYNC) == 0;  // else ENOMEM
}

void check_limits(const Machine& machine, const KernelInfo& info,
                  const HostThread::LaunchConfiguration& launch, std::size_t shared_limit) {
  const auto refuse = [&](cudaError_t code, const std::string& why) {
    throw ApiError(code, "kernel '" + short_name(info.signature) + "': " + why);
  };
  const auto shape = [](const dim3& d) {
    return "(" + std::to_string(d.x) + "," + std::to_string(d.y) + "," + std::to_string(d.z) + ")";
  };
  const dim3& grid = launch.grid;
  const dim3& block = launch.block;
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  if (threads == 0 || block.x > 1024 || block.y > 1024 || block.z > 64 || threads > 1024) {
    refuse(cudaErrorInvalidConfiguration,
           "a block " + shape(block) + " has no thread, or more than 1024 (64 in z)");
  }
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535) {
    refuse(cudaErrorInvalidConfiguration,
           "a grid " + shape(grid) + " has no block, or more than 2^31-1 x 65535 x 65535");
  }
  if (info.bounds.max_threads > 0 && threads > static_cast<std::uint64_t>(info.bounds.max_threads)) {
    refuse(cudaErrorInvalidValue, "a block has " + std::to_string(threads) +
                                      " threads, __launch_bounds__ promises " +
                                      std::to_string(info.bounds.max_threads));
  }
  const dim3& cluster = launch.cluster;
  if (cluster.x < 1 || cluster.x > kMaxClusterSize || cluster.y != 1 || cluster.z != 1 ||
      static_cast<int>(cluster.x) > machine.multiprocessors) {
    refuse(cudaErrorInvalidClusterSize,
           "a cluster " + shape(cluster) + ": virtual GPUs have those of 1 to " +
               std::to_string(std::min(kMaxClusterSize, static_cast<unsigned>(machine.multiprocessors))) +
               " blocks along x");
  }
  if (grid.x % cluster.x != 0) {
    refuse(cudaErrorInvalidClusterSize,
           "a grid " + shape(grid) + " is no multiple of the cluster " + shape(cluster));
  }
  if (launch.shared_bytes > shared_limit) {
    refuse(cudaErrorInvalidValue,
           std::to_string(launch.shared_bytes) + " bytes of dynamic shared memory, more than " +
               std::to_string(shared_limit) + " (cudaFuncSetAttribute raises the limit to " +
               std::to_string(machine.shared_per_block_opt_in) + ")");
  }
}

/// Says once for each parameter that a kernel gets memory of the host that no GPU may access. No error: the
/// pointer may be passed, and here nobody sees whether the kernel follows it.
void warn_of_host_pointer(Runtime& runtime, const KernelInfo& info, const PointerArgument& argument) {
  if (argument.pointer == nullptr || runtime.memory().reserves(argument.pointer) ||
      runtime.memory().find(argument.pointer) != nullptr || !is_mapped(argument.pointer) ||
      !runtime.kernels().first_warning(info.key, argument.name)) {
    return;
  }
  std::fprintf(
      stderr,
      "virtual GPUs: warning: kernel '%s' takes as '%s' a pointer to host memory that is neither pinned "
      "nor registered: if the kernel dereferences it, most real GPUs fail with "
      "cudaErrorIllegalAddress\n",
      short_name(info.signature).c_str(), argument.name);
}

}  // namespace

static PendingLaunch configure(const HostThread::LaunchConfiguration& launch) {
  require_own_thread("a kernel launch");
  if (current_block() != nullptr && !ended_inside()) {
    current_block()->fault("kernel '" + current_block()->grid().name +
                           "' launches a kernel: not supported on virtual GPUs");
  }
  hb::start();
  const hb::RuntimeScope scope;
  return PendingLaunch(runtime().host().begin_launch(launch));
}

PendingLaunch configure_launch(dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream) {
  return configure({grid, block, shared_bytes, stream});
}

PendingLaunch configure_cooperative_launch(dim3 grid, dim3 block, std::size_t shared_bytes,
                                           cudaStream_t stream) {
  return configure({grid, block, shared_bytes, stream, true});
}

PendingLaunch configure_launch(const cudaLaunchConfig_t& config) {
  HostThread::LaunchConfiguration launch{config.gridDim, config.blockDim, config.dynamicSmemBytes,
                                         config.stream};
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const cudaLaunchAttributeValue& value = config.attrs[i].val;
    switch (config.attrs[i].id) {
      case cudaLaunchAttributeIgnore:
        break;
      case cudaLaunchAttributeCooperative:
        launch.cooperative = value.cooperative != 0;
        break;
      case cudaLaunchAttributeClusterDimension:
        launch.cluster = dim3(value.clusterDim.x, value.clusterDim.y, value.clusterDim.z);
        break;
      case cudaLaunchAttributeProgrammaticStreamSerialization:
        launch.programmatic = value.programmaticStreamSerializationAllowed != 0;
        break;
      default:
        launch.unknown_attribute = config.attrs[i].id;
    }
  }
  return configure(launch);
}

PendingLaunch::~PendingLaunch() { runtime().host().keep_launches(depth_ - 1); }

bool identifying(const void* key, const KernelBounds& bounds) {
  if (!identification().active) return false;
  identification().kernel = {key, bounds};
  return true;
}

void begin_identification() { identification() = {true, {nullptr, 0}}; }

KernelIdentity end_identification() {
  identification().active = false;
  return identification().kernel;
}

void enqueue_kernel(const KernelInfo& info, std::unique_ptr<KernelBody> body, PointerArguments pointers) {
  // A launch has no return value; its error is what cudaGetLastError returns.
  api_call("kernel launch", [&](Runtime& runtime) {
    if (!runtime.host().launches()) {
      throw ApiError(cudaErrorInvalidConfiguration,
                     "kernel '" + short_name(info.signature) + "' was called without <<<grid, block>>>");
    }
    auto launch = runtime.host().end_launch();
    if (launch.unknown_attribute != 0) {
      throw ApiError(cudaErrorNotSupported, "kernel '" + short_name(info.signature) + "': launch attribute " +
                                                std::to_string(launch.unknown_attribute) +
                                                " is not supported on virtual GPUs");
    }
    if (launch.cluster.x == 0) launch.cluster = info.bounds.cluster;
    Stream& stream = runtime.stream(launch.stream);
    Device& device = runtime.current_device();
    if (stream.device() != device.id()) {
      throw ApiError(cudaErrorInvalidResourceHandle,
                     "kernel '" + short_name(info.signature) + "' is launched on GPU " +
                         std::to_string(device.id()) + " into " + stream.name());
    }
    const Machine& machine = runtime.machine();
    const std::size_t dynamic_limit =
        runtime.kernels().dynamic_shared_limit(info.key, machine.shared_per_block);
    // A raised limit leaves room for declarations beside it.
    const std::size_t shared_limit =
        dynamic_limit > machine.shared_per_block ? machine.shared_per_block_opt_in : dynamic_limit;
    check_limits(runtime.machine(), info, launch, dynamic_limit);
    for (const PointerArgument& argument : pointers) warn_of_host_pointer(runtime, info, argument);
    Grid grid{launch.grid,
              launch.block,
              launch.shared_bytes,
              shared_limit,
              nullptr,
              short_name(info.signature),
              runtime.machine().poll_ns,
              launch.cluster.x};
    if (launch.cooperative) {
      const std::uint64_t blocks = std::uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
      const int threads = static_cast<int>(launch.block.x * launch.block.y * launch.block.z);
      const auto room = static_cast<std::uint64_t>(
          device.multiprocessors().capacity({threads, launch.shared_bytes}) * machine.multiprocessors);
      if (blocks > room)
        throw ApiError(cudaErrorCooperativeLaunchTooLarge,
                       "kernel '" + short_name(info.signature) + "': " + std::to_string(blocks) +
                           " blocks, and " + std::to_string(room) + " fit on the GPU at once");
      grid.meeting = std::make_shared<GridBarrier>();
    }
    auto kernel = std::make_unique<KernelLaunch>(runtime, device, std::move(grid), std::move(body));
    kernel->called_through_kernel();
    kernel->launched_programmatically(launch.programmatic);
    runtime.queues().enqueue(stream, std::move(kernel));
  });
}

cudaError_t set_function_attribute(const void* key, cudaFuncAttribute attribute, int value) {
  return api_call("cudaFuncSetAttribute", [&](Runtime& runtime) {
    if (key == nullptr) throw ApiError(cudaErrorInvalidDeviceFunction, "the function is not a kernel");
    if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout) return;  // a hint
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) {
      throw ApiError(cudaErrorInvalidValue, "attribute " + std::to_string(attribute) + " is not supported");
    }
    if (value < 0 || static_cast<std::size_t>(value) > runtime.machine().shared_per_block_opt_in) {
      throw ApiError(cudaErrorInvalidValue, std::to_string(value) + " bytes of shared memory, at most " +
                                                std::to_string(runtime.machine().shared_per_block_opt_in));
    }
    runtime.kernels().set_dynamic_shared_limit(key, static_cast<std::size_t>(value));
  });
}

cudaError_t max_active_blocks(int* blocks, const void* key, int block_size,
                              std::size_t dynamic_shared_bytes) {
  return api_call("cudaOccupancyMaxActiveBlocksPerMultiprocessor", [&](Runtime& runtime) {
    if (key == nullptr) throw ApiError(cudaErrorInvalidDeviceFunction, "the function is not a kernel");
    if (block_size < 1) throw ApiError(cudaErrorInvalidValue, "a block has at least one thread");
    *blocks = block_size > 1024
                  ? 0
                  : runtime.current_device().multiprocessors().capacity({block_size, dynamic_shared_bytes});
  });
}

cudaError_t max_active_clusters(int* clusters, const KernelIdentity& kernel,
                                const cudaLaunchConfig_t* launch) {
  return api_call("cudaOccupancyMaxActiveClusters", [&](Runtime& runtime) {
    if (kernel.key == nullptr) throw ApiError(cudaErrorInvalidDeviceFunction, "the function is not a kernel");
    unsigned cluster = kernel.bounds.cluster.x;
    for (unsigned i = 0; i < launch->numAttrs; ++i) {
      if (launch->attrs[i].id == cudaLaunchAttributeClusterDimension)
        cluster = launch->attrs[i].val.clusterDim.x;
    }
    const std::uint64_t threads = std::uint64_t{launch->blockDim.x} * launch->blockDim.y * launch->blockDim.z;
    const int multiprocessors = runtime.machine().multiprocessors;
    if (cluster < 1 || cluster > kMaxClusterSize)
      throw ApiError(cudaErrorInvalidClusterSize, "a cluster of " + std::to_string(cluster) + " blocks");
    *clusters = threads > 1024 || static_cast<int>(cluster) > multiprocessors
                    ? 0
                    : runtime.current_device().multiprocessors().capacity(
                          {static_cast<int>(threads), launch->dynamicSmemBytes}) *
                          multiprocessors / static_cast<int>(cluster);
  });
}

cudaError_t function_attributes(cudaFuncAttributes* attributes, const void* key) {
  return api_call("cudaFuncGetAttributes", [&](Runtime& runtime) {
    if (key == nullptr) throw ApiError(cudaErrorInvalidDeviceFunction, "the function is not a kernel");
    *attributes = {};
    attributes->maxThreadsPerBlock = 1024;
    attributes->ptxVersion = attributes->binaryVersion =
        10 * runtime.machine().compute_major + runtime.machine().compute_minor;
    attributes->maxDynamicSharedSizeBytes =
        static_cast<int>(runtime.kernels().dynamic_shared_limit(key, runtime.machine().shared_per_block));
  });
}

cudaError_t best_block_size(int* grid, int* block, const void* key, std::size_t dynamic_shared_bytes,
                            int limit) {
  return api_call("cudaOccupancyMaxPotentialBlockSize", [&](Runtime& runtime) {
    if (key == nullptr) throw ApiError(cudaErrorInvalidDeviceFunction, "the function is not a kernel");
    *block = limit > 0 ? std::min(limit, 1024) : 1024;
    *grid = runtime.current_device().multiprocessors().capacity({*block, dynamic_shared_bytes}) *
            runtime.machine().multiprocessors;
  });
}

cudaError_t peek_at_last_error() { return cudaPeekAtLastError(); }

}  // namespace vgpu
