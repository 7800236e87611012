// cuBLAS, as far as the virtual GPUs support it: GEMMs. Semantics are those of the cuBLAS Library reference;
// matrices are column-major. What is not declared here is not supported: using it is a compile error. A
// declared function returns CUBLAS_STATUS_NOT_SUPPORTED for unsupported arguments and prints the reason.
#pragma once

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "library_types.h"
#include "vgpu/types.h"
#include "vgpu/unsupported_libraries.h"

#define CUBLAS_VERSION 120400

// The status codes, with the toolkit's values.
#define VGPU_CUBLAS_STATUSES(X)                                                                              \
  X(CUBLAS_STATUS_SUCCESS, 0, "success")                                                                     \
  X(CUBLAS_STATUS_NOT_INITIALIZED, 1, "the library was not initialized")                                     \
  X(CUBLAS_STATUS_ALLOC_FAILED, 3, "the resource allocation failed")                                         \
  X(CUBLAS_STATUS_INVALID_VALUE, 7, "an unsupported value or parameter was passed to the function")          \
  X(CUBLAS_STATUS_ARCH_MISMATCH, 8, "the function requires an architectural feature absent from the device") \
  X(CUBLAS_STATUS_MAPPING_ERROR, 11, "an access to GPU memory space failed")                                 \
  X(CUBLAS_STATUS_EXECUTION_FAILED, 13, "the function failed to launch on the GPU")                          \
  X(CUBLAS_STATUS_INTERNAL_ERROR, 14, "an internal operation failed")                                        \
  X(CUBLAS_STATUS_NOT_SUPPORTED, 15, "the requested functionality is not supported")                         \
  X(CUBLAS_STATUS_LICENSE_ERROR, 16, "the license check failed")

enum cublasStatus_t { VGPU_CUBLAS_STATUSES(VGPU_ENUMERATOR) };
enum cublasOperation_t { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1, CUBLAS_OP_C = 2 };
enum cublasPointerMode_t { CUBLAS_POINTER_MODE_HOST = 0, CUBLAS_POINTER_MODE_DEVICE = 1 };
enum cublasGemmAlgo_t { CUBLAS_GEMM_DEFAULT = -1, CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99 };
enum cublasComputeType_t {
  CUBLAS_COMPUTE_32F = 68,
  CUBLAS_COMPUTE_32F_PEDANTIC = 69,
  CUBLAS_COMPUTE_64F = 70
};
/// All sums are in float here, in any mode; TF32 inputs are refused.
enum cublasMath_t {
  CUBLAS_DEFAULT_MATH = 0,
  CUBLAS_PEDANTIC_MATH = 2,
  CUBLAS_TF32_TENSOR_OP_MATH = 3,
  CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION = 16
};
using cublasHandle_t = struct cublasContext*;

const char* cublasGetStatusName(cublasStatus_t status);
const char* cublasGetStatusString(cublasStatus_t status);

/// A handle belongs to the GPU that is current now, and works on that one only.
cublasStatus_t cublasCreate(cublasHandle_t* handle);
/// Waits for all work of the handle's GPU.
cublasStatus_t cublasDestroy(cublasHandle_t handle);
cublasStatus_t cublasGetVersion(cublasHandle_t handle, int* version);
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasGetStream(cublasHandle_t handle, cudaStream_t* stream);
/// Checked, not used: GEMMs on virtual GPUs need no workspace.
cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void* workspace, std::size_t bytes);
cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode);
cublasStatus_t cublasGetPointerMode(cublasHandle_t handle, cublasPointerMode_t* mode);
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode);
cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode);

/// C = alpha op(A) op(B) + beta C, with op(A) m x k, op(B) k x n, C m x n; sums in float, rounded once at the
/// end. alpha and beta are floats of the host, read by the call. A and B have the same type, C has it too or
/// is float. With CUBLAS_COMPUTE_64F all of it is double.
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,
                            int n, int k, const void* alpha, const void* A, cudaDataType Atype, int lda,
                            const void* B, cudaDataType Btype, int ldb, const void* beta, void* C,
                            cudaDataType Ctype, int ldc, cublasComputeType_t computeType,
                            cublasGemmAlgo_t algo);
/// The same for `batchCount` products; a stride is the distance between two matrices in elements.
cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t transa,
                                          cublasOperation_t transb, int m, int n, int k, const void* alpha,
                                          const void* A, cudaDataType Atype, int lda, long long strideA,
                                          const void* B, cudaDataType Btype, int ldb, long long strideB,
                                          const void* beta, void* C, cudaDataType Ctype, int ldc,
                                          long long strideC, int batchCount, cublasComputeType_t computeType,
                                          cublasGemmAlgo_t algo);
cublasStatus_t cublasSgemm(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,
                           int n, int k, const float* alpha, const float* A, int lda, const float* B, int ldb,
                           const float* beta, float* C, int ldc);
cublasStatus_t cublasDgemm(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,
                           int n, int k, const double* alpha, const double* A, int lda, const double* B,
                           int ldb, const double* beta, double* C, int ldc);
/// Sums in float: where real ones are not exact, these are nearer.
cublasStatus_t cublasHgemm(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,
                           int n, int k, const __half* alpha, const __half* A, int lda, const __half* B,
                           int ldb, const __half* beta, __half* C, int ldc);

// Matrices and vectors between the host and a GPU, strides and leading dimensions in elements.
inline cublasStatus_t cublasSetMatrix(int rows, int columns, int size, const void* from, int from_ld,
                                      void* to, int to_ld) {
  const std::size_t bytes = static_cast<std::size_t>(size);
  const cudaError_t error = cudaMemcpy2D(to, to_ld * bytes, from, from_ld * bytes, rows * bytes,
                                         static_cast<std::size_t>(columns), cudaMemcpyDefault);
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_MAPPING_ERROR;
}
inline cublasStatus_t cublasGetMatrix(int rows, int columns, int size, const void* from, int from_ld,
                                      void* to, int to_ld) {
  return cublasSetMatrix(rows, columns, size, from, from_ld, to, to_ld);
}
inline cublasStatus_t cublasSetVector(int count, int size, const void* from, int from_stride, void* to,
                                      int to_stride) {
  return cublasSetMatrix(1, count, size, from, from_stride, to, to_stride);
}
inline cublasStatus_t cublasGetVector(int count, int size, const void* from, int from_stride, void* to,
                                      int to_stride) {
  return cublasSetMatrix(1, count, size, from, from_stride, to, to_stride);
}
VGPU_NO_FUNCTIONS(cublasStatus_t, "only GEMMs are supported on virtual GPUs: write a kernel", cublasSgemv,
                  cublasDgemv, cublasSaxpy, cublasDaxpy, cublasSdot, cublasDdot, cublasSnrm2, cublasDnrm2,
                  cublasSscal, cublasDscal, cublasSasum, cublasIsamax, cublasSgemmBatched,
                  cublasSgemmStridedBatched, cublasSgeam)
