// A product as its caller describes it, and what is checked of it.
#pragma once

#include <string>

#include "cublas_v2.h"
#include "engine/runtime.hpp"
#include "libraries/cublas/product.hpp"

namespace vgpu {

inline std::string gpu(int device) { return "GPU " + std::to_string(device); }

struct Operand {
  const void* data;
  cudaDataType type;
  int ld;
  long long stride = 0;  // from one matrix to the next
};

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

/// The product of a request. Throws CublasFailure if there is none.
Product checked(const Request& request);
/// Enqueues the GEMM unless C is empty. Throws CublasFailure if the stream is not of `device`, the handle's
/// GPU, or memory is missing.
void enqueue(Runtime& runtime, int device, cudaStream_t stream, const Request& request);
/// The stream of that handle. Null is the default stream of `device`, that of the library's handle.
Stream& stream_for(Runtime& runtime, int device, cudaStream_t stream);

}  // namespace vgpu
