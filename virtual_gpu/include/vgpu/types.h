// CUDA's plain types: vectors, dim3, error codes, flags. Names and values are the toolkit's.
#pragma once

#include <cstddef>
#include <cstdint>

#define CUDART_CB
#define CUDARTAPI
#define CUDART_VERSION 12040  // the oldest toolkit that the chapters accept; the API here is a subset of it

// Vector types. Alignment as the toolkit documents it (16-byte vectors are loaded as one).
#define VGPU_VECTORS(type, name, alignment2, alignment4)                         \
  struct name##1 {                                                               \
    type x;                                                                      \
  };                                                                             \
  struct alignas(alignment2) name##2 {                                           \
    type x, y;                                                                   \
  };                                                                             \
  struct name##3 {                                                               \
    type x, y, z;                                                                \
  };                                                                             \
  struct alignas(alignment4) name##4 {                                           \
    type x, y, z, w;                                                             \
  };                                                                             \
  constexpr name##1 make_##name##1(type x) { return {x}; }                       \
  constexpr name##2 make_##name##2(type x, type y) { return {x, y}; }            \
  constexpr name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; } \
  constexpr name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
VGPU_VECTORS(signed char, char, 2, 4)
VGPU_VECTORS(unsigned char, uchar, 2, 4)
VGPU_VECTORS(short, short, 4, 8)
VGPU_VECTORS(unsigned short, ushort, 4, 8)
VGPU_VECTORS(int, int, 8, 16)
VGPU_VECTORS(unsigned int, uint, 8, 16)
VGPU_VECTORS(long, long, 16, 16)
VGPU_VECTORS(unsigned long, ulong, 16, 16)
VGPU_VECTORS(long long, longlong, 16, 16)
VGPU_VECTORS(unsigned long long, ulonglong, 16, 16)
VGPU_VECTORS(float, float, 8, 16)
VGPU_VECTORS(double, double, 16, 16)
#undef VGPU_VECTORS

struct dim3 {
  unsigned int x, y, z;
  constexpr dim3(unsigned int x_ = 1, unsigned int y_ = 1, unsigned int z_ = 1) : x(x_), y(y_), z(z_) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};

// A list of codes is a macro, so that their enumeration and their texts come from one place. This makes an
// entry of it an enumerator.
#define VGPU_ENUMERATOR(name, value, text) name = value,

