// Chapter 16: the GEMM by cuBLASLt, with the fastest of the algorithms that its heuristic proposes.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "overlap/data/matrix.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/check_cublas.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/gpu/gemm.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/stream.hpp"

namespace overlap::tensor_core_gemm {

/// C[m, n] = A[m, k] B[k, n], row-major, in T with sums in f32, on the rank's columns. cublasGemmEx() guesses
/// the best algorithm; this class measures.
template <SixteenBit T>
class LibraryProduct {
 public:
  /// Times each proposed algorithm on temporary buffers and keeps the fastest. Throws CublasError.
  LibraryProduct(Rank& rank, MatmulShape whole)
      : shape_{whole.m, balanced_share(whole.n, rank.size(), rank.id()).size(), whole.k},
        workspace_(rank.device(), kWorkspaceBytes) {
    CUBLAS_CHECK(cublasLtCreate(&handle_));
    CUBLAS_CHECK(cublasLtMatmulDescCreate(&description_, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    // Column-major, all three are transposed: C^T = B^T A^T (gemm.hpp).
    b_ = layout(shape_.n, shape_.k);
    a_ = layout(shape_.k, shape_.m);
    c_ = layout(shape_.n, shape_.m);
    if (shape_.multiply_adds() > 0) choose(rank);
  }
  LibraryProduct(const LibraryProduct&) = delete;
  LibraryProduct& operator=(const LibraryProduct&) = delete;
  ~LibraryProduct() {
    for (cublasLtMatrixLayout_t* each : {&a_, &b_, &c_})
      static_cast<void>(cublasLtMatrixLayoutDestroy(*each));
    static_cast<void>(cublasLtMatmulDescDestroy(description_));
    static_cast<void>(cublasLtDestroy(handle_));
  }

  /// Enqueues the GEMM.
  void run(const T* a, const T* b, T* c, cudaStream_t stream) {
    if (shape_.multiply_adds() > 0) multiply(best_, a, b, c, stream);
  }

 private:
  static constexpr int kProposals = 16, kCalls = 5;
  static constexpr std::int64_t kWorkspaceBytes = std::int64_t{64} << 20;

  static cublasLtMatrixLayout_t layout(std::int64_t rows, std::int64_t columns) {
    cublasLtMatrixLayout_t made = nullptr;
    CUBLAS_CHECK(cublasLtMatrixLayoutCreate(&made, detail::cuda_type<T>(), static_cast<std::uint64_t>(rows),
                                            static_cast<std::uint64_t>(columns),
                                            std::max<std::int64_t>(rows, 1)));
    return made;
  }

  void multiply(const cublasLtMatmulAlgo_t& algorithm, const T* a, const T* b, T* c, cudaStream_t stream) {
    const float alpha = 1, beta = 0;
    CUBLAS_CHECK(cublasLtMatmul(handle_, description_, &alpha, b, b_, a, a_, &beta, c, c_, c, c_, &algorithm,
                                workspace_.data(), workspace_.bytes(), stream));
  }

  void choose(Rank& rank) {
    cublasLtMatmulPreference_t preference = nullptr;
    CUBLAS_CHECK(cublasLtMatmulPreferenceCreate(&preference));
    const std::uint64_t bytes = workspace_.bytes();
    CUBLAS_CHECK(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                      &bytes, sizeof bytes));
    cublasLtMatmulHeuristicResult_t proposed[kProposals];
    int count = 0;
    CUBLAS_CHECK(cublasLtMatmulAlgoGetHeuristic(handle_, description_, b_, a_, c_, c_, preference, kProposals,
                                                proposed, &count));
    CUBLAS_CHECK(cublasLtMatmulPreferenceDestroy(preference));
    // Not zeros: multiplying zeros draws less power, so clocks stay higher.
    const DeviceBuffer<T> a(rank.device(), shape_.m * shape_.k), b(rank.device(), shape_.k * shape_.n),
        c(rank.device(), shape_.m * shape_.n);
    CUDA_CHECK(cudaMemsetAsync(a.data(), 0x35, a.bytes(), rank.stream()));
    CUDA_CHECK(cudaMemsetAsync(b.data(), 0x2a, b.bytes(), rank.stream()));
    const Event start(rank.device()), stop(rank.device());
    float least = std::numeric_limits<float>::infinity();
    for (int i = 0; i < count; ++i) {
      if (proposed[i].state != CUBLAS_STATUS_SUCCESS) continue;
      multiply(proposed[i].algo, a.data(), b.data(), c.data(), rank.stream());  // loads the kernel
      CUDA_CHECK(cudaEventRecord(start, rank.stream()));
      for (int call = 0; call < kCalls; ++call)
        multiply(proposed[i].algo, a.data(), b.data(), c.data(), rank.stream());
      CUDA_CHECK(cudaEventRecord(stop, rank.stream()));
      rank.synchronize(rank.stream());
      float milliseconds = 0;
      CUDA_CHECK(cudaEventElapsedTime(&milliseconds, start, stop));
      if (milliseconds < least) {
        least = milliseconds;
        best_ = proposed[i].algo;
      }
    }
    if (least == std::numeric_limits<float>::infinity())
      throw Skip("cuBLASLt proposes no algorithm for this product");
  }

  MatmulShape shape_;
  DeviceBuffer<std::byte> workspace_;
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t description_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, c_ = nullptr;
  cublasLtMatmulAlgo_t best_{};
};

}  // namespace overlap::tensor_core_gemm
