// Copies and fills: who may copy from where to where, and which calls block the host.
#include <cstring>

#include "cuda_runtime_api.h"
#include "engine/host/api_call.hpp"
#include "engine/streams/copy.hpp"

namespace vgpu {
namespace {

/// A region of memory as the API sees it.
struct Place {
  Region region;
  bool pageable;         // ordinary host memory
  bool managed = false;  // counts as the host's and as a GPU's
};

Place locate(Runtime& runtime, const void* pointer, std::size_t pitch, std::size_t width,
             std::size_t height) {
  if (pointer == nullptr) throw ApiError(cudaErrorInvalidValue, "the pointer is null");
  auto* data = static_cast<std::byte*>(const_cast<void*>(pointer));
  const Allocation* allocation = runtime.memory().find(pointer);
  if (allocation == nullptr && runtime.memory().reserves(pointer)) {
    throw ApiError(cudaErrorInvalidValue,
                   "no memory is allocated there: it lies " + runtime.memory().locate(pointer));
  }
  const std::size_t room = allocation == nullptr
                               ? SIZE_MAX
                               : allocation->bytes - static_cast<std::size_t>(data - allocation->begin);
  std::size_t needed;
  if (__builtin_mul_overflow(height - 1, pitch, &needed) || __builtin_add_overflow(needed, width, &needed)) {
    throw ApiError(cudaErrorInvalidValue,
                   "that many rows of that pitch have more bytes than there are addresses");
  }
  if (needed > room) {
    throw ApiError(cudaErrorInvalidValue, std::to_string(needed) + " bytes at an address with room for " +
                                              std::to_string(room) + ", " + runtime.memory().locate(pointer));
  }
  if (allocation == nullptr) return {{data, pitch, kHost}, true};
  const int device = allocation->kind == MemoryKind::kDevice ? allocation->device : kHost;
  return {{data, pitch, device}, false, allocation->kind == MemoryKind::kManaged};
}

void check_kind(cudaMemcpyKind kind, const Place& destination, const Place& source) {
  const bool to_host = destination.region.device == kHost, from_host = source.region.device == kHost;
  const bool to_gpu = !to_host || destination.managed, from_gpu = !from_host || source.managed;
  bool matches = false;
  switch (kind) {
    case cudaMemcpyHostToHost:
      matches = to_host && from_host;
      break;
    case cudaMemcpyHostToDevice:
      matches = to_gpu && from_host;
      break;
    case cudaMemcpyDeviceToHost:
      matches = to_host && from_gpu;
      break;
    case cudaMemcpyDeviceToDevice:
      matches = to_gpu && from_gpu;
      break;
    case cudaMemcpyDefault:
      matches = true;
      break;
    default:
      throw ApiError(cudaErrorInvalidMemcpyDirection, "unknown kind " + std::to_string(kind));
  }
  if (!matches)
    throw ApiError(cudaErrorInvalidValue, "the kind of the copy does not match the memory of its pointers");
}

struct CopyRequest {
  void* destination;
  std::size_t destination_pitch;
  const void* source;
  std::size_t source_pitch;
  std::size_t width, height;
  cudaMemcpyKind kind;
};

/// Enqueues a copy. `synchronous`: by a call without "Async".
void copy(Runtime& runtime, const CopyRequest& request, cudaStream_t handle, bool synchronous) {
  const auto& [destination, destination_pitch, source, source_pitch, width, height, kind] = request;
  Stream& stream = runtime.stream(handle);
  if (synchronous) runtime.captures().check_unsafe_call();
  if (width == 0 || height == 0) return;
  if (destination_pitch < width || source_pitch < width) {
    throw ApiError(cudaErrorInvalidPitchValue, "the pitch is smaller than the width");
  }
  const Place to = locate(runtime, destination, destination_pitch, width, height);
  const Place from = locate(runtime, source, source_pitch, width, height);
  check_kind(kind, to, from);
  if (stream.captures() && (to.pageable || from.pageable))
    runtime.captures().refuse(stream, "a copy from or to pageable memory cannot be captured: pin it");

  // CUDA Runtime API, "API synchronization behavior": a pageable source is staged before the call returns; a
  // pageable destination is filled before it returns; copies within the host are synchronous.
  const bool within_host = to.region.device == kHost && from.region.device == kHost;
  const bool within_devices = to.region.device != kHost && from.region.device != kHost;
  std::vector<std::byte> staged;
  if (from.pageable && !within_host) {
    staged.resize(width * height);
    for (std::size_t row = 0; row < height; ++row) {
      hb::read(hb::host_context(), hb::call_site(), from.region.data + row * source_pitch, width);
      std::memcpy(staged.data() + row * width, from.region.data + row * source_pitch, width);
    }
  }
  auto operation =
      std::make_unique<CopyOperation>(runtime, to.region, from.region, width, height, std::move(staged));
  // CUDA Programming Guide, "Peer-to-Peer Memory Copy": in the default stream, a copy between two GPUs comes
  // after all earlier work and before all later work of both.
  std::vector<Device*> serialized;
  if (stream.is_default() && within_devices && to.region.device != from.region.device) {
    serialized = {&runtime.device(to.region.device), &runtime.device(from.region.device)};
  }
  for (Device* device : serialized) {
    for (const Token& earlier : runtime.queues().pending(*device)) operation->wait_for(earlier);
    operation->wait_for(device->serialized());
  }
  const Token done = runtime.queues().enqueue(stream, std::move(operation));
  for (Device* device : serialized) device->serialize_after(done);
  const bool waits = synchronous ? !within_devices : within_host || to.pageable;
  if (waits) runtime.waits().wait(done);
}

CopyRequest linear(void* destination, const void* source, std::size_t bytes, cudaMemcpyKind kind) {
  return {destination, bytes, source, bytes, bytes, 1, kind};
}

void check_peer(Runtime& runtime, const void* pointer, int device) {
  if (device < 0 || device >= runtime.machine().gpus) {
    throw ApiError(cudaErrorInvalidDevice, "there is no GPU " + std::to_string(device));
  }
  const Allocation* allocation = runtime.memory().find(pointer);
  if (allocation == nullptr || allocation->kind != MemoryKind::kDevice || allocation->device != device) {
    throw ApiError(cudaErrorInvalidValue, "the pointer does not lie on GPU " + std::to_string(device) +
                                              " but " + runtime.memory().locate(pointer));
  }
}

void copy_peer(Runtime& runtime, void* destination, int destination_device, const void* source,
               int source_device, std::size_t bytes, cudaStream_t stream, bool synchronous) {
  if (bytes > 0) {
    check_peer(runtime, destination, destination_device);
    check_peer(runtime, source, source_device);
  }
  copy(runtime, linear(destination, source, bytes, cudaMemcpyDeviceToDevice), stream, synchronous);
}

void fill(Runtime& runtime, void* destination, int value, std::size_t bytes, cudaStream_t handle,
          bool synchronous) {
  Stream& stream = runtime.stream(handle);
  if (bytes == 0) return;
  const Place to = locate(runtime, destination, bytes, bytes, 1);
  if (to.pageable) throw ApiError(cudaErrorInvalidValue, "the pointer is ordinary host memory");
  const int owner = to.region.device, device = stream.device();
  if (owner != kHost && owner != device && !runtime.device(device).may_access(owner)) {
    throw ApiError(cudaErrorInvalidValue, "GPU " + std::to_string(device) +
                                              " has no access to the memory of GPU " + std::to_string(owner));
  }
  const Token done =
      runtime.queues().enqueue(stream, std::make_unique<FillOperation>(runtime, to.region, value, bytes));
  if (synchronous && owner == kHost) runtime.waits().wait(done);
}

void fill_rows(Runtime& runtime, void* destination, std::size_t pitch, int value, std::size_t width,
               std::size_t height, cudaStream_t stream, bool synchronous) {
  if (pitch < width) throw ApiError(cudaErrorInvalidPitchValue, "the pitch is smaller than the width");
  if (pitch == width) return fill(runtime, destination, value, width * height, stream, synchronous);
  for (std::size_t row = 0; row < height; ++row)
    fill(runtime, static_cast<std::byte*>(destination) + row * pitch, value, width, stream, synchronous);
}

}  // namespace
}  // namespace vgpu

