// Chapter 19: the rank's GEMM by chapter 16's kernel alone, the baseline for the cost of sending and adding.
#pragma once

#include <cuda_runtime.h>

#include "16_tensor_core_gemm/tensor_core_gemm.cuh"
#include "19_fused_reduce_scatter/fused_reduce_scatter.cuh"
#include "overlap/gpu/stream.hpp"

namespace overlap::fused_reduce_scatter {

/// The rank's summand X_r W_r of C[m, n], by chapter 16's rung tma_store, into its own memory.
template <SixteenBit T>
class ProductAlone {
 public:
  /// Allocates C. Throws as TensorCoreGemm does.
  ProductAlone(Rank& rank, MatmulShape whole)
      : shape_(product_of(whole, rank.size(), rank.id())),
        c_(rank.device(), checked_elements(whole.m, whole.n, sizeof(T))),
        blocks_(Rung::blocks(tensor_core_gemm::tiling_of<Rung::Tile>(shape_),
                             tensor_core_gemm::multiprocessors_with_wgmma(rank))) {
    tensor_core_gemm::require_sizes(shape_);
    CUDA_CHECK(cudaFuncSetAttribute(Rung::kernel<T, Major::kMN>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    Rung::shared_bytes<T>()));
  }

  /// Enqueues the GEMM of x[m, k_r] and w[k_r, n].
  void run(const T* x, const T* w, cudaStream_t stream) {
    if (shape_.k == 0) return;
    Rung::launch<Major::kMN>(blocks_, x, w, c_.data(), shape_, stream);
    CUDA_CHECK(cudaGetLastError());
  }

 private:
  using Rung = tensor_core_gemm::StoredByTma<>;

  MatmulShape shape_;
  DeviceBuffer<T> c_;
  int blocks_;
};

}  // namespace overlap::fused_reduce_scatter
