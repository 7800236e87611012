// Chapter 21, the use of an all-reduce: after a GEMM whose k is split over the ranks (a row-parallel layer,
// as chapter 07's second one). Each rank's GEMM gives a summand of all of C.
#pragma once

#include <cuda_runtime.h>
#include <nccl.h>

#include <cstdint>

#include "overlap/data/cost.hpp"
#include "overlap/gpu/check_nccl.hpp"
#include "overlap/gpu/gemm.hpp"
#include "overlap/gpu/nccl_type.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/stream.hpp"
#include "overlap/gpu/timeline.hpp"

namespace overlap::small_all_reduce {

/// NCCL's all-reduce, for comparison.
template <Floating T>
class NcclAllReduce {
 public:
  /// Collective. Runs one call, in which NCCL connects the ranks. Throws Skip if ranks share a GPU.
  NcclAllReduce(Rank& rank, std::int64_t elements) : elements_(elements), nccl_(rank.nccl()) {
    const DeviceBuffer<T> x(rank.device(), static_cast<std::size_t>(elements));
    run(x.data(), x.data(), rank.stream());
    rank.synchronize(rank.stream());
  }

  void run(const T* x, T* sum, cudaStream_t stream) {
    const TimelineScope name("all-reduce");
    NCCL_CHECK(
        ncclAllReduce(x, sum, static_cast<std::size_t>(elements_), nccl_type<T>(), ncclSum, nccl_, stream));
  }

  /// Messages and bytes of a rank in one call by a ring, as NCCL counts them: see VanillaBlock in chapter 07.
  static Cost cost(std::int64_t elements, int ranks) {
    const std::int64_t parts = 2 * (elements - balanced_share(elements, ranks, ranks - 1).size());
    return {.messages = 2 * (ranks - 1),
            .bytes_out = ranks == 1 ? 0 : parts * std::int64_t{sizeof(T)},
            .bytes_in = ranks == 1 ? 0 : parts * std::int64_t{sizeof(T)}};
  }

 private:
  std::int64_t elements_;
  ncclComm_t nccl_;
};

/// C = A B on every rank, where rank r has A[m, k_r] and B[k_r, n], with k_r by balanced_share(): a GEMM by
/// cuBLAS, then AllReduce, one of this chapter's classes.
template <Floating T, typename AllReduce>
class GemmThen {
 public:
  /// Collective. Throws as AllReduce and cuBLAS do.
  GemmThen(Rank& rank, MatmulShape whole)
      : rank_(rank),
        product_{whole.m, whole.n, balanced_share(whole.k, rank.size(), rank.id()).size()},
        all_reduce_(rank, whole.m * whole.n),
        partial_(rank.device(), whole.m * whole.n) {
    warm_up_products<T>(rank, rank.cublas(), rank.stream(), {product_});
  }

  /// Enqueues one call on `stream`: a[m, k_r], b[k_r, n], c[m, n], all row-major on the rank's GPU.
  void run(const T* a, const T* b, T* c, cudaStream_t stream) {
    {
      const TimelineScope name("multiply");
      matmul_row_major(rank_.cublas(), stream, product_, a, b, partial_.data());
    }
    all_reduce_.run(partial_.data(), c, stream);
  }

  /// Cost card of the all-reduce and of the GEMM before it.
  static Cost cost(MatmulShape whole, int ranks) {
    Cost cost = AllReduce::cost(whole.m * whole.n, ranks);
    cost.products = 1;
    cost.memory += whole.m * whole.n * std::int64_t{sizeof(T)};
    return cost;
  }

 private:
  Rank& rank_;
  MatmulShape product_;
  AllReduce all_reduce_;     // first: it may throw Skip
  DeviceBuffer<T> partial_;  // [m, n]
};

}  // namespace overlap::small_all_reduce
