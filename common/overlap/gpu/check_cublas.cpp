#include "overlap/gpu/check_cublas.hpp"

namespace overlap {

CublasError::CublasError(cublasStatus_t status, const char* call, const char* file, int line, int device)
    : FailedCall(cublasGetStatusName(status), cublasGetStatusString(status), call, file, line, device),
      status_(status) {}

void throw_cublas_error(cublasStatus_t status, const char* call, const char* file, int line) {
  throw CublasError(status, call, file, line, device_of_failure());
}

}  // namespace overlap
