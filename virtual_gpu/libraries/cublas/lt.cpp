// cuBLASLt: descriptions of products, and products by them.
#include <cstring>
#include <limits>

#include "cublasLt.h"
#include "libraries/cublas/call.hpp"
#include "libraries/cublas/request.hpp"

namespace vgpu {
namespace {

struct LtHandle {
  int device;
};
struct LtDescription {
  cublasComputeType_t compute;
  cublasOperation_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N;
};
struct LtLayout {
  cudaDataType type;
  std::uint64_t rows, columns;
  std::int64_t ld;
};
struct LtPreference {
  std::uint64_t workspace_bytes = 0;
};

/// The only algorithm.
constexpr std::uint64_t kAlgorithm = 0x7667707561;

template <class Object>
HandleTable<Object>& all(Runtime& runtime) {
  return runtime.libraries().of<HandleTable<Object>>();
}

template <class Object, class Handle>
Object& find(Runtime& runtime, Handle handle, const char* what) {
  if (const auto found = all<Object>(runtime).find(handle)) return *found;
  invalid(std::string("the ") + what + (handle == nullptr ? " is null" : " does not exist (any more)"));
}

LtHandle& find(Runtime& runtime, cublasLtHandle_t handle) {
  if (const auto found = all<LtHandle>(runtime).find(handle)) return *found;
  throw CublasFailure(CUBLAS_STATUS_NOT_INITIALIZED,
                      handle == nullptr ? "the handle is null" : "this handle does not exist (any more)");
}

template <class Object, class Handle>
cublasStatus_t create(const char* name, Handle* handle, Object object) {
  return cublas_call(name, [&](Runtime& runtime) {
    if (handle == nullptr) invalid("the address of the result is null");
    *handle = reinterpret_cast<Handle>(all<Object>(runtime).add(std::make_shared<Object>(object)));
  });
}

template <class Object, class Handle>
cublasStatus_t destroy(const char* name, Handle handle) {
  return cublas_call(
      name, [&](Runtime& runtime) { all<Object>(runtime).remove(&find<Object>(runtime, handle, "object")); });
}

template <class Value>
void set(Value& value, const void* buffer, std::size_t size) {
  if (buffer == nullptr || size != sizeof value)
    invalid("the attribute has " + std::to_string(sizeof value) + " bytes, not " + std::to_string(size));
  std::memcpy(&value, buffer, sizeof value);
}

struct Matrix {
  const void* data;
  cublasLtMatrixLayout_t layout;
};

int size_of(const char* what, std::uint64_t size) {
  if (size > static_cast<std::uint64_t>(std::numeric_limits<int>::max()))
    not_supported(std::string(what) + " of " + std::to_string(size) + " is not supported");
  return static_cast<int>(size);
}

/// The product of these matrices as cublasGemmEx() takes it. Throws CublasFailure if their sizes do not fit.
Request request_of(Runtime& runtime, cublasLtMatmulDesc_t description, const Matrix& a, const Matrix& b,
                   const Matrix& c, const Matrix& d, const void* alpha, const void* beta) {
  const auto& desc = find<LtDescription>(runtime, description, "description");
  const auto& la = find<LtLayout>(runtime, a.layout, "layout of A");
  const auto& lb = find<LtLayout>(runtime, b.layout, "layout of B");
  const auto& lc = find<LtLayout>(runtime, c.layout, "layout of C");
  const auto& ld = find<LtLayout>(runtime, d.layout, "layout of D");
  const bool ta = desc.transpose_a != CUBLAS_OP_N, tb = desc.transpose_b != CUBLAS_OP_N;
  const std::uint64_t m = ta ? la.columns : la.rows, k = ta ? la.rows : la.columns;
  const std::uint64_t n = tb ? lb.rows : lb.columns;
  if ((tb ? lb.columns : lb.rows) != k || ld.rows != m || ld.columns != n)
    invalid("the sizes of A, B and D do not fit");
  if (c.data != d.data || lc.rows != ld.rows || lc.columns != ld.columns || lc.ld != ld.ld ||
      lc.type != ld.type)
    not_supported("a C that is not D is not supported");
  const auto operand = [](const Matrix& matrix, const LtLayout& layout) {
    return Operand{matrix.data, layout.type,
                   size_of("a leading dimension", static_cast<std::uint64_t>(layout.ld))};
  };
  return {desc.transpose_a,
          desc.transpose_b,
          size_of("m", m),
          size_of("n", n),
          size_of("k", k),
          alpha,
          operand(a, la),
          operand(b, lb),
          beta,
          operand(d, ld),
          1,
          desc.compute,
          CUBLAS_GEMM_DEFAULT};
}

}  // namespace
}  // namespace vgpu