using namespace vgpu;

cudaError_t cudaMemcpy(void* destination, const void* source, std::size_t bytes, cudaMemcpyKind kind) {
  return api_call("cudaMemcpy", [&](Runtime& runtime) {
    copy(runtime, linear(destination, source, bytes, kind), cudaStreamLegacy, true);
  });
}

cudaError_t cudaMemcpyAsync(void* destination, const void* source, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return api_call("cudaMemcpyAsync", [&](Runtime& runtime) {
    copy(runtime, linear(destination, source, bytes, kind), stream, false);
  });
}

cudaError_t cudaMemcpyPeer(void* destination, int destination_device, const void* source, int source_device,
                           std::size_t bytes) {
  return api_call("cudaMemcpyPeer", [&](Runtime& runtime) {
    copy_peer(runtime, destination, destination_device, source, source_device, bytes, cudaStreamLegacy, true);
  });
}

cudaError_t cudaMemcpyPeerAsync(void* destination, int destination_device, const void* source,
                                int source_device, std::size_t bytes, cudaStream_t stream) {
  return api_call("cudaMemcpyPeerAsync", [&](Runtime& runtime) {
    const Stream& into = runtime.stream(stream);
    if (into.captures()) {  // seen with CUDA 13.0; the documentation is silent
      runtime.captures().refuse(
          into, "cudaMemcpyPeerAsync cannot be captured: cudaMemcpyAsync can, also between GPUs");
    }
    copy_peer(runtime, destination, destination_device, source, source_device, bytes, stream, false);
  });
}