// Error codes: the ones that the virtual GPUs return, with the toolkit's values.
#define VGPU_ERRORS(X)                                                                                      \
  X(cudaSuccess, 0, "no error")                                                                             \
  X(cudaErrorInvalidValue, 1, "invalid argument")                                                           \
  X(cudaErrorMemoryAllocation, 2, "out of memory")                                                          \
  X(cudaErrorInitializationError, 3, "initialization error")                                                \
  X(cudaErrorCudartUnloading, 4, "driver shutting down")                                                    \
  X(cudaErrorInvalidConfiguration, 9, "invalid configuration argument")                                     \
  X(cudaErrorInvalidPitchValue, 12, "invalid pitch argument")                                               \
  X(cudaErrorInvalidSymbol, 13, "invalid device symbol")                                                    \
  X(cudaErrorInvalidDevicePointer, 17, "invalid device pointer")                                            \
  X(cudaErrorInvalidMemcpyDirection, 21, "invalid copy direction for memcpy")                               \
  X(cudaErrorInsufficientDriver, 35, "CUDA driver version is insufficient for CUDA runtime version")        \
  X(cudaErrorInvalidDeviceFunction, 98, "invalid device function")                                          \
  X(cudaErrorNoDevice, 100, "no CUDA-capable device is detected")                                           \
  X(cudaErrorInvalidDevice, 101, "invalid device ordinal")                                                  \
  X(cudaErrorPeerAccessUnsupported, 217, "peer access is not supported between these two devices")          \
  X(cudaErrorInvalidResourceHandle, 400, "invalid resource handle")                                         \
  X(cudaErrorIllegalState, 401, "the operation cannot be performed in the present state")                   \
  X(cudaErrorNotReady, 600, "device not ready")                                                             \
  X(cudaErrorIllegalAddress, 700, "an illegal memory access was encountered")                               \
  X(cudaErrorLaunchOutOfResources, 701, "too many resources requested for launch")                          \
  X(cudaErrorLaunchTimeout, 702, "the launch timed out and was terminated")                                 \
  X(cudaErrorPeerAccessAlreadyEnabled, 704, "peer access is already enabled")                               \
  X(cudaErrorPeerAccessNotEnabled, 705, "peer access has not been enabled")                                 \
  X(cudaErrorAssert, 710, "device-side assert triggered")                                                   \
  X(cudaErrorIllegalInstruction, 715, "an illegal instruction was encountered")                             \
  X(cudaErrorHostMemoryAlreadyRegistered, 712,                                                              \
    "part or all of the requested memory range is already mapped")                                          \
  X(cudaErrorHostMemoryNotRegistered, 713, "pointer does not correspond to a registered memory region")     \
  X(cudaErrorMisalignedAddress, 716, "misaligned address")                                                  \
  X(cudaErrorLaunchFailure, 719, "unspecified launch failure")                                              \
  X(cudaErrorCooperativeLaunchTooLarge, 720, "too many blocks in cooperative launch")                       \
  X(cudaErrorNotPermitted, 800, "operation not permitted")                                                  \
  X(cudaErrorNotSupported, 801, "operation not supported")                                                  \
  X(cudaErrorStreamCaptureUnsupported, 900, "operation not permitted when stream is capturing")             \
  X(cudaErrorStreamCaptureInvalidated, 901, "operation failed due to a previous error during capture")      \
  X(cudaErrorStreamCaptureMerge, 902, "operation would result in a merge of separate capture sequences")    \
  X(cudaErrorStreamCaptureUnmatched, 903, "capture was not ended in the same stream as it began")           \
  X(cudaErrorStreamCaptureUnjoined, 904, "capturing stream has unjoined work")                              \
  X(cudaErrorStreamCaptureIsolation, 905, "dependency created on uncaptured work in another stream")        \
  X(cudaErrorStreamCaptureImplicit, 906,                                                                    \
    "operation would make the legacy stream depend on a capturing blocking stream")                         \
  X(cudaErrorCapturedEvent, 907, "operation not permitted on an event last recorded in a capturing stream") \
  X(cudaErrorStreamCaptureWrongThread, 908,                                                                 \
    "attempt to terminate a thread-local capture sequence from another thread")                             \
  X(cudaErrorGraphExecUpdateFailure, 910,                                                                   \
    "the graph update was not performed because it included changes which violated constraints "            \
    "specific to instantiated graph update")                                                                \
  X(cudaErrorInvalidClusterSize, 912, "cluster misconfiguration")                                           \
  X(cudaErrorUnknown, 999, "unknown error")

enum cudaError { VGPU_ERRORS(VGPU_ENUMERATOR) };
using cudaError_t = cudaError;

enum cudaMemcpyKind {
  cudaMemcpyHostToHost = 0,
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
  cudaMemcpyDefault = 4
};

enum cudaMemoryType {
  cudaMemoryTypeUnregistered = 0,
  cudaMemoryTypeHost = 1,
  cudaMemoryTypeDevice = 2,
  cudaMemoryTypeManaged = 3
};

struct cudaPointerAttributes {
  cudaMemoryType type;
  int device;
  void* devicePointer;
  void* hostPointer;
};

using cudaStream_t = struct CUstream_st*;
using cudaEvent_t = struct CUevent_st*;
using cudaGraph_t = struct CUgraph_st*;
using cudaGraphExec_t = struct CUgraphExec_st*;
using cudaGraphNode_t = struct CUgraphNode_st*;
using cudaHostFn_t = void (*)(void* data);
inline const cudaStream_t cudaStreamLegacy = reinterpret_cast<cudaStream_t>(std::uintptr_t{1});
inline const cudaStream_t cudaStreamPerThread = reinterpret_cast<cudaStream_t>(std::uintptr_t{2});

