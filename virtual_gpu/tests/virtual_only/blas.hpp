// GEMMs for the tests of virtual cuBLAS.
#pragma once

#include <cublas_v2.h>

#include <vector>

#include "virtual_test.hpp"

/// Lets GoogleTest print statuses by name.
inline void PrintTo(cublasStatus_t status, std::ostream* out) { *out << cublasGetStatusName(status); }

namespace virtual_only {

inline void require(cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS) throw std::runtime_error(vgpu::last_error_detail());
}
inline void expect_failure(cublasStatus_t got, cublasStatus_t status,
                           std::initializer_list<const char*> parts) {
  EXPECT_EQ(got, status);
  expect_parts(vgpu::last_error_detail(), parts);
}

/// A handle on `stream`; destroyed when the machine is reset.
inline cublasHandle_t new_blas(cudaStream_t stream = nullptr) {
  cublasHandle_t blas = nullptr;
  require(cublasCreate(&blas));
  require(cublasSetStream(blas, stream));
  return blas;
}

/// C = A B in half, without padding between columns.
inline cublasStatus_t multiply(cublasHandle_t blas, int m, int n, int k, const __half* a, const __half* b,
                               __half* c) {
  const float one = 1, zero = 0;
  return cublasGemmEx(blas, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &one, a, CUDA_R_16F, m, b, CUDA_R_16F, k,
                      &zero, c, CUDA_R_16F, m, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}

/// Device memory of the current GPU, all `value`; freed when the machine is reset.
inline __half* halves(std::size_t count, float value = 0) { return device_words(count, __half(value)); }
inline std::vector<float> floats(const __half* device_memory, std::size_t count) {
  const std::vector<__half> host = words(device_memory, count);
  return {host.begin(), host.end()};
}

}  // namespace virtual_only
