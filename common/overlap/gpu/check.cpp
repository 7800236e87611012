#include "overlap/gpu/check.hpp"

namespace overlap {

CudaError::CudaError(cudaError_t code, const char* call, const char* file, int line, int device)
    : FailedCall(cudaGetErrorName(code), cudaGetErrorString(code), call, file, line, device), code_(code) {}

void throw_cuda_error(cudaError_t code, const char* call, const char* file, int line) {
  throw CudaError(code, call, file, line, device_of_failure());
}

}  // namespace overlap
