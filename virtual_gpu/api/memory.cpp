// Allocation of device and pinned memory.
#include "cuda_runtime_api.h"
#include "engine/host/api_call.hpp"

namespace vgpu {
namespace {

/// The live allocation that begins at `pointer` and has that kind.
Allocation& begin_of(Runtime& runtime, void* pointer, MemoryKind kind, cudaError_t code, const char* maker) {
  Allocation* allocation = runtime.memory().find(pointer);
  if (allocation == nullptr || allocation->begin != pointer || allocation->kind != kind ||
      allocation->symbols) {
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

/// The allocation is gone, and what the runtime remembers of its words.
void release(Runtime& runtime, Allocation& allocation) {
  if (allocation.kind == MemoryKind::kDevice)
    runtime.device(allocation.device).give_memory_back(allocation.bytes);
  runtime.signals().forget(allocation.begin, allocation.bytes);
  runtime.atomic_scopes().forget(allocation.begin, allocation.bytes);
  runtime.memory().free(allocation);
}

void* allocate(Runtime& runtime, std::size_t bytes) {
  Device& device = runtime.current_device();
  const Machine& machine = runtime.machine();
  const std::size_t free = machine.memory_bytes - device.memory_used();
  void* memory = bytes > free ? nullptr
                              : runtime.memory().allocate(bytes, MemoryKind::kDevice, device.id(),
                                                          machine.memory_on_demand);
  if (memory == nullptr) {
    const char* more = bytes > free && machine.memory_bytes < std::size_t{1} << 36
                           ? "; VGPU_MACHINE=h100-nvlink models GPUs that have 80 GB"
                           : "";
    throw ApiError(cudaErrorMemoryAllocation, std::to_string(bytes) + " bytes requested, " +
                                                  std::to_string(free) + " of " +
                                                  std::to_string(machine.memory_bytes) +
                                                  " bytes free on GPU " + std::to_string(device.id()) + more);
  }
  device.take_memory(bytes);
  return memory;
}

/// cudaMallocAsync and cudaFreeAsync: what is done with the memory comes after the one and before the other.
class PoolOperation final : public Operation {
 public:
  PoolOperation(Runtime& runtime, void* memory, bool frees)
      : runtime_(runtime), memory_(memory), frees_(frees) {}
  void begin(double now) override {
    if (Allocation* allocation = runtime_.memory().find(memory_)) {
      if (hb::kEnabled) hb::write(stream->contexts().own(), site, allocation->begin, allocation->bytes);
      if (frees_) release(runtime_, *allocation);
    }
    finish(now);
  }
  std::string describe() const override { return frees_ ? "cudaFreeAsync" : "cudaMallocAsync"; }

 private:
  Runtime& runtime_;
  void* memory_;
  bool frees_;
};

void* allocate_pinned(Runtime& runtime, std::size_t bytes, MemoryKind kind = MemoryKind::kPinned) {
  runtime.captures().check_unsafe_call();
  if (bytes == 0) return nullptr;
  void* memory = runtime.memory().allocate(bytes, kind, runtime.host().device());
  if (memory == nullptr)
    throw ApiError(cudaErrorMemoryAllocation, "the host cannot pin " + std::to_string(bytes) + " bytes");
  return memory;
}

}  // namespace
}  // namespace vgpu

using namespace vgpu;

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  return api_call("cudaMalloc", [&](Runtime& runtime) {
    if (pointer == nullptr) throw ApiError(cudaErrorInvalidValue, "the pointer to the result is null");
    *pointer = nullptr;
    runtime.captures().check_unsafe_call();
    if (bytes > 0) *pointer = allocate(runtime, bytes);
  });
}

cudaError_t cudaMallocPitch(void** pointer, std::size_t* pitch, std::size_t width, std::size_t height) {
  return api_call("cudaMallocPitch", [&](Runtime& runtime) {
    if (pointer == nullptr || pitch == nullptr)
      throw ApiError(cudaErrorInvalidValue, "the pointer to the result is null");
    runtime.captures().check_unsafe_call();
    *pitch = (width + 511) / 512 * 512;
    *pointer = width * height > 0 ? allocate(runtime, *pitch * height) : nullptr;
  });
}

cudaError_t cudaMallocAsync(void** pointer, std::size_t bytes, cudaStream_t stream) {
  return api_call("cudaMallocAsync", [&](Runtime& runtime) {
    if (pointer == nullptr) throw ApiError(cudaErrorInvalidValue, "the pointer to the result is null");
    Stream& into = runtime.stream(stream);
    if (into.captures()) runtime.captures().refuse(into, "cudaMallocAsync cannot be captured here");
    *pointer = bytes > 0 ? allocate(runtime, bytes) : nullptr;
    if (bytes > 0) runtime.queues().enqueue(into, std::make_unique<PoolOperation>(runtime, *pointer, false));
  });
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  return api_call("cudaFreeAsync", [&](Runtime& runtime) {
    if (pointer == nullptr) return;
    begin_of(runtime, pointer, MemoryKind::kDevice, cudaErrorInvalidValue, "cudaMallocAsync");
    runtime.queues().enqueue(runtime.stream(stream), std::make_unique<PoolOperation>(runtime, pointer, true));
  });
}

cudaError_t cudaMallocManaged(void** pointer, std::size_t bytes, unsigned int flags) {
  return api_call("cudaMallocManaged", [&](Runtime& runtime) {
    if (pointer == nullptr || bytes == 0 || (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost))
      throw ApiError(cudaErrorInvalidValue,
                     "it needs a place for the result, some bytes and one of the flags "
                     "cudaMemAttachGlobal and cudaMemAttachHost");
    *pointer = allocate_pinned(runtime, bytes, MemoryKind::kManaged);
  });
}

cudaError_t cudaDeviceReset() {
  return api_call("cudaDeviceReset", [&](Runtime& runtime) {
    Device& device = runtime.current_device();
    runtime.waits().wait(runtime.queues().pending(device));
    for (const MemoryKind kind : {MemoryKind::kDevice, MemoryKind::kManaged}) {
      for (Allocation* allocation : runtime.memory().of(kind, device.id())) {
        check_unused(runtime, *allocation);
        release(runtime, *allocation);
      }
    }
  });
}

cudaError_t cudaFree(void* pointer) {
  return api_call("cudaFree", [&](Runtime& runtime) {
    if (pointer == nullptr) return;
    runtime.captures().check_unsafe_call();
    const Allocation* found = runtime.memory().find(pointer);
    const bool managed = found != nullptr && found->kind == MemoryKind::kManaged;
    Allocation& allocation = begin_of(runtime, pointer, managed ? MemoryKind::kManaged : MemoryKind::kDevice,
                                      cudaErrorInvalidValue, "cudaMalloc");
    // As on real GPUs, freeing waits for the owner's work. Other GPUs may still have copies pending.
    for (const auto& device : runtime.devices()) {
      if (managed || device->id() == allocation.device)
        runtime.waits().wait(runtime.queues().pending(*device));
    }
    check_unused(runtime, allocation);
    hb::write(hb::host_context(), hb::call_site(), allocation.begin, allocation.bytes);
    release(runtime, allocation);
  });
}

cudaError_t cudaHostAlloc(void** pointer, std::size_t bytes, unsigned int flags) {
  return api_call("cudaHostAlloc", [&](Runtime& runtime) {
    if ((flags & ~(cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined)) != 0)
      throw ApiError(cudaErrorInvalidValue, "only Default, Portable, Mapped and WriteCombined are supported");
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
    release(runtime, allocation);
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

cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned int flags) {
  return api_call("cudaHostGetDevicePointer", [&](Runtime& runtime) {
    const Allocation* allocation = runtime.memory().find(host);
    if (flags != 0 || device == nullptr || allocation == nullptr || allocation->kind == MemoryKind::kDevice)
      throw ApiError(cudaErrorInvalidValue,
                     "the memory is neither pinned nor registered: it lies " + runtime.memory().locate(host));
    *device = host;
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
    } else if (allocation->kind == MemoryKind::kManaged) {
      *attributes = {cudaMemoryTypeManaged, allocation->device, address, address};
    } else {
      *attributes = {cudaMemoryTypeHost, allocation->device, address, address};
    }
  });
}
