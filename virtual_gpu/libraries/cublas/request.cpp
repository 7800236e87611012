#include "libraries/cublas/request.hpp"

#include <algorithm>

#include "libraries/cublas/call.hpp"

namespace vgpu {
namespace {

Element element(char name, cudaDataType type) {
  switch (type) {
    case CUDA_R_16F:
      return Element::kF16;
    case CUDA_R_16BF:
      return Element::kBf16;
    case CUDA_R_32F:
      return Element::kF32;
    case CUDA_R_64F:
      return Element::kF64;
  }
  not_supported("type " + std::to_string(type) + " of matrix " + name + " is not supported");
}

bool transposes(const char* name, cublasOperation_t operation) {
  if (operation == CUBLAS_OP_N) return false;
  if (operation == CUBLAS_OP_T || operation == CUBLAS_OP_C) return true;  // the conjugate of a real number
  invalid(std::string(name) + " is " + std::to_string(operation) + ", none of CUBLAS_OP_N, _T, _C");
}

/// A `rows` x `columns` matrix for each product.
Matrices matrices(char name, const Operand& operand, int rows, int columns) {
  if (operand.ld < std::max(1, rows)) {
    invalid(std::string("ld") + static_cast<char>(name + ('a' - 'A')) + " is " + std::to_string(operand.ld) +
            ", less than the " + std::to_string(rows) + " rows of " + name);
  }
  auto* data = static_cast<std::byte*>(const_cast<void*>(operand.data));
  return {name, data, element(name, operand.type), rows, columns, operand.ld, operand.stride};
}

}  // namespace

Stream& stream_for(Runtime& runtime, int device, cudaStream_t wanted) {
  Stream& stream = wanted == nullptr || wanted == cudaStreamLegacy ? runtime.device(device).default_stream()
                                                                   : runtime.stream(wanted);
  if (stream.device() != device)
    invalid("the handle belongs to " + gpu(device) + ", the stream is " + stream.name());
  return stream;
}

Product checked(const Request& r) {
  for (const auto& [name, size] : {std::pair{"m", r.m}, {"n", r.n}, {"k", r.k}, {"batchCount", r.batch}}) {
    if (size < 0) invalid(std::string(name) + " is " + std::to_string(size));
  }
  if (r.alpha == nullptr || r.beta == nullptr) invalid("alpha or beta is null");
  Product product{};
  product.transpose_a = transposes("transa", r.transpose_a);
  product.transpose_b = transposes("transb", r.transpose_b);
  product.m = r.m, product.n = r.n, product.k = r.k, product.batch = r.batch;
  const bool in_double = r.compute == CUBLAS_COMPUTE_64F;
  const auto factor = [&](const void* value) {
    return in_double ? *static_cast<const double*>(value) : *static_cast<const float*>(value);
  };
  product.alpha = factor(r.alpha);
  product.beta = factor(r.beta);
  product.a = matrices('A', r.a, product.transpose_a ? r.k : r.m, product.transpose_a ? r.m : r.k);
  product.b = matrices('B', r.b, product.transpose_b ? r.n : r.k, product.transpose_b ? r.k : r.n);
  product.c = matrices('C', r.c, r.m, r.n);
  if (product.a.type != product.b.type ||
      (product.c.type != product.a.type && product.c.type != Element::kF32) ||
      in_double != (product.c.type == Element::kF64)) {
    not_supported(std::string("A in ") + name_of(product.a.type) + ", B in " + name_of(product.b.type) +
                  ", C in " + name_of(product.c.type) + " is not supported");
  }
  if (r.compute != CUBLAS_COMPUTE_32F && r.compute != CUBLAS_COMPUTE_32F_PEDANTIC && !in_double)
    not_supported("compute type " + std::to_string(r.compute) + " is not supported");
  if (r.algorithm != CUBLAS_GEMM_DEFAULT && r.algorithm != CUBLAS_GEMM_DEFAULT_TENSOR_OP)
    not_supported("algorithm " + std::to_string(r.algorithm) + " is not supported");
  return product;
}

void enqueue(Runtime& runtime, int wanted_device, cudaStream_t wanted, const Request& request) {
  const Product product = checked(request);
  if (product.m == 0 || product.n == 0 || product.batch == 0) return;
  if (product.c.data == nullptr) invalid("C is null");
  if (product.reads_factors() && (product.a.data == nullptr || product.b.data == nullptr))
    invalid("A or B is null");
  Device& device = runtime.current_device();
  if (device.id() != wanted_device) {
    throw CublasFailure(CUBLAS_STATUS_EXECUTION_FAILED,
                        "the handle belongs to " + gpu(wanted_device) + ", but " + gpu(device.id()) +
                            " is current: cudaSetDevice comes before the call");
  }
  Stream& stream = stream_for(runtime, wanted_device, wanted);
  runtime.queues().enqueue(stream, std::make_unique<ProductOperation>(runtime, device, product));
}

}  // namespace vgpu
