// Chapter 07 (b): tensor and sequence parallelism, with NCCL and cuBLAS. The all-reduce is split into its two
// halves: a reduce-scatter after the second GEMM, and an all-gather before the first one. Between them each
// rank holds only its own tokens, and normalises and adds the residual only for those. The bytes are the
// same; the activations around the GEMMs are one P-th.
//
// Tokens that P does not divide: NCCL's all-gather and reduce-scatter take equal counts. So every rank has
// slots for as many tokens as the first rank, and the last row of a slot may be padding. Both GEMMs and the
// activation compute padding rows, too: a row of C depends on the same row of A only, so they never affect a
// token's row.
//
// Source: Korthikanti et al., Reducing Activation Recomputation in Large Transformer Models, 2022, section
// 4.2.2; the article named in vanilla_block.cuh.
#pragma once

#include <cuda_runtime.h>

#include "07_mlp_block/mlp_kernels.cuh"
#include "overlap/data/cost.hpp"
#include "overlap/gpu/check_nccl.hpp"
#include "overlap/gpu/gemm.hpp"
#include "overlap/gpu/nccl_type.hpp"

namespace overlap::mlp_block {

/// Y = X + act(norm(X) W1) W2, where rank r has X[t_r, h], W1[h, f_r] and W2[f_r, h], and gets Y[t_r, h].
/// `whole` is {t, f, h}.
template <Floating T>
class SequenceParallelBlock {
 public:
  /// Collective. Allocates all memory of run() and runs each GEMM and kernel once. Throws Skip if ranks share
  /// a GPU, CudaError, CublasError, NcclError.
  SequenceParallelBlock(Rank& rank, MatmulShape whole)
      : rank_(rank),
        nccl_(rank.nccl()),
        h_(whole.k),
        own_t_(balanced_share(whole.m, rank.size(), rank.id()).size()),
        own_f_(balanced_share(whole.n, rank.size(), rank.id()).size()),
        slot_(balanced_share(whole.m, rank.size(), 0).size()),
        normed_(rank.device(), slot_ * h_),
        gathered_(rank.device(), rank.size() * slot_ * h_),
        hidden_(rank.device(), rank.size() * slot_ * own_f_),
        sum_(rank.device(), slot_ * h_) {
    CUDA_CHECK(cudaMemsetAsync(normed_.data(), 0, normed_.bytes(), rank.stream()));  // the padding
    warm_up_products<T>(rank, rank.cublas(), rank.stream(), {first(), second()});
    warm_up_mlp_kernels<T>(rank);
  }

  /// Enqueues one call on `stream`: x[t_r, h], y[t_r, h]. All ranks make the same calls in the same order.
  void run(const T* x, const MlpLayer<T>& layer, T* y, cudaStream_t stream) {
    // ---- Step 1: normalise the own tokens, then gather all ranks' ---------------------------------------
    normalise(x, layer.gain, normed_.data(), own_t_, h_, layer.epsilon, stream);
    // [task all_gather: how many elements does each rank give?]
    NCCL_CHECK(ncclAllGather(normed_.data(), gathered_.data(), slot_ * h_, nccl_type<T>(), nccl_, stream));
    // [/task]

    // ---- Step 2: the two GEMMs, for all tokens ----------------------------------------------------------
    T* summand = gathered_.data();  // the gathered tokens are no longer needed
    matmul_row_major(rank_.cublas(), stream, first(), gathered_.data(), layer.w1, hidden_.data());
    activate(hidden_.data(), first().m * own_f_, layer.activation, stream);
    matmul_row_major(rank_.cublas(), stream, second(), hidden_.data(), layer.w2, summand);

    // ---- Step 3: all ranks' summands of the own tokens, and the residual --------------------------------
    // [task reduce_scatter: whose rows does this rank want, and from whom?]
    NCCL_CHECK(ncclReduceScatter(summand, sum_.data(), slot_ * h_, nccl_type<T>(), ncclSum, nccl_, stream));
    // [/task]
    add_residual(x, sum_.data(), y, own_t_ * h_, stream);
  }

  /// What a rank moves and keeps in one call. Rings of equal slots: each rank passes on all of them but one,
  /// twice. The page's cost card and the tests both come from here.
  static Cost cost(MatmulShape whole, int ranks, int rank) {
    const std::int64_t slot = balanced_share(whole.m, ranks, 0).size() * whole.k, size = sizeof(T);
    const std::int64_t own_t = balanced_share(whole.m, ranks, rank).size();
    const std::int64_t own_f = balanced_share(whole.n, ranks, rank).size();
    const std::int64_t hidden = ranks * balanced_share(whole.m, ranks, 0).size() * own_f;
    return {.messages = 2 * (ranks - 1),
            .bytes_out = 2 * (ranks - 1) * slot * size,
            .bytes_in = 2 * (ranks - 1) * slot * size,
            .products = own_f > 0 ? 2 : 1,
            .launches = (own_t > 0 ? 2 : 0) + (own_f > 0 ? 1 : 0),
            .memory = (slot + ranks * slot + hidden) * size};
  }
  /// Bytes of X, norm(X) and Y, which normalisation and residual read and write. A network keeps them for
  /// each layer, all other memory once.
  static std::int64_t activation_bytes(MatmulShape whole, int ranks, int rank) {
    return 3 * balanced_share(whole.m, ranks, rank).size() * whole.k * std::int64_t{sizeof(T)};
  }

 private:
  MatmulShape first() const { return {rank_.size() * slot_, own_f_, h_}; }
  MatmulShape second() const { return {rank_.size() * slot_, h_, own_f_}; }

  Rank& rank_;
  ncclComm_t nccl_;
  std::int64_t h_, own_t_, own_f_;
  std::int64_t slot_;  // tokens of the rank with the most
  DeviceBuffer<T> normed_, gathered_, hidden_, sum_;
};

}  // namespace overlap::mlp_block
