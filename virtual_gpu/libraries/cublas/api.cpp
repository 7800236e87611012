// cuBLAS: handles and products.
#include "cublas_v2.h"
#include "libraries/cublas/call.hpp"
#include "libraries/cublas/handle.hpp"
#include "libraries/cublas/request.hpp"

namespace vgpu {
namespace {

HandleTable<CublasHandle>& handles(Runtime& runtime) {
  return runtime.libraries().of<HandleTable<CublasHandle>>();
}

CublasHandle& find(Runtime& runtime, cublasHandle_t handle) {
  if (const auto found = handles(runtime).find(handle)) return *found;
  throw CublasFailure(CUBLAS_STATUS_NOT_INITIALIZED,
                      handle == nullptr ? "the handle is null" : "this handle does not exist (any more)");
}

cublasStatus_t multiply(const char* name, cublasHandle_t handle, const Request& r) {
  return cublas_call(name, [&](Runtime& runtime) {
    const CublasHandle& found = find(runtime, handle);
    enqueue(runtime, found.device, found.stream, r);
  });
}

}  // namespace
}  // namespace vgpu

using namespace vgpu;

cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  return cublas_call("cublasCreate", [&](Runtime& runtime) {
    if (handle == nullptr) invalid("the address of the handle is null");
    auto made = std::make_shared<CublasHandle>(CublasHandle{runtime.current_device().id()});
    *handle = reinterpret_cast<cublasHandle_t>(handles(runtime).add(std::move(made)));
  });
}

cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  return cublas_call("cublasDestroy", [&](Runtime& runtime) {
    CublasHandle& found = find(runtime, handle);
    // It releases device memory, and so waits (cuBLAS Library, "cublasCreate()").
    runtime.waits().wait(runtime.queues().pending(runtime.device(found.device)));
    handles(runtime).remove(&found);
  });
}

cublasStatus_t cublasGetVersion(cublasHandle_t handle, int* version) {
  return cublas_call("cublasGetVersion", [&](Runtime& runtime) {
    find(runtime, handle);
    if (version == nullptr) invalid("the address of the version is null");
    *version = CUBLAS_VERSION;
  });
}

cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  return cublas_call("cublasSetStream", [&](Runtime& runtime) {
    CublasHandle& found = find(runtime, handle);
    stream_for(runtime, found.device, stream);
    found.stream = stream;
  });
}

cublasStatus_t cublasGetStream(cublasHandle_t handle, cudaStream_t* stream) {
  return cublas_call("cublasGetStream", [&](Runtime& runtime) {
    const CublasHandle& found = find(runtime, handle);
    if (stream == nullptr) invalid("the address of the stream is null");
    *stream = found.stream;
  });
}

cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void* workspace, std::size_t bytes) {
  return cublas_call("cublasSetWorkspace", [&](Runtime& runtime) {
    const CublasHandle& found = find(runtime, handle);
    if (reinterpret_cast<std::uintptr_t>(workspace) % 256 != 0)
      invalid("the workspace is not aligned to 256 bytes");
    if (bytes == 0) return;
    const Allocation* memory = runtime.memory().find(workspace);
    if (memory == nullptr || memory->kind != MemoryKind::kDevice || memory->device != found.device ||
        static_cast<std::byte*>(workspace) + bytes > memory->begin + memory->bytes) {
      invalid("the workspace is no memory of " + gpu(found.device) + " with " + std::to_string(bytes) +
              " bytes; it lies " + runtime.memory().locate(workspace));
    }
  });
}

cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode) {
  return cublas_call("cublasSetPointerMode", [&](Runtime& runtime) {
    find(runtime, handle);
    if (mode == CUBLAS_POINTER_MODE_DEVICE) not_supported("CUBLAS_POINTER_MODE_DEVICE is not supported");
    if (mode != CUBLAS_POINTER_MODE_HOST) invalid("there is no pointer mode " + std::to_string(mode));
  });
}

