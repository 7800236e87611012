// The driver API: stream memory operations.
#include <algorithm>

#include "cuda.h"
#include "runtime.hpp"

// All codes that a call here can return.
#define VGPU_DRIVER_ERRORS(X)                                               \
  X(CUDA_SUCCESS, "no error")                                               \
  X(CUDA_ERROR_INVALID_VALUE, "invalid argument")                           \
  X(CUDA_ERROR_OUT_OF_MEMORY, "out of memory")                              \
  X(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle")                   \
  X(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered") \
  X(CUDA_ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated")   \
  X(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure")                 \
  X(CUDA_ERROR_NOT_PERMITTED, "operation not permitted")                    \
  X(CUDA_ERROR_NOT_SUPPORTED, "operation not supported")                    \
  X(CUDA_ERROR_UNKNOWN, "unknown error")

namespace vgpu {
namespace {

// The codes of both APIs have the same values.
CUresult driver_result(cudaError_t code) { return static_cast<CUresult>(code); }

/// The word at `address`, if the stream's GPU may access it.
std::uint32_t* word_at(Runtime& runtime, const Stream& stream, CUdeviceptr address) {
  auto* word = reinterpret_cast<std::uint32_t*>(address);
  if (address % sizeof *word != 0)
    throw ApiError(cudaErrorInvalidValue, "the address is not a multiple of 4");
  const Allocation* allocation = runtime.memory.find(word);
  if (allocation == nullptr) {
    throw ApiError(cudaErrorInvalidValue,
                   "the address is neither in device memory nor in pinned memory: it lies " +
                       runtime.memory.locate(word));
  }
  const int owner = allocation->device, user = stream.device();
  if (allocation->kind == MemoryKind::kDevice && owner != user &&
      !runtime.device(user).peers.contains(owner)) {
    throw ApiError(cudaErrorInvalidValue, "GPU " + std::to_string(user) +
                                              " has no access to the memory of GPU " + std::to_string(owner));
  }
  return word;
}

}  // namespace
}  // namespace vgpu

using namespace vgpu;

CUresult cuStreamWriteValue32(CUstream handle, CUdeviceptr address, cuuint32_t value, unsigned int flags) {
  return driver_result(api_call("cuStreamWriteValue32", [&](Runtime& runtime) {
    if (flags != CU_STREAM_WRITE_VALUE_DEFAULT)
      throw ApiError(cudaErrorNotSupported, "only the flag CU_STREAM_WRITE_VALUE_DEFAULT is supported");
    Stream& stream = runtime.stream(handle);
    runtime.enqueue(stream, std::make_unique<WriteValue>(runtime, word_at(runtime, stream, address), value));
  }));
}

CUresult cuStreamWaitValue32(CUstream handle, CUdeviceptr address, cuuint32_t value, unsigned int flags) {
  return driver_result(api_call("cuStreamWaitValue32", [&](Runtime& runtime) {
    if (flags > CU_STREAM_WAIT_VALUE_NOR)
      throw ApiError(cudaErrorNotSupported, "only the flags GEQ, EQ, AND and NOR are supported");
    Stream& stream = runtime.stream(handle);
    runtime.enqueue(stream,
                    std::make_unique<WaitValue>(runtime, word_at(runtime, stream, address), value, flags));
  }));
}

CUresult cuGetErrorName(CUresult error, const char** name) {
  switch (error) {
#define VGPU_CASE(code, text) \
  case code:                  \
    *name = #code;            \
    return CUDA_SUCCESS;
    VGPU_DRIVER_ERRORS(VGPU_CASE)
#undef VGPU_CASE
  }
  *name = nullptr;
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char** text) {
  switch (error) {
#define VGPU_CASE(code, sentence) \
  case code:                      \
    *text = sentence;             \
    return CUDA_SUCCESS;
    VGPU_DRIVER_ERRORS(VGPU_CASE)
#undef VGPU_CASE
  }
  *text = nullptr;
  return CUDA_ERROR_INVALID_VALUE;
}