using namespace vgpu;

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  return cublas_call("cublasLtCreate", [&](Runtime& runtime) {
    if (handle == nullptr) invalid("the address of the handle is null");
    *handle = reinterpret_cast<cublasLtHandle_t>(
        all<LtHandle>(runtime).add(std::make_shared<LtHandle>(LtHandle{runtime.current_device().id()})));
  });
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  return cublas_call("cublasLtDestroy",
                     [&](Runtime& runtime) { all<LtHandle>(runtime).remove(&find(runtime, handle)); });
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t computeType,
                                        cudaDataType scaleType) {
  return cublas_call("cublasLtMatmulDescCreate", [&](Runtime& runtime) {
    if (desc == nullptr) invalid("the address of the description is null");
    if (scaleType != CUDA_R_32F) not_supported("a scale type other than CUDA_R_32F is not supported");
    *desc = reinterpret_cast<cublasLtMatmulDesc_t>(
        all<LtDescription>(runtime).add(std::make_shared<LtDescription>(LtDescription{computeType})));
  });
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attr,
                                              const void* buf, std::size_t size) {
  return cublas_call("cublasLtMatmulDescSetAttribute", [&](Runtime& runtime) {
    auto& found = find<LtDescription>(runtime, desc, "description");
    set(attr == CUBLASLT_MATMUL_DESC_TRANSA ? found.transpose_a : found.transpose_b, buf, size);
  });
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  return destroy<LtDescription>("cublasLtMatmulDescDestroy", desc);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          std::uint64_t rows, std::uint64_t cols, std::int64_t ld) {
  return create("cublasLtMatrixLayoutCreate", layout, LtLayout{type, rows, cols, ld});
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return destroy<LtLayout>("cublasLtMatrixLayoutDestroy", layout);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return create("cublasLtMatmulPreferenceCreate", preference, LtPreference{});
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t /*attr*/,
                                                    const void* buf, std::size_t size) {
  return cublas_call("cublasLtMatmulPreferenceSetAttribute", [&](Runtime& runtime) {
    set(find<LtPreference>(runtime, preference, "preference").workspace_bytes, buf, size);
  });
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return destroy<LtPreference>("cublasLtMatmulPreferenceDestroy", preference);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t Adesc, cublasLtMatrixLayout_t Bdesc,
                                              cublasLtMatrixLayout_t Cdesc, cublasLtMatrixLayout_t Ddesc,
                                              cublasLtMatmulPreference_t preference, int requestedAlgoCount,
                                              cublasLtMatmulHeuristicResult_t heuristicResultsArray[],
                                              int* returnAlgoCount) {
  return cublas_call("cublasLtMatmulAlgoGetHeuristic", [&](Runtime& runtime) {
    find(runtime, handle);
    find<LtPreference>(runtime, preference, "preference");
    if (heuristicResultsArray == nullptr || returnAlgoCount == nullptr || requestedAlgoCount < 1)
      invalid("there is no place for a result");
    *returnAlgoCount = 0;
    const float one = 1, zero = 0;
    checked(request_of(runtime, desc, {nullptr, Adesc}, {nullptr, Bdesc}, {nullptr, Cdesc}, {nullptr, Ddesc},
                       &one, &zero));
    heuristicResultsArray[0] = {{{kAlgorithm}}, 0, CUBLAS_STATUS_SUCCESS, 1, {}};
    *returnAlgoCount = 1;
  });
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void* alpha,
                              const void* A, cublasLtMatrixLayout_t Adesc, const void* B,
                              cublasLtMatrixLayout_t Bdesc, const void* beta, const void* C,
                              cublasLtMatrixLayout_t Cdesc, void* D, cublasLtMatrixLayout_t Ddesc,
                              const cublasLtMatmulAlgo_t* algo, void* /*workspace*/,
                              std::size_t /*workspaceSizeInBytes*/, cudaStream_t stream) {
  return cublas_call("cublasLtMatmul", [&](Runtime& runtime) {
    const int device = find(runtime, handle).device;
    if (algo != nullptr && algo->data[0] != kAlgorithm) invalid("this algorithm came from no heuristic");
    enqueue(runtime, device, stream,
            request_of(runtime, desc, {A, Adesc}, {B, Bdesc}, {C, Cdesc}, {D, Ddesc}, alpha, beta));
  });
}
