// Chapter 16: C = A B by our own kernel, on the tensor cores of Hopper.
//
// Source: the GEMM kernel that "AllGather GEMM" (Triton-distributed) and "Collective matmul" (JAX Pallas)
// both take as given; README.md says where this kernel differs from theirs, and why.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>

#include "16_tensor_core_gemm/one_stage.cuh"
#include "16_tensor_core_gemm/ring_of_stages.cuh"
#include "16_tensor_core_gemm/specialised.cuh"
#include "16_tensor_core_gemm/split_k.cuh"
#include "16_tensor_core_gemm/without_tma.cuh"
#include "overlap/data/cost.hpp"
#include "overlap/data/matrix.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/gpu/kernel_signals.hpp"
#include "overlap/gpu/ranks.hpp"

namespace overlap::tensor_core_gemm {

/// FLOPs and bytes of a GEMM, which a profiler sets against the kernel's time.
struct Work {
  std::int64_t flops;         ///< 2 m n k
  std::int64_t bytes;         ///< of A, B and C, each once: a lower bound of memory traffic
  std::int64_t loaded_bytes;  ///< into shared memory by all tiles, mostly from the L2 cache

  bool operator==(const Work&) const = default;
};

/// The work of a GEMM with this tile.
template <typename Tile>
constexpr Work work_of(MatmulShape shape) {
  const Tiling tiling = tiling_of<Tile>(shape);
  const std::int64_t element = 2;
  return {.flops = 2 * shape.m * shape.n * shape.k,
          .bytes = element * (shape.m * shape.k + shape.k * shape.n + shape.m * shape.n),
          .loaded_bytes =
              element * tiling.tiles() * tiling.along_k * std::int64_t{kSpan} * (Tile::kM + Tile::kN)};
}

/// Throws UsageError unless the rows of A[m, k], B[k, n] and C[m, n], of 16-bit elements, have a multiple of
/// 16 bytes (TMA needs it), and each matrix has less than 2^31 elements. `shares`, which the error's text
/// needs: number of parts into which each size of the whole GEMM is split.
inline void require_sizes(MatmulShape share, MatmulShape shares = {1, 1, 1}) {
  for (const auto& [option, columns, ranks] :
       {std::tuple{"--k", share.k, shares.k}, std::tuple{"--n", share.n, shares.n}}) {
    if (columns % 8 == 0) continue;
    throw UsageError(
        std::string(option) + ": rows of " + std::to_string(columns) +
        " elements of 16 bits are no multiple of 16 bytes, so TMA cannot step from one to the next; " +
        option + " must be a multiple of " + std::to_string(8 * ranks));
  }
  for (const std::int64_t elements : {share.m * share.k, share.k * share.n, share.m * share.n}) {
    if (elements < std::int64_t{1} << 31) continue;
    throw UsageError("a matrix of " + std::to_string(elements) +
                     " elements is too large: this kernel counts them in 31 bits");
  }
}

/// The GEMM of `rank` of `ranks`: all rows of A, and a share of B's columns.
inline MatmulShape share_of(MatmulShape whole, int ranks, int rank) {
  return {whole.m, balanced_share(whole.n, ranks, rank).size(), whole.k};
}

/// require_sizes() of every rank's share.
inline void require_all_sizes(MatmulShape whole, int ranks) {
  for (int rank = 0; rank < ranks; ++rank) require_sizes(share_of(whole, ranks, rank), {1, ranks, 1});
}

/// Multiprocessors of the rank's GPU. Throws Skip unless it has compute capability 9.0.
inline int multiprocessors_with_wgmma(Rank& rank) {
  int major = 0, minor = 0, multiprocessors = 0;
  CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, rank.device()));
  CUDA_CHECK(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, rank.device()));
  if (major != 9 || minor != 0) {
    throw Skip("wgmma needs compute capability 9.0 and no other; GPU " + std::to_string(rank.device()) +
               " has " + std::to_string(major) + "." + std::to_string(minor));
  }
  CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, rank.device()));
  return multiprocessors;
}

/// As multiprocessors_left(); also throws Skip as multiprocessors_with_wgmma() does.
inline int multiprocessors_to_wait_on(Rank& rank, int set_aside) {
  multiprocessors_with_wgmma(rank);
  return multiprocessors_left(rank, set_aside);
}

/// C = A B in T with sums in f32, by one kernel: `Rung` is one of WithoutTma, OneStage, RingOfStages,
/// Specialised, LargerTile, Persistent, StoredByTma and SplitK. A[m, k], B[k, n] (B[n, k] with Major::kK) and
/// C[m, n] are row-major. Each rank has all of A and a share of the columns of B and C, as in the chapters on
/// all-gather.
template <SixteenBit T, typename Rung, Major B = Major::kMN>
class TensorCoreGemm {
 public:
  /// For the rank's columns of the GEMM `whole`. Throws UsageError as require_sizes() does; Skip unless the
  /// GPU has compute capability 9.0.
  TensorCoreGemm(Rank& rank, MatmulShape whole) : shape_(share_of(whole, rank.size(), rank.id())) {
    require_sizes(shape_);
    blocks_ = Rung::blocks(tiling_of<typename Rung::Tile>(shape_), multiprocessors_with_wgmma(rank));
    // A block gets more than 48 KB of shared memory only on request.
    CUDA_CHECK(cudaFuncSetAttribute(Rung::template kernel<T, B>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    Rung::template shared_bytes<T>()));
  }

  /// Enqueues the GEMM. The pointers are aligned to 16 bytes, as those of cudaMalloc() are.
  void run(const T* a, const T* b, T* c, cudaStream_t stream) {
    if (shape_.m == 0 || shape_.n == 0) return;
    if (shape_.k == 0) {  // empty sums
      CUDA_CHECK(cudaMemsetAsync(c, 0, shape_.m * shape_.n * sizeof(T), stream));
      return;
    }
    Rung::template launch<B>(blocks_, a, b, c, shape_, stream);
    CUDA_CHECK(cudaGetLastError());
  }

  /// Cost card of a call.
  static Cost cost(MatmulShape share) {
    const bool any = share.m > 0 && share.n > 0;
    return {.launches = any && share.k > 0 ? 1 : 0};
  }

 private:
  MatmulShape shape_;
  int blocks_ = 0;
};

}  // namespace overlap::tensor_core_gemm
