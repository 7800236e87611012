// cuBLAS: handles and products.
#include <algorithm>

#include "cublas_v2.h"
#include "engine/api_call.hpp"
#include "libraries/cublas/handle.hpp"
#include "libraries/cublas/product.hpp"

namespace vgpu {
namespace {

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

[[noreturn]] void invalid(const std::string& sentence) {
  throw CublasFailure(CUBLAS_STATUS_INVALID_VALUE, sentence);
}
[[noreturn]] void not_supported(const std::string& sentence) {
  throw CublasFailure(CUBLAS_STATUS_NOT_SUPPORTED, sentence + " on virtual GPUs");
}

HandleTable<CublasHandle>& handles(Runtime& runtime) {
  return runtime.libraries().of<HandleTable<CublasHandle>>();
}

CublasHandle& find(Runtime& runtime, cublasHandle_t handle) {
  if (const auto found = handles(runtime).find(handle)) return *found;
  throw CublasFailure(CUBLAS_STATUS_NOT_INITIALIZED,
                      handle == nullptr ? "the handle is null" : "this handle does not exist (any more)");
}

std::string gpu(int device) { return "GPU " + std::to_string(device); }

/// The stream of that handle, which the handle works on. Null is the default stream of the handle's GPU.
Stream& stream_for(Runtime& runtime, const CublasHandle& handle, cudaStream_t wanted) {
  Stream& stream = wanted == nullptr || wanted == cudaStreamLegacy
                       ? runtime.device(handle.device).default_stream()
                       : runtime.stream(wanted);
  if (stream.device() != handle.device)
    invalid("the handle belongs to " + gpu(handle.device) + ", the stream is " + stream.name());
  return stream;
}

Element element(char name, cudaDataType type) {
  switch (type) {
    case CUDA_R_16F:
      return Element::kF16;
    case CUDA_R_16BF:
      return Element::kBf16;
    case CUDA_R_32F:
      return Element::kF32;
  }
  not_supported("type " + std::to_string(type) + " of matrix " + name + " is not supported");
}

bool transposes(const char* name, cublasOperation_t operation) {
  if (operation == CUBLAS_OP_N) return false;
  if (operation == CUBLAS_OP_T || operation == CUBLAS_OP_C) return true;  // the conjugate of a real number
  invalid(std::string(name) + " is " + std::to_string(operation) + ", none of CUBLAS_OP_N, _T, _C");
}

struct Operand {
  const void* data;
  cudaDataType type;
  int ld;
  long long stride = 0;  // from one matrix to the next
};

/// A `rows` x `columns` matrix for each product.
Matrices matrices(char name, const Operand& operand, int rows, int columns) {
  if (operand.ld < std::max(1, rows)) {
    invalid(std::string("ld") + static_cast<char>(name + ('a' - 'A')) + " is " + std::to_string(operand.ld) +
            ", less than the " + std::to_string(rows) + " rows of " + name);
  }
  auto* data = static_cast<std::byte*>(const_cast<void*>(operand.data));
  return {name, data, element(name, operand.type), rows, columns, operand.ld, operand.stride};
}

struct Request {
  cublasOperation_t transpose_a, transpose_b;
  int m, n, k;
  const void* alpha;
  Operand a, b;
  const void* beta;
  Operand c;
  int batch;
  cublasComputeType_t compute;
  cublasGemmAlgo_t algorithm;
};

Product checked(const Request& r) {
  for (const auto& [name, size] : {std::pair{"m", r.m}, {"n", r.n}, {"k", r.k}, {"batchCount", r.batch}}) {
    if (size < 0) invalid(std::string(name) + " is " + std::to_string(size));
  }
  if (r.alpha == nullptr || r.beta == nullptr) invalid("alpha or beta is null");
  Product product{};
  product.transpose_a = transposes("transa", r.transpose_a);
  product.transpose_b = transposes("transb", r.transpose_b);
  product.m = r.m, product.n = r.n, product.k = r.k, product.batch = r.batch;
  product.alpha = *static_cast<const float*>(r.alpha);
  product.beta = *static_cast<const float*>(r.beta);
  product.a = matrices('A', r.a, product.transpose_a ? r.k : r.m, product.transpose_a ? r.m : r.k);
  product.b = matrices('B', r.b, product.transpose_b ? r.n : r.k, product.transpose_b ? r.k : r.n);
  product.c = matrices('C', r.c, r.m, r.n);
  if (product.a.type != product.b.type ||
      (product.c.type != product.a.type && product.c.type != Element::kF32)) {
    not_supported(std::string("A in ") + name_of(product.a.type) + ", B in " + name_of(product.b.type) +
                  ", C in " + name_of(product.c.type) + " is not supported");
  }
  if (r.compute != CUBLAS_COMPUTE_32F && r.compute != CUBLAS_COMPUTE_32F_PEDANTIC)
    not_supported("compute type " + std::to_string(r.compute) + " is not supported");
  if (r.algorithm != CUBLAS_GEMM_DEFAULT && r.algorithm != CUBLAS_GEMM_DEFAULT_TENSOR_OP)
    not_supported("algorithm " + std::to_string(r.algorithm) + " is not supported");
  return product;
}

void enqueue(Runtime& runtime, cublasHandle_t handle_, const Request& request) {
  const CublasHandle& handle = find(runtime, handle_);
  const Product product = checked(request);
  if (product.m == 0 || product.n == 0 || product.batch == 0) return;
  if (product.c.data == nullptr) invalid("C is null");
  if (product.reads_factors() && (product.a.data == nullptr || product.b.data == nullptr))
    invalid("A or B is null");
  Device& device = runtime.current_device();
  if (device.id() != handle.device) {
    throw CublasFailure(CUBLAS_STATUS_EXECUTION_FAILED,
                        "the handle belongs to " + gpu(handle.device) + ", but " + gpu(device.id()) +
                            " is current: cudaSetDevice comes before the call");
  }
  Stream& stream = stream_for(runtime, handle, handle.stream);
  runtime.queues().enqueue(stream, std::make_unique<ProductOperation>(runtime, device, product));
}

cublasStatus_t multiply(const char* name, cublasHandle_t handle, const Request& request) {
  return cublas_call(name, [&](Runtime& runtime) { enqueue(runtime, handle, request); });
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
    stream_for(runtime, found, stream);
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
