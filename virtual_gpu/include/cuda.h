// The CUDA driver API of the virtual GPUs: the operations of a stream that write a word of memory and wait
// for one, and tensor maps. Semantics are those of the CUDA Driver API reference, "Stream Memory Operations"
// and "Tensor Map Object Management".
#pragma once

#include <cstdint>

#include "vgpu/types.h"

using CUdeviceptr = unsigned long long;
using CUstream = cudaStream_t;
using cuuint32_t = std::uint32_t;
using cuuint64_t = std::uint64_t;

// All codes that a call here can return, with the toolkit's values.
#define VGPU_DRIVER_ERRORS(X)                                                                              \
  X(CUDA_SUCCESS, 0, "no error")                                                                           \
  X(CUDA_ERROR_INVALID_VALUE, 1, "invalid argument")                                                       \
  X(CUDA_ERROR_OUT_OF_MEMORY, 2, "out of memory")                                                          \
  X(CUDA_ERROR_INVALID_HANDLE, 400, "invalid resource handle")                                             \
  X(CUDA_ERROR_ILLEGAL_ADDRESS, 700, "an illegal memory access was encountered")                           \
  X(CUDA_ERROR_LAUNCH_TIMEOUT, 702, "the launch timed out and was terminated")                             \
  X(CUDA_ERROR_LAUNCH_FAILED, 719, "unspecified launch failure")                                           \
  X(CUDA_ERROR_NOT_PERMITTED, 800, "operation not permitted")                                              \
  X(CUDA_ERROR_NOT_SUPPORTED, 801, "operation not supported")                                              \
  X(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 900, "operation not permitted when stream is capturing")        \
  X(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, 901, "operation failed due to a previous error during capture") \
  X(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, 906,                                                               \
    "operation would make the legacy stream depend on a capturing blocking stream")                        \
  X(CUDA_ERROR_UNKNOWN, 999, "unknown error")

enum CUresult { VGPU_DRIVER_ERRORS(VGPU_ENUMERATOR) };
CUresult cuGetErrorName(CUresult error, const char** name);
CUresult cuGetErrorString(CUresult error, const char** text);

enum CUstreamWriteValue_flags {
  CU_STREAM_WRITE_VALUE_DEFAULT = 0,
  CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER = 1,  // refused: a signal must order memory
};
/// Writes `value` to the word at `address`, after the stream's earlier work; a reader of the value also sees
/// that work. `address`: 4 bytes, aligned, on any GPU that the stream's GPU may access, or in pinned memory.
CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags);

enum CUstreamWaitValue_flags {
  CU_STREAM_WAIT_VALUE_GEQ = 0,  // (int32_t)(*address - value) >= 0: right across the overflow of a counter
  CU_STREAM_WAIT_VALUE_EQ = 1,
  CU_STREAM_WAIT_VALUE_AND = 2,  // (*address & value) != 0
  CU_STREAM_WAIT_VALUE_NOR = 3,  // ~(*address | value) != 0
};
/// The stream's later work waits until the word at `address` compares as `flags` says.
CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags);

/// A tensor in global memory and the box of it that a bulk copy moves (<cuda/ptx>, cp_async_bulk_tensor). A
/// kernel takes it as `const __grid_constant__ CUtensorMap`.
struct alignas(128) CUtensorMap {
  cuuint64_t opaque[16];
};
enum CUtensorMapDataType {
  CU_TENSOR_MAP_DATA_TYPE_UINT8 = 0,
  CU_TENSOR_MAP_DATA_TYPE_UINT16,
  CU_TENSOR_MAP_DATA_TYPE_UINT32,
  CU_TENSOR_MAP_DATA_TYPE_INT32,
  CU_TENSOR_MAP_DATA_TYPE_UINT64,
  CU_TENSOR_MAP_DATA_TYPE_INT64,
  CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
  CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
  CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
  CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
  CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ,
  CU_TENSOR_MAP_DATA_TYPE_TFLOAT32,
  CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ
};
enum CUtensorMapInterleave {
  CU_TENSOR_MAP_INTERLEAVE_NONE = 0,
  CU_TENSOR_MAP_INTERLEAVE_16B,
  CU_TENSOR_MAP_INTERLEAVE_32B
};
enum CUtensorMapSwizzle {
  CU_TENSOR_MAP_SWIZZLE_NONE = 0,
  CU_TENSOR_MAP_SWIZZLE_32B,
  CU_TENSOR_MAP_SWIZZLE_64B,
  CU_TENSOR_MAP_SWIZZLE_128B
};
enum CUtensorMapL2promotion {
  CU_TENSOR_MAP_L2_PROMOTION_NONE = 0,
  CU_TENSOR_MAP_L2_PROMOTION_L2_64B,
  CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
  CU_TENSOR_MAP_L2_PROMOTION_L2_256B
};
enum CUtensorMapFloatOOBfill {
  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE = 0,
  CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA
};
/// Checks its arguments by the reference. Valid but unsupported arguments give CUDA_ERROR_NOT_SUPPORTED:
/// interleaved layouts, element strides other than 1, NaN for elements outside, types of FTZ and TF32 (which
/// round), boxes whose rows are narrower than their swizzle.
CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                const cuuint64_t* sizes, const cuuint64_t* strides, const cuuint32_t* box,
                                const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2_promotion,
                                CUtensorMapFloatOOBfill fill);