enum : unsigned int {
  cudaStreamDefault = 0,
  cudaStreamNonBlocking = 1,
  cudaEventDefault = 0,
  cudaEventBlockingSync = 1,
  cudaEventDisableTiming = 2,
  cudaEventRecordDefault = 0,
  cudaEventWaitDefault = 0,
  cudaHostAllocDefault = 0,
  cudaHostAllocPortable = 1,
  cudaHostAllocMapped = 2,
  cudaHostAllocWriteCombined = 4,
  cudaMemAttachGlobal = 1,
  cudaMemAttachHost = 2,
  cudaDeviceScheduleAuto = 0,
  cudaDeviceScheduleSpin = 1,
  cudaDeviceScheduleYield = 2,
  cudaDeviceScheduleBlockingSync = 4,
  cudaDeviceMapHost = 8,
  cudaDeviceLmemResizeToMax = 16,
  cudaHostRegisterDefault = 0,
  cudaHostRegisterPortable = 1,
  cudaHostRegisterMapped = 2
};

enum cudaLaunchAttributeID {
  cudaLaunchAttributeIgnore = 0,
  cudaLaunchAttributeCooperative = 2,
  cudaLaunchAttributeClusterDimension = 4,
  cudaLaunchAttributeProgrammaticStreamSerialization = 6
};
union cudaLaunchAttributeValue {
  char pad[64];
  int cooperative;
  struct {
    unsigned int x, y, z;
  } clusterDim;
  int programmaticStreamSerializationAllowed;
};
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  cudaLaunchAttributeValue val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute* attrs;
  unsigned int numAttrs;
};

enum cudaStreamCaptureStatus {
  cudaStreamCaptureStatusNone = 0,
  cudaStreamCaptureStatusActive = 1,
  cudaStreamCaptureStatusInvalidated = 2
};

enum cudaStreamCaptureMode {
  cudaStreamCaptureModeGlobal = 0,
  cudaStreamCaptureModeThreadLocal = 1,
  cudaStreamCaptureModeRelaxed = 2
};

enum cudaGraphExecUpdateResult {
  cudaGraphExecUpdateSuccess = 0,
  cudaGraphExecUpdateError = 1,
  cudaGraphExecUpdateErrorTopologyChanged = 2,
  cudaGraphExecUpdateErrorNodeTypeChanged = 3,
  cudaGraphExecUpdateErrorFunctionChanged = 4,
  cudaGraphExecUpdateErrorParametersChanged = 5,
  cudaGraphExecUpdateErrorNotSupported = 6
};
struct cudaGraphExecUpdateResultInfo {
  cudaGraphExecUpdateResult result;
  cudaGraphNode_t errorNode;      // of the graph that was passed; null if the fault is no single node's
  cudaGraphNode_t errorFromNode;  // always null here
};

using cudaStreamCallback_t = void (*)(cudaStream_t stream, cudaError_t status, void* data);

