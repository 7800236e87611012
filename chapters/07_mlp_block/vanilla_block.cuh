// Chapter 07 (a): the block by tensor parallelism alone, as Megatron-LM has it. W1 is cut by columns and W2
// by rows, so that no data move between the two GEMMs: rank r's columns of act(N W1) are multiplied by its
// rows of W2. One all-reduce at the end adds the summands. Everything else (X, normalisation, residual) is on
// every rank, whole: the same work and the same memory P times.
//
// Source: Shoeybi et al., Megatron-LM: Training Multi-Billion Parameter Language Models Using Model
// Parallelism, 2019, section 3; "An illustrated deep-dive into how the compute and comms in TP+SP are
// overlapped using Async TP", its background section.
#pragma once

#include <cuda_runtime.h>

#include "07_mlp_block/mlp_kernels.cuh"
#include "overlap/data/cost.hpp"
#include "overlap/gpu/check_nccl.hpp"
#include "overlap/gpu/gemm.hpp"
#include "overlap/gpu/nccl_type.hpp"

namespace overlap::mlp_block {

/// Y = X + act(norm(X) W1) W2 with X[t, h] and Y[t, h] whole on every rank; rank r has W1[h, f_r] and
/// W2[f_r, h]. `whole` is {t, f, h}.
template <Floating T>
class VanillaBlock {
 public:
  /// Collective. Allocates all memory of run() and runs each GEMM and kernel once. Throws Skip if ranks share
  /// a GPU, CudaError, CublasError, NcclError.
  VanillaBlock(Rank& rank, MatmulShape whole)
      : rank_(rank),
        nccl_(rank.nccl()),
        whole_(whole),
        own_f_(balanced_share(whole.n, rank.size(), rank.id()).size()),
        normed_(rank.device(), whole.m * whole.k),
        hidden_(rank.device(), whole.m * own_f_),
        sum_(rank.device(), whole.m * whole.k) {
    warm_up_products<T>(rank, rank.cublas(), rank.stream(), {first(), second()});
    warm_up_mlp_kernels<T>(rank);
  }

  /// Enqueues one call on `stream`: x[t, h], y[t, h]. All ranks make the same calls in the same order.
  void run(const T* x, const MlpLayer<T>& layer, T* y, cudaStream_t stream) {
    const std::int64_t elements = whole_.m * whole_.k;
    // ---- Step 1: the rank's columns of act(N W1) --------------------------------------------------------
    normalise(x, layer.gain, normed_.data(), whole_.m, whole_.k, layer.epsilon, stream);
    matmul_row_major(rank_.cublas(), stream, first(), normed_.data(), layer.w1, hidden_.data());
    activate(hidden_.data(), whole_.m * own_f_, layer.activation, stream);
    // ---- Step 2: its summand of all of Y, and the sum over ranks ----------------------------------------
    matmul_row_major(rank_.cublas(), stream, second(), hidden_.data(), layer.w2, sum_.data());
    // [task all_reduce: what does each rank have now, and what does it want?]
    NCCL_CHECK(ncclAllReduce(sum_.data(), sum_.data(), elements, nccl_type<T>(), ncclSum, nccl_, stream));
    // [/task]
    add_residual(x, sum_.data(), y, elements, stream);
  }

  /// What a rank moves and keeps in one call. A ring all-reduce: each of P parts passes round the ring once
  /// to be summed, and once to be distributed. The page's cost card and the tests both come from here.
  static Cost cost(MatmulShape whole, int ranks, int rank) {
    const auto part = [&](int i) {
      return balanced_share(whole.m * whole.k, ranks, (i + ranks) % ranks).size();
    };
    const std::int64_t elements = whole.m * whole.k, size = sizeof(T);
    const std::int64_t own_f = balanced_share(whole.n, ranks, rank).size();
    const bool alone = ranks == 1;
    return {.messages = 2 * (ranks - 1),
            .bytes_out = alone ? 0 : (2 * elements - part(rank) - part(rank + 1)) * size,
            .bytes_in = alone ? 0 : (2 * elements - part(rank - 1) - part(rank)) * size,
            .products = own_f > 0 ? 2 : 1,
            .launches = own_f > 0 ? 3 : 2,
            .memory = (elements + whole.m * own_f) * size};
  }
  /// Bytes of X, norm(X) and Y, which normalisation and residual read and write. A network keeps them for
  /// each layer, all other memory once.
  static std::int64_t activation_bytes(MatmulShape whole) {
    return 3 * whole.m * whole.k * std::int64_t{sizeof(T)};
  }

 private:
  MatmulShape first() const { return {whole_.m, own_f_, whole_.k}; }
  MatmulShape second() const { return {whole_.m, whole_.k, own_f_}; }

  Rank& rank_;
  ncclComm_t nccl_;
  MatmulShape whole_;
  std::int64_t own_f_;
  DeviceBuffer<T> normed_, hidden_, sum_;
};

}  // namespace overlap::mlp_block
