// Shared by the scenarios of cuBLAS.
#pragma once

#include <cublas_v2.h>

#include "gpu_test.hpp"

/// Lets GoogleTest print statuses by name.
inline void PrintTo(cublasStatus_t status, std::ostream* out) { *out << cublasGetStatusName(status); }

#define CUBLAS_OK(call) ASSERT_EQ(call, CUBLAS_STATUS_SUCCESS)

namespace semantics {

inline void require(cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS) throw std::runtime_error(cublasGetStatusName(status));
}

class Blas : public Owner<cublasHandle_t, &cublasDestroy> {
 public:
  Blas() { require(cublasCreate(&handle_)); }
};

}  // namespace semantics