enum cudaComputeMode {
  cudaComputeModeDefault = 0,
  cudaComputeModeExclusive = 1,
  cudaComputeModeProhibited = 2,
  cudaComputeModeExclusiveProcess = 3
};
enum cudaMemoryAdvise {
  cudaMemAdviseSetReadMostly = 1,
  cudaMemAdviseUnsetReadMostly,
  cudaMemAdviseSetPreferredLocation,
  cudaMemAdviseUnsetPreferredLocation,
  cudaMemAdviseSetAccessedBy,
  cudaMemAdviseUnsetAccessedBy
};
inline constexpr int cudaCpuDeviceId = -1, cudaInvalidDeviceId = -2;
// Caches and limits are not modelled: what programs ask of them is accepted.
enum cudaFuncCache {
  cudaFuncCachePreferNone = 0,
  cudaFuncCachePreferShared = 1,
  cudaFuncCachePreferL1 = 2,
  cudaFuncCachePreferEqual = 3
};
enum cudaSharedMemConfig {
  cudaSharedMemBankSizeDefault = 0,
  cudaSharedMemBankSizeFourByte = 1,
  cudaSharedMemBankSizeEightByte = 2
};
enum cudaLimit {
  cudaLimitStackSize = 0,
  cudaLimitPrintfFifoSize = 1,
  cudaLimitMallocHeapSize = 2,
  cudaLimitDevRuntimeSyncDepth = 3,
  cudaLimitDevRuntimePendingLaunchCount = 4
};
/// Registers and code are not known here: those fields are 0.
struct cudaFuncAttributes {
  std::size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
  int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA;
  int maxDynamicSharedSizeBytes, preferredShmemCarveout;
};

enum cudaFuncAttribute {
  cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
  cudaFuncAttributePreferredSharedMemoryCarveout = 9
};

enum cudaDriverEntryPointQueryResult {
  cudaDriverEntryPointSuccess = 0,
  cudaDriverEntryPointSymbolNotFound = 1,
  cudaDriverEntryPointVersionNotSufficent = 2
};
enum : unsigned long long {
  cudaEnableDefault = 0,
  cudaEnableLegacyStream = 1,
  cudaEnablePerThreadDefaultStream = 2
};

/// Attributes, with their places in the properties `p`.
#define VGPU_ATTRIBUTES(X)                                              \
  X(MaxThreadsPerBlock, 1, p.maxThreadsPerBlock)                        \
  X(MaxBlockDimX, 2, p.maxThreadsDim[0])                                \
  X(MaxBlockDimY, 3, p.maxThreadsDim[1])                                \
  X(MaxBlockDimZ, 4, p.maxThreadsDim[2])                                \
  X(MaxGridDimX, 5, p.maxGridSize[0])                                   \
  X(MaxGridDimY, 6, p.maxGridSize[1])                                   \
  X(MaxGridDimZ, 7, p.maxGridSize[2])                                   \
  X(MaxSharedMemoryPerBlock, 8, p.sharedMemPerBlock)                    \
  X(TotalConstantMemory, 9, p.totalConstMem)                            \
  X(WarpSize, 10, p.warpSize)                                           \
  X(MaxRegistersPerBlock, 12, p.regsPerBlock)                           \
  X(ClockRate, 13, p.clockRate)                                         \
  X(GpuOverlap, 15, p.deviceOverlap)                                    \
  X(MultiProcessorCount, 16, p.multiProcessorCount)                     \
  X(KernelExecTimeout, 17, p.kernelExecTimeoutEnabled)                  \
  X(Integrated, 18, p.integrated)                                       \
  X(CanMapHostMemory, 19, p.canMapHostMemory)                           \
  X(ComputeMode, 20, p.computeMode)                                     \
  X(ConcurrentKernels, 31, p.concurrentKernels)                         \
  X(EccEnabled, 32, p.ECCEnabled)                                       \
  X(PciBusId, 33, p.pciBusID)                                           \
  X(PciDeviceId, 34, p.pciDeviceID)                                     \
  X(MemoryClockRate, 36, p.memoryClockRate)                             \
  X(GlobalMemoryBusWidth, 37, p.memoryBusWidth)                         \
  X(L2CacheSize, 38, p.l2CacheSize)                                     \
  X(MaxThreadsPerMultiProcessor, 39, p.maxThreadsPerMultiProcessor)     \
  X(AsyncEngineCount, 40, p.asyncEngineCount)                           \
  X(UnifiedAddressing, 41, p.unifiedAddressing)                         \
  X(PciDomainId, 50, p.pciDomainID)                                     \
  X(ComputeCapabilityMajor, 75, p.major)                                \
  X(ComputeCapabilityMinor, 76, p.minor)                                \
  X(StreamPrioritiesSupported, 78, p.streamPrioritiesSupported)         \
  X(MaxSharedMemoryPerMultiprocessor, 81, p.sharedMemPerMultiprocessor) \
  X(MaxRegistersPerMultiprocessor, 82, p.regsPerMultiprocessor)         \
  X(ManagedMemory, 83, p.managedMemory)                                 \
  X(HostNativeAtomicSupported, 86, p.hostNativeAtomicSupported)         \
  X(PageableMemoryAccess, 88, p.pageableMemoryAccess)                   \
  X(ConcurrentManagedAccess, 89, p.concurrentManagedAccess)             \
  X(CooperativeLaunch, 95, p.cooperativeLaunch)                         \
  X(MaxSharedMemoryPerBlockOptin, 97, p.sharedMemPerBlockOptin)         \
  X(MaxBlocksPerMultiprocessor, 106, p.maxBlocksPerMultiProcessor)      \
  X(MemoryPoolsSupported, 115, p.memoryPoolsSupported)                  \
  X(ClusterLaunch, 120, p.clusterLaunch)
