#include "overlap/check_cublas.hpp"

#include "failed_call.hpp"

namespace overlap {

CublasError::CublasError(cublasStatus_t status, const char* call, const char* file, int line, int device)
    : std::runtime_error(failed_call_sentence(cublasGetStatusName(status), cublasGetStatusString(status),
                                              call, file, line, device)),
      status_(status),
      device_(device),
      call_(call) {}

void throw_cublas_error(cublasStatus_t status, const char* call, const char* file, int line) {
  throw CublasError(status, call, file, line, device_of_failure());
}

}  // namespace overlap
