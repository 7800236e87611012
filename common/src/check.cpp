#include "overlap/check.hpp"

#include "failed_call.hpp"

#include "overlap/backend.hpp"

namespace overlap {

CudaError::CudaError(cudaError_t code, const char* call, const char* file, int line, int device)
    : std::runtime_error(
          failed_call_sentence(cudaGetErrorName(code), cudaGetErrorString(code), call, file, line, device)),
      code_(code),
      device_(device),
      call_(call),
      detail_(backend::error_detail()) {}

CudaError::CudaError(const CudaError& error, const std::string& where)
    : std::runtime_error(where + error.what()),
      code_(error.code_),
      device_(error.device_),
      call_(error.call_),
      detail_(error.detail_) {}

void throw_cuda_error(cudaError_t code, const char* call, const char* file, int line) {
  throw CudaError(code, call, file, line, device_of_failure());
}

}  // namespace overlap
