// What every call of cuBLAS begins with, and how it fails.
#pragma once

#include <stdexcept>
#include <string>

#include "cublas_v2.h"
#include "engine/host/api_call.hpp"

namespace vgpu {

/// A cuBLAS call's failure: cuBLAS' status, and one sentence that says what the status does not.
class CublasFailure : public std::runtime_error {
 public:
  CublasFailure(cublasStatus_t status, const std::string& sentence)
      : std::runtime_error(sentence), status(status) {}
  cublasStatus_t status;
};

/// api_call() for functions that return a status. The status is no business of cudaGetLastError.
template <class Function>
cublasStatus_t cublas_call(const char* name, Function function) {
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  const cudaError_t error = api_call(name, [&](Runtime& runtime) {
    try {
      function(runtime);
    } catch (const CublasFailure& failure) {
      status = failure.status;
      runtime.errors().note(name, failure.what());
    }
  });
  if (error == cudaSuccess) return status;
  if (error == cudaErrorMemoryAllocation) return CUBLAS_STATUS_ALLOC_FAILED;
  return error == cudaErrorInvalidResourceHandle ? CUBLAS_STATUS_INVALID_VALUE
                                                 : CUBLAS_STATUS_EXECUTION_FAILED;
}

[[noreturn]] inline void invalid(const std::string& sentence) {
  throw CublasFailure(CUBLAS_STATUS_INVALID_VALUE, sentence);
}
[[noreturn]] inline void not_supported(const std::string& sentence) {
  throw CublasFailure(CUBLAS_STATUS_NOT_SUPPORTED, sentence + " on virtual GPUs");
}

}  // namespace vgpu
