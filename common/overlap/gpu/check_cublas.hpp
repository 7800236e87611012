// CUBLAS_CHECK: a cuBLAS call that fails becomes an exception, as with CUDA_CHECK.
#pragma once

#include <cublas_v2.h>

#include "overlap/gpu/failed_call.hpp"

namespace overlap {

/// A cuBLAS call that did not return CUBLAS_STATUS_SUCCESS. what() reads "gemm.cuh:41: cublasSgemm(...):
/// CUBLAS_STATUS_INVALID_VALUE (an unsupported value or parameter was passed to the function), device 0".
class CublasError : public FailedCall {
 public:
  /// `device` is the calling thread's current device, or -1 if it could not be read.
  CublasError(cublasStatus_t status, const char* call, const char* file, int line, int device);

  cublasStatus_t status() const { return status_; }  ///< what the call returned

 private:
  cublasStatus_t status_;
};

/// Throws the CublasError of `status`. Reads the current device, and changes no CUDA state.
[[noreturn]] void throw_cublas_error(cublasStatus_t status, const char* call, const char* file, int line);

/// Returns at once on success; throws CublasError otherwise. Use it through CUBLAS_CHECK.
inline void check_cublas(cublasStatus_t status, const char* call, const char* file, int line) {
  if (status != CUBLAS_STATUS_SUCCESS) throw_cublas_error(status, call, file, line);
}

}  // namespace overlap

/// CUBLAS_CHECK(cublasCreate(&handle)); A macro, because only a macro sees the call's text.
#define CUBLAS_CHECK(...) ::overlap::check_cublas((__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)