#define VGPU_ATTRIBUTE(name, value, place) cudaDevAttr##name = value,
enum cudaDeviceAttr { VGPU_ATTRIBUTES(VGPU_ATTRIBUTE) };
#undef VGPU_ATTRIBUTE

struct cudaUUID_t {
  char bytes[16];
};
/// CUDA's structure, from CUDA 12. Sizes in bytes, rates in kHz. What a virtual GPU does not have (textures,
/// caches) is 0.
struct cudaDeviceProp {
  char name[256];
  cudaUUID_t uuid;
  char luid[8];
  unsigned int luidDeviceNodeMask;
  std::size_t totalGlobalMem, sharedMemPerBlock;
  int regsPerBlock, warpSize;
  std::size_t memPitch;
  int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3];
  int clockRate;
  std::size_t totalConstMem;
  int major, minor;
  std::size_t textureAlignment, texturePitchAlignment;
  int deviceOverlap, multiProcessorCount, kernelExecTimeoutEnabled, integrated, canMapHostMemory, computeMode;
  int maxTexture1D, maxTexture1DMipmap, maxTexture1DLinear, maxTexture2D[2], maxTexture2DMipmap[2];
  int maxTexture2DLinear[3], maxTexture2DGather[2], maxTexture3D[3], maxTexture3DAlt[3], maxTextureCubemap;
  int maxTexture1DLayered[2], maxTexture2DLayered[3], maxTextureCubemapLayered[2];
  int maxSurface1D, maxSurface2D[2], maxSurface3D[3], maxSurface1DLayered[2], maxSurface2DLayered[3];
  int maxSurfaceCubemap, maxSurfaceCubemapLayered[2];
  std::size_t surfaceAlignment;
  int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver, asyncEngineCount;
  int unifiedAddressing, memoryClockRate, memoryBusWidth, l2CacheSize, persistingL2CacheMaxSize;
  int maxThreadsPerMultiProcessor, streamPrioritiesSupported, globalL1CacheSupported, localL1CacheSupported;
  std::size_t sharedMemPerMultiprocessor;
  int regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID, hostNativeAtomicSupported;
  int singleToDoublePrecisionPerfRatio, pageableMemoryAccess, concurrentManagedAccess;
  int computePreemptionSupported, canUseHostPointerForRegisteredMem, cooperativeLaunch;
  int cooperativeMultiDeviceLaunch;
  std::size_t sharedMemPerBlockOptin;
  int pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost, maxBlocksPerMultiProcessor;
  int accessPolicyMaxWindowSize;
  std::size_t reservedSharedMemPerBlock;
  int hostRegisterSupported, memoryPoolsSupported, clusterLaunch, unifiedFunctionPointers;
};
