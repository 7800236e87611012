// CUDA_CHECK, CU_CHECK: a CUDA call that fails becomes an exception that says which call, where, why and on
// which GPU.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <string>

#include "overlap/gpu/failed_call.hpp"

namespace overlap {

/// A CUDA runtime call that did not return cudaSuccess. what() reads
/// "column_split.cuh:41: cudaMalloc(&p, bytes): cudaErrorMemoryAllocation (out of memory), device 0".
class CudaError : public FailedCall {
 public:
  /// `device` is the calling thread's current device, or -1 if it could not be read.
  CudaError(cudaError_t code, const char* call, const char* file, int line, int device);
  /// The same error, its text preceded by `where`, such as "rank 3: ".
  CudaError(const CudaError& error, const std::string& where)
      : FailedCall(error, where), code_(error.code_) {}

  cudaError_t code() const { return code_; }  ///< what the call returned

 private:
  cudaError_t code_;
};

/// Throws the CudaError of `code`. Reads the current device, and changes no CUDA state.
[[noreturn]] void throw_cuda_error(cudaError_t code, const char* call, const char* file, int line);

/// Returns at once on success; throws CudaError otherwise. Use it through CUDA_CHECK.
inline void check_cuda(cudaError_t code, const char* call, const char* file, int line) {
  if (code != cudaSuccess) throw_cuda_error(code, call, file, line);
}

/// The same for the driver API, whose codes have the values of the runtime API's. Use it through CU_CHECK.
inline void check_driver(CUresult code, const char* call, const char* file, int line) {
  if (code != CUDA_SUCCESS) throw_cuda_error(static_cast<cudaError_t>(code), call, file, line);
}

}  // namespace overlap

/// CUDA_CHECK(cudaMalloc(&p, bytes)); A macro, because only a macro sees the call's text.
#define CUDA_CHECK(...) ::overlap::check_cuda((__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)
/// CU_CHECK(cuStreamWriteValue32(stream, address, 1, 0));
#define CU_CHECK(...) ::overlap::check_driver((__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)