cublasStatus_t cublasGetPointerMode(cublasHandle_t handle, cublasPointerMode_t* mode) {
  return cublas_call("cublasGetPointerMode", [&](Runtime& runtime) {
    find(runtime, handle);
    if (mode == nullptr) invalid("the address of the mode is null");
    *mode = CUBLAS_POINTER_MODE_HOST;
  });
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  return cublas_call("cublasSetMathMode", [&](Runtime& runtime) {
    CublasHandle& found = find(runtime, handle);
    const int base = mode & ~CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
    if (base == CUBLAS_TF32_TENSOR_OP_MATH) not_supported("CUBLAS_TF32_TENSOR_OP_MATH is not supported");
    if (base != CUBLAS_DEFAULT_MATH && base != CUBLAS_PEDANTIC_MATH)
      not_supported("math mode " + std::to_string(mode) + " is not supported");
    found.math_mode = mode;
  });
}

cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode) {
  return cublas_call("cublasGetMathMode", [&](Runtime& runtime) {
    const CublasHandle& found = find(runtime, handle);
    if (mode == nullptr) invalid("the address of the mode is null");
    *mode = found.math_mode;
  });
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,
                            int n, int k, const void* alpha, const void* A, cudaDataType Atype, int lda,
                            const void* B, cudaDataType Btype, int ldb, const void* beta, void* C,
                            cudaDataType Ctype, int ldc, cublasComputeType_t computeType,
                            cublasGemmAlgo_t algo) {
  const Operand a{A, Atype, lda}, b{B, Btype, ldb}, c{C, Ctype, ldc};
  return multiply("cublasGemmEx", handle,
                  {transa, transb, m, n, k, alpha, a, b, beta, c, 1, computeType, algo});
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t transa,
                                          cublasOperation_t transb, int m, int n, int k, const void* alpha,
                                          const void* A, cudaDataType Atype, int lda, long long strideA,
                                          const void* B, cudaDataType Btype, int ldb, long long strideB,
                                          const void* beta, void* C, cudaDataType Ctype, int ldc,
                                          long long strideC, int batchCount, cublasComputeType_t computeType,
                                          cublasGemmAlgo_t algo) {
  const Operand a{A, Atype, lda, strideA}, b{B, Btype, ldb, strideB}, c{C, Ctype, ldc, strideC};
  return multiply("cublasGemmStridedBatchedEx", handle,
                  {transa, transb, m, n, k, alpha, a, b, beta, c, batchCount, computeType, algo});
}

cublasStatus_t cublasSgemm(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,
                           int n, int k, const float* alpha, const float* A, int lda, const float* B, int ldb,
                           const float* beta, float* C, int ldc) {
  const Operand a{A, CUDA_R_32F, lda}, b{B, CUDA_R_32F, ldb}, c{C, CUDA_R_32F, ldc};
  return multiply(
      "cublasSgemm", handle,
      {transa, transb, m, n, k, alpha, a, b, beta, c, 1, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT});
}

cublasStatus_t cublasDgemm(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,
                           int n, int k, const double* alpha, const double* A, int lda, const double* B,
                           int ldb, const double* beta, double* C, int ldc) {
  const Operand a{A, CUDA_R_64F, lda}, b{B, CUDA_R_64F, ldb}, c{C, CUDA_R_64F, ldc};
  return multiply(
      "cublasDgemm", handle,
      {transa, transb, m, n, k, alpha, a, b, beta, c, 1, CUBLAS_COMPUTE_64F, CUBLAS_GEMM_DEFAULT});
}

cublasStatus_t cublasHgemm(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,
                           int n, int k, const __half* alpha, const __half* A, int lda, const __half* B,
                           int ldb, const __half* beta, __half* C, int ldc) {
  const Operand a{A, CUDA_R_16F, lda}, b{B, CUDA_R_16F, ldb}, c{C, CUDA_R_16F, ldc};
  float factors[2] = {};
  if (alpha != nullptr && beta != nullptr)
    factors[0] = __half2float(*alpha), factors[1] = __half2float(*beta);
  return multiply("cublasHgemm", handle,
                  {transa, transb, m, n, k, alpha ? &factors[0] : nullptr, a, b, beta ? &factors[1] : nullptr,
                   c, 1, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT});
}
