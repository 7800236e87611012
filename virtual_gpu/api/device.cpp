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

cudaDeviceProp properties_of(const Machine& machine, int device) {
  cudaDeviceProp p{};
  std::strncpy(p.name, machine.gpu_name.c_str(), sizeof(p.name) - 1);
  p.uuid.bytes[15] = static_cast<char>(device + 1);
  p.totalGlobalMem = machine.memory_bytes;
  p.sharedMemPerBlock = machine.shared_per_block;
  p.sharedMemPerBlockOptin = machine.shared_per_block_opt_in;
  p.sharedMemPerMultiprocessor = machine.shared_per_multiprocessor;
  p.reservedSharedMemPerBlock = 1024;
  p.regsPerBlock = p.regsPerMultiprocessor = 65536;
  p.warpSize = 32;
  p.memPitch = 0x7fffffff;
  p.maxThreadsPerBlock = 1024;
  p.maxThreadsDim[0] = p.maxThreadsDim[1] = 1024;
  p.maxThreadsDim[2] = 64;
  p.maxGridSize[0] = 0x7fffffff;
  p.maxGridSize[1] = p.maxGridSize[2] = 65535;
  p.clockRate = p.memoryClockRate = static_cast<int>(machine.clock_ghz * 1e6);
  // As many bits as bring the memory's rate at that clock, twice a cycle.
  p.memoryBusWidth = static_cast<int>(machine.memory_rate * 8 / (2 * machine.clock_ghz));
  p.totalConstMem = 65536;
  p.major = machine.compute_major;
  p.minor = machine.compute_minor;
  p.textureAlignment = 512;
  p.multiProcessorCount = machine.multiprocessors;
  p.maxThreadsPerMultiProcessor = machine.max_threads;
  p.maxBlocksPerMultiProcessor = machine.max_blocks;
  p.asyncEngineCount = machine.copy_engines;
  p.pciBusID = device;
  p.deviceOverlap = p.canMapHostMemory = p.concurrentKernels = p.unifiedAddressing = 1;
  p.managedMemory = p.concurrentManagedAccess = p.cooperativeLaunch = p.streamPrioritiesSupported = 1;
  p.hostRegisterSupported = p.memoryPoolsSupported = p.canUseHostPointerForRegisteredMem = 1;
  p.clusterLaunch = p.unifiedFunctionPointers = 1;
  p.singleToDoublePrecisionPerfRatio = 2;
  return p;
}

int attribute_value(const cudaDeviceProp& p, cudaDeviceAttr attribute) {
#define VGPU_CASE(name, value, place) \
  case cudaDevAttr##name:             \
    return static_cast<int>(place);
  switch (attribute) { VGPU_ATTRIBUTES(VGPU_CASE) }
#undef VGPU_CASE
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
    *properties = properties_of(runtime.machine(), device);
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return api_call("cudaDeviceGetAttribute", [&](Runtime& runtime) {
    check_device(runtime, device);
    *value = attribute_value(properties_of(runtime.machine(), device), attribute);
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

cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attribute, int device, int peer) {
  return api_call("cudaDeviceGetP2PAttribute", [&](Runtime& runtime) {
    check_device(runtime, device);
    check_device(runtime, peer);
    if (device == peer) throw ApiError(cudaErrorInvalidDevice, "a GPU is not its own peer");
    const Machine& machine = runtime.machine();
    switch (attribute) {
      case cudaDevP2PAttrPerformanceRank:
        *value = 0;
        return;  // all links are alike
      case cudaDevP2PAttrAccessSupported:
        *value = machine.peer_access;
        return;
      case cudaDevP2PAttrNativeAtomicSupported:
        *value = machine.peer_access && machine.peer_atomics;
        return;
      case cudaDevP2PAttrCudaArrayAccessSupported:
        *value = 0;
        return;  // there are no arrays
    }
    throw ApiError(cudaErrorInvalidValue, "there is no attribute " + std::to_string(attribute));
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
