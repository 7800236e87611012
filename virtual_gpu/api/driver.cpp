// The driver API: stream memory operations.
#include "cuda.h"
#include "engine/host/api_call.hpp"
#include "engine/host/code_text.hpp"
#include "engine/streams/signal.hpp"

namespace vgpu {
namespace {

// The codes of both APIs have the same values.
CUresult driver_result(cudaError_t code) { return static_cast<CUresult>(code); }

const CodeText& text_of(CUresult error) {
  static constexpr CodeText kErrors[] = {VGPU_DRIVER_ERRORS(VGPU_CODE_TEXT)};
  static constexpr CodeText kUnknown = {0, nullptr, nullptr};
  return find_code(kErrors, error, kUnknown);
}

/// The word at `address`, if the stream's GPU may access it.
std::uint32_t* word_at(Runtime& runtime, const Stream& stream, CUdeviceptr address) {
  auto* word = reinterpret_cast<std::uint32_t*>(address);
  if (address % sizeof *word != 0)
    throw ApiError(cudaErrorInvalidValue, "the address is not a multiple of 4");
  const Allocation* allocation = runtime.memory().find(word);
  if (allocation == nullptr) {
    throw ApiError(cudaErrorInvalidValue,
                   "the address is neither in device memory nor in pinned memory: it lies " +
                       runtime.memory().locate(word));
  }
  const int owner = allocation->device, user = stream.device();
  if (allocation->kind == MemoryKind::kDevice && owner != user && !runtime.device(user).may_access(owner)) {
    throw ApiError(cudaErrorInvalidValue, "GPU " + std::to_string(user) +
                                              " has no access to the memory of GPU " + std::to_string(owner));
  }
  return word;
}

}  // namespace
}  // namespace vgpu

using namespace vgpu;

CUresult cuStreamWriteValue32(CUstream handle, CUdeviceptr address, cuuint32_t value, unsigned int flags) {
  return driver_result(ordering_call("cuStreamWriteValue32", [&](Runtime& runtime) {
    if (flags != CU_STREAM_WRITE_VALUE_DEFAULT)
      throw ApiError(cudaErrorNotSupported, "only the flag CU_STREAM_WRITE_VALUE_DEFAULT is supported");
    Stream& stream = runtime.stream(handle);
    runtime.queues().enqueue(stream,
                             std::make_unique<WriteValue>(runtime, word_at(runtime, stream, address), value));
  }));
}

CUresult cuStreamWaitValue32(CUstream handle, CUdeviceptr address, cuuint32_t value, unsigned int flags) {
  return driver_result(ordering_call("cuStreamWaitValue32", [&](Runtime& runtime) {
    if (flags > CU_STREAM_WAIT_VALUE_NOR)
      throw ApiError(cudaErrorNotSupported, "only the flags GEQ, EQ, AND and NOR are supported");
    Stream& stream = runtime.stream(handle);
    runtime.queues().enqueue(
        stream, std::make_unique<WaitValue>(runtime, word_at(runtime, stream, address), value, flags));
  }));
}

CUresult cuGetErrorName(CUresult error, const char** name) {
  *name = text_of(error).name;
  return *name == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char** text) {
  *text = text_of(error).text;
  return *text == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