cudaError_t cudaMemcpy2D(void* destination, std::size_t destination_pitch, const void* source,
                         std::size_t source_pitch, std::size_t width, std::size_t height,
                         cudaMemcpyKind kind) {
  return api_call("cudaMemcpy2D", [&](Runtime& runtime) {
    copy(runtime, {destination, destination_pitch, source, source_pitch, width, height, kind},
         cudaStreamLegacy, true);
  });
}

cudaError_t cudaMemcpy2DAsync(void* destination, std::size_t destination_pitch, const void* source,
                              std::size_t source_pitch, std::size_t width, std::size_t height,
                              cudaMemcpyKind kind, cudaStream_t stream) {
  return api_call("cudaMemcpy2DAsync", [&](Runtime& runtime) {
    copy(runtime, {destination, destination_pitch, source, source_pitch, width, height, kind}, stream, false);
  });
}

cudaError_t cudaMemset(void* destination, int value, std::size_t bytes) {
  return api_call("cudaMemset", [&](Runtime& runtime) {
    fill(runtime, destination, value, bytes, cudaStreamLegacy, true);
  });
}

cudaError_t cudaMemsetAsync(void* destination, int value, std::size_t bytes, cudaStream_t stream) {
  return api_call("cudaMemsetAsync",
                  [&](Runtime& runtime) { fill(runtime, destination, value, bytes, stream, false); });
}

cudaError_t cudaMemset2D(void* destination, std::size_t pitch, int value, std::size_t width,
                         std::size_t height) {
  return api_call("cudaMemset2D", [&](Runtime& runtime) {
    fill_rows(runtime, destination, pitch, value, width, height, cudaStreamLegacy, true);
  });
}

cudaError_t cudaMemset2DAsync(void* destination, std::size_t pitch, int value, std::size_t width,
                              std::size_t height, cudaStream_t stream) {
  return api_call("cudaMemset2DAsync", [&](Runtime& runtime) {
    fill_rows(runtime, destination, pitch, value, width, height, stream, false);
  });
}
