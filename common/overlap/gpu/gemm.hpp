// Row-major GEMMs by cuBLAS, whose matrices are column-major.
//
// A row-major matrix [rows, columns] with leading dimension ld, read column-major, is its transpose
// [columns, rows] with the same ld. So what cuBLAS is asked for is not C = A B but
//   C^T = (A B)^T = B^T A^T,
// in which each transpose is just the row-major matrix as it lies in memory: B goes in first, A second, m and
// n change places, and nothing is transposed. If A is to be taken transposed, cuBLAS sees A^T where it needs
// A, and transposes it.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "overlap/gpu/check_cublas.hpp"
#include "overlap/gpu/element.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/shape.hpp"
#include "overlap/gpu/stream.hpp"

namespace overlap {

/// Layout of an operand in memory: as the GEMM uses it, or transposed.
enum class Layout { kNormal, kTransposed };

/// Options of a GEMM beyond C = A B.
struct GemmOptions {
  float alpha = 1;             ///< C = alpha A B + beta C
  float beta = 0;              ///< 0: what C held is not read, so it may be NaN
  Layout a = Layout::kNormal;  ///< A[m, k], or A^T[k, m]
  Layout b = Layout::kNormal;  ///< B[k, n], or B^T[n, k]
};

namespace detail {

template <Floating T>
constexpr cudaDataType_t cuda_type() {
  if constexpr (std::same_as<T, __half>) return CUDA_R_16F;
  if constexpr (std::same_as<T, __nv_bfloat16>) return CUDA_R_16BF;
  if constexpr (std::same_as<T, float>) return CUDA_R_32F;
}

// A size as the int that cuBLAS takes. At least 1: cuBLAS requires that of a leading dimension, even of an
// empty matrix.
inline int gemm_size(const char* what, std::int64_t size, std::int64_t low = 0) {
  if (size < 0) throw std::invalid_argument(std::string("matmul_row_major: ") + what + " is negative");
  if (size > std::numeric_limits<int>::max()) {
    throw UsageError(std::string("a product with ") + what + " of " + std::to_string(size) +
                     " is too large for cuBLAS, which takes less than 2^31");
  }
  return static_cast<int>(std::max(size, low));
}

inline int leading_dimension(const char* what, std::int64_t ld, std::int64_t width) {
  if (ld < width) {
    throw std::invalid_argument(std::string("matmul_row_major: ") + what + " of " + std::to_string(ld) +
                                " is less than the row of " + std::to_string(width) + " elements");
  }
  return gemm_size(what, ld, 1);
}

}  // namespace detail

/// C[m, n] = alpha A[m, k] B[k, n] + beta C on `stream`, row-major, in f32 sums; lda, ldb and ldc are the
/// distances of two rows in elements. A transposed factor lies there as A^T[k, m] or B^T[n, k]. C has the
/// type of A and B, or f32. Only enqueues. If m or n is 0, nothing is enqueued; if k is 0, C becomes beta C.
/// `handle` belongs to the current device, and keeps the stream. (cublasSetStream() discards the user's
/// workspace, so it is called only if the handle has another stream.) Throws UsageError if a size or leading
/// dimension is 2^31 or more, std::invalid_argument if one is negative or a leading dimension is less than a
/// row, and CublasError.
template <Floating T, typename Out>
requires std::same_as<Out, T> || std::same_as<Out, float>
void matmul_row_major(cublasHandle_t handle, cudaStream_t stream, MatmulShape shape, const T* a,
                      std::int64_t lda, const T* b, std::int64_t ldb, Out* c, std::int64_t ldc,
                      const GemmOptions& options = {}) {
  const bool a_transposed = options.a == Layout::kTransposed;
  const bool b_transposed = options.b == Layout::kTransposed;
  const int m = detail::gemm_size("m", shape.m);
  const int n = detail::gemm_size("n", shape.n);
  const int k = detail::gemm_size("k", shape.k);
  const int a_ld = detail::leading_dimension("lda", lda, a_transposed ? m : k);
  const int b_ld = detail::leading_dimension("ldb", ldb, b_transposed ? k : n);
  const int c_ld = detail::leading_dimension("ldc", ldc, n);
  if (m == 0 || n == 0) return;

  cudaStream_t current = nullptr;
  CUBLAS_CHECK(cublasGetStream(handle, &current));
  if (current != stream) CUBLAS_CHECK(cublasSetStream(handle, stream));
  CUBLAS_CHECK(cublasGemmEx(handle, b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                            a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N, n, m, k, &options.alpha, b,
                            detail::cuda_type<T>(), b_ld, a, detail::cuda_type<T>(), a_ld, &options.beta, c,
                            detail::cuda_type<Out>(), c_ld, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
}

/// The same for dense matrices: each leading dimension is the row's length.
template <Floating T, typename Out>
requires std::same_as<Out, T> || std::same_as<Out, float>
void matmul_row_major(cublasHandle_t handle, cudaStream_t stream, MatmulShape shape, const T* a, const T* b,
                      Out* c, const GemmOptions& options = {}) {
  matmul_row_major(handle, stream, shape, a, options.a == Layout::kTransposed ? shape.m : shape.k, b,
                   options.b == Layout::kTransposed ? shape.k : shape.n, c, shape.n, options);
}

/// Warm-up: runs a GEMM of each of these shapes once on `stream` of the rank, on memory of its own, and waits
/// for it. Loading a kernel may wait for the whole GPU, for ever if one of its streams waits for a signal. So
/// every GEMM runs once before that: in an algorithm's constructor. Out is the type of C.
template <Floating T, typename Out = T>
void warm_up_products(Rank& rank, cublasHandle_t handle, cudaStream_t stream,
                      const std::vector<MatmulShape>& shapes, const GemmOptions& options = {}) {
  for (const MatmulShape shape : shapes) {
    if (shape.multiply_adds() == 0) continue;
    const DeviceBuffer<T> a(rank.device(), shape.m * shape.k), b(rank.device(), shape.k * shape.n);
    const DeviceBuffer<Out> c(rank.device(), shape.m * shape.n);
    CUDA_CHECK(cudaMemsetAsync(c.data(), 0, c.bytes(), stream));
    CUDA_CHECK(cudaMemsetAsync(a.data(), 0, a.bytes(), stream));
    CUDA_CHECK(cudaMemsetAsync(b.data(), 0, b.bytes(), stream));
    matmul_row_major(handle, stream, shape, a.data(), b.data(), c.data(), options);
    rank.synchronize(stream);
  }
}

/// The same for a GEMM that is split into parts: calls `multiply(a, b, c)`, which enqueues all of them, each
/// where it lies in A[m, k], B[k, n] and C[m, n] and on its own stream and handle, since cuBLAS chooses its
/// kernels by shape and alignment. A and B are zeros, all three are memory of its own. Then waits for
/// `streams`, of which the first is the rank's.
template <Floating T, typename Out = T, typename Multiply>
void warm_up_parts(Rank& rank, MatmulShape shape, const std::vector<cudaStream_t>& streams,
                   const Multiply& multiply) {
  const DeviceBuffer<T> a(rank.device(), shape.m * shape.k), b(rank.device(), shape.k * shape.n);
  const DeviceBuffer<Out> c(rank.device(), shape.m * shape.n);
  for (const DeviceBuffer<T>* factor : {&a, &b}) {
    if (factor->size() > 0) CUDA_CHECK(cudaMemsetAsync(factor->data(), 0, factor->bytes(), streams.front()));
  }
  rank.synchronize(streams.front());
  multiply(a.data(), b.data(), c.data());
  for (const cudaStream_t stream : streams) rank.synchronize(stream);
}

}  // namespace overlap
