// Devices and peer access.
#include <cstring>

#include "cuda_runtime_api.h"
#include "engine/host/api_call.hpp"

namespace vgpu {
namespace {

void check_device(const Runtime& runtime, int device) {
  if (device < 0 || device >= runtime.machine().gpus) {
    throw ApiError(cudaErrorInvalidDevice, "there is no GPU " + std::to_string(device) + "; the machine '" +
                                               runtime.machine().name + "' has " +
                                               std::to_string(runtime.machine().gpus));
  }
}

int attribute_value(const Machine& machine, cudaDeviceAttr attribute) {
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
      return 1024;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      return static_cast<int>(machine.shared_per_block);
    case cudaDevAttrWarpSize:
      return 32;
    case cudaDevAttrClockRate:
      return static_cast<int>(machine.clock_ghz * 1e6);
    case cudaDevAttrMultiProcessorCount:
      return machine.multiprocessors;
    case cudaDevAttrMemoryClockRate:
      return static_cast<int>(machine.clock_ghz * 1e6);
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      return machine.max_threads;
    case cudaDevAttrAsyncEngineCount:
      return machine.copy_engines;
    case cudaDevAttrComputeCapabilityMajor:
      return machine.compute_major;
    case cudaDevAttrComputeCapabilityMinor:
      return machine.compute_minor;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      return static_cast<int>(machine.shared_per_multiprocessor);
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return static_cast<int>(machine.shared_per_block_opt_in);
  }
  throw ApiError(cudaErrorInvalidValue,
                 "attribute " + std::to_string(attribute) + " is not known to virtual GPUs");
}

}  // namespace
}  // namespace vgpu

using namespace vgpu;

cudaError_t cudaGetDeviceCount(int* count) {
  return api_call("cudaGetDeviceCount", [&](Runtime& runtime) { *count = runtime.machine().gpus; });
}

cudaError_t cudaSetDevice(int device) {
  return api_call("cudaSetDevice", [&](Runtime& runtime) {
    check_device(runtime, device);
    runtime.host().use_device(device);
  });
}

cudaError_t cudaGetDevice(int* device) {
  // Not through api_call: it works after a fault too, so that an error message can name the device.
  require_own_thread("cudaGetDevice");
  hb::start();
  const hb::RuntimeScope scope;
  *device = runtime().host().device();
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return api_call("cudaGetDeviceProperties", [&](Runtime& runtime) {
    check_device(runtime, device);
    const Machine& machine = runtime.machine();
    *properties = cudaDeviceProp{};
    std::strncpy(properties->name, machine.gpu_name.c_str(), sizeof(properties->name) - 1);
    properties->totalGlobalMem = machine.memory_bytes;
    properties->sharedMemPerBlock = machine.shared_per_block;
    properties->sharedMemPerBlockOptin = machine.shared_per_block_opt_in;
    properties->sharedMemPerMultiprocessor = machine.shared_per_multiprocessor;
    properties->warpSize = 32;
    properties->maxThreadsPerBlock = 1024;
    properties->maxThreadsDim[0] = properties->maxThreadsDim[1] = 1024;
    properties->maxThreadsDim[2] = 64;
    properties->maxGridSize[0] = 0x7fffffff;
    properties->maxGridSize[1] = properties->maxGridSize[2] = 65535;
    properties->major = machine.compute_major;
    properties->minor = machine.compute_minor;
    properties->multiProcessorCount = machine.multiprocessors;
    properties->maxThreadsPerMultiProcessor = machine.max_threads;
    properties->maxBlocksPerMultiProcessor = machine.max_blocks;
    properties->asyncEngineCount = machine.copy_engines;
    properties->concurrentKernels = 1;
    properties->unifiedAddressing = 1;
    properties->pciBusID = device;
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return api_call("cudaDeviceGetAttribute", [&](Runtime& runtime) {
    check_device(runtime, device);
    *value = attribute_value(runtime.machine(), attribute);
  });
}

cudaError_t cudaDeviceSynchronize() {
  return ordering_call("cudaDeviceSynchronize", [&](Runtime& runtime) {
    runtime.captures().check_wait(runtime.current_device());
    runtime.waits().wait(runtime.queues().pending(runtime.current_device()));
  });
}

cudaError_t cudaDeviceCanAccessPeer(int* can_access, int device, int peer) {
  return api_call("cudaDeviceCanAccessPeer", [&](Runtime& runtime) {
    check_device(runtime, device);
    check_device(runtime, peer);
    *can_access = device != peer && runtime.machine().peer_access;
  });
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags) {
  return api_call("cudaDeviceEnablePeerAccess", [&](Runtime& runtime) {
    check_device(runtime, peer);
    if (flags != 0) throw ApiError(cudaErrorInvalidValue, "flags must be 0");
    if (peer == runtime.host().device()) throw ApiError(cudaErrorInvalidDevice, "a GPU is not its own peer");
    if (!runtime.machine().peer_access) {
      throw ApiError(cudaErrorPeerAccessUnsupported,
                     "the machine '" + runtime.machine().name + "' has no peer access");
    }
    if (!runtime.current_device().allow_access(peer)) {
      throw ApiError(cudaErrorPeerAccessAlreadyEnabled, "GPU " + std::to_string(runtime.host().device()) +
                                                            " may already access GPU " +
                                                            std::to_string(peer));
    }
  });
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  return api_call("cudaDeviceDisablePeerAccess", [&](Runtime& runtime) {
    check_device(runtime, peer);
    if (!runtime.current_device().forbid_access(peer)) {
      throw ApiError(cudaErrorPeerAccessNotEnabled, "GPU " + std::to_string(runtime.host().device()) +
                                                        " has no access to GPU " + std::to_string(peer));
    }
  });
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  return api_call("cudaMemGetInfo", [&](Runtime& runtime) {
    *total = runtime.machine().memory_bytes;
    *free = *total - runtime.current_device().memory_used();
  });
}
