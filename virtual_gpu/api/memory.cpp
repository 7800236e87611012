// Allocation of device and pinned memory.
#include "cuda_runtime_api.h"
#include "engine/host/api_call.hpp"

namespace vgpu {
namespace {

/// The live allocation that begins at `pointer` and has that kind.
Allocation& begin_of(Runtime& runtime, void* pointer, MemoryKind kind, cudaError_t code, const char* maker) {
  Allocation* allocation = runtime.memory().find(pointer);
  if (allocation == nullptr || allocation->begin != pointer || allocation->kind != kind) {
    throw ApiError(code, std::string("the pointer does not come from ") + maker +
                             ", or has been freed: it lies " + runtime.memory().locate(pointer));
  }
  return *allocation;
}

/// The memory is about to go: no operation may still use it.
void check_unused(Runtime& runtime, const Allocation& allocation) {
  for (const auto& device : runtime.devices()) {
    for (const auto& stream : device->streams()) {
      for (const auto& operation : stream->queue()) {
        if (operation->touches(allocation.begin, allocation.bytes)) {
          throw ApiError(cudaErrorIllegalAddress, "the memory is freed under a pending operation: " +
                                                      operation->describe() + " in " + operation->origin());
        }
      }
    }
  }
}

void* allocate_pinned(Runtime& runtime, std::size_t bytes) {
  runtime.captures().check_unsafe_call();
  if (bytes == 0) return nullptr;
  void* memory = runtime.memory().allocate(bytes, MemoryKind::kPinned, runtime.host().device());
  if (memory == nullptr)
    throw ApiError(cudaErrorMemoryAllocation, "the host cannot pin " + std::to_string(bytes) + " bytes");
  return memory;
}

}  // namespace
}  // namespace vgpu

using namespace vgpu;

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  return api_call("cudaMalloc", [&](Runtime& runtime) {
    if (pointer == nullptr) throw ApiError(cudaErrorInvalidValue, "the result has nowhere to go");
    *pointer = nullptr;
    runtime.captures().check_unsafe_call();
    if (bytes == 0) return;
    Device& device = runtime.current_device();
    const std::size_t free = runtime.machine().memory_bytes - device.memory_used();
    void* memory = bytes > free ? nullptr
                                : runtime.memory().allocate(bytes, MemoryKind::kDevice, device.id(),
                                                            runtime.machine().memory_on_demand);
    if (memory == nullptr) {
      throw ApiError(cudaErrorMemoryAllocation, std::to_string(bytes) + " bytes asked for, " +
                                                    std::to_string(free) + " of " +
                                                    std::to_string(runtime.machine().memory_bytes) +
                                                    " bytes free on GPU " + std::to_string(device.id()));
    }
    device.take_memory(bytes);
    *pointer = memory;
  });
}

cudaError_t cudaFree(void* pointer) {
  return api_call("cudaFree", [&](Runtime& runtime) {
    if (pointer == nullptr) return;
    runtime.captures().check_unsafe_call();
    Allocation& allocation =
        begin_of(runtime, pointer, MemoryKind::kDevice, cudaErrorInvalidValue, "cudaMalloc");
    // As on real GPUs, freeing waits for the owner's work. Other GPUs may still have copies pending.
    runtime.waits().wait(runtime.queues().pending(runtime.device(allocation.device)));
    check_unused(runtime, allocation);
    hb::write(hb::host_context(), hb::call_site(), allocation.begin, allocation.bytes);
    runtime.device(allocation.device).give_memory_back(allocation.bytes);
    runtime.signals().forget(allocation.begin, allocation.bytes);
    runtime.atomic_scopes().forget(allocation.begin, allocation.bytes);
    runtime.memory().free(allocation);
  });
}

cudaError_t cudaHostAlloc(void** pointer, std::size_t bytes, unsigned int flags) {
  return api_call("cudaHostAlloc", [&](Runtime& runtime) {
    if ((flags & ~(cudaHostAllocPortable | cudaHostAllocMapped)) != 0) {
      throw ApiError(cudaErrorInvalidValue, "only the flags Default, Portable and Mapped are supported");
    }
    *pointer = allocate_pinned(runtime, bytes);
  });
}

cudaError_t cudaMallocHost(void** pointer, std::size_t bytes) {
  return api_call("cudaMallocHost", [&](Runtime& runtime) { *pointer = allocate_pinned(runtime, bytes); });
}

cudaError_t cudaFreeHost(void* pointer) {
  return api_call("cudaFreeHost", [&](Runtime& runtime) {
    if (pointer == nullptr) return;
    runtime.captures().check_unsafe_call();
    Allocation& allocation =
        begin_of(runtime, pointer, MemoryKind::kPinned, cudaErrorInvalidValue, "cudaMallocHost");
    for (const auto& device : runtime.devices()) runtime.waits().wait(runtime.queues().pending(*device));
    runtime.signals().forget(allocation.begin, allocation.bytes);
    runtime.atomic_scopes().forget(allocation.begin, allocation.bytes);
    runtime.memory().free(allocation);
  });
}

cudaError_t cudaHostRegister(void* pointer, std::size_t bytes, unsigned int flags) {
  return api_call("cudaHostRegister", [&](Runtime& runtime) {
    if (pointer == nullptr || bytes == 0)
      throw ApiError(cudaErrorInvalidValue, "there is nothing to register");
    runtime.captures().check_unsafe_call();
    if ((flags & ~(cudaHostRegisterPortable | cudaHostRegisterMapped)) != 0) {
      throw ApiError(cudaErrorInvalidValue, "only the flags Default, Portable and Mapped are supported");
    }
    if (runtime.memory().find(pointer) != nullptr) {
      throw ApiError(cudaErrorHostMemoryAlreadyRegistered, "it lies " + runtime.memory().locate(pointer));
    }
    runtime.memory().add_registered(pointer, bytes, runtime.host().device());
  });
}

cudaError_t cudaHostUnregister(void* pointer) {
  return api_call("cudaHostUnregister", [&](Runtime& runtime) {
    runtime.captures().check_unsafe_call();
    const Allocation& allocation = begin_of(runtime, pointer, MemoryKind::kRegistered,
                                            cudaErrorHostMemoryNotRegistered, "cudaHostRegister");
    for (const auto& device : runtime.devices()) runtime.waits().wait(runtime.queues().pending(*device));
    runtime.signals().forget(allocation.begin, allocation.bytes);
    runtime.atomic_scopes().forget(allocation.begin, allocation.bytes);
    runtime.memory().remove_registered(pointer);
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  return api_call("cudaPointerGetAttributes", [&](Runtime& runtime) {
    const Allocation* allocation = runtime.memory().find(pointer);
    void* address = const_cast<void*>(pointer);
    if (allocation == nullptr) {
      *attributes = {cudaMemoryTypeUnregistered, -2, nullptr, address};
    } else if (allocation->kind == MemoryKind::kDevice) {
      *attributes = {cudaMemoryTypeDevice, allocation->device, address, nullptr};
    } else {
      *attributes = {cudaMemoryTypeHost, allocation->device, address, address};
    }
  });
}
