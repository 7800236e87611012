// Experiment of chapter 21: chapter 07's block by tensor parallelism alone, whose second GEMM and all-reduce
// are this chapter's.
#pragma once

#include "07_mlp_block/mlp_kernels.cuh"
#include "overlap/data/cost.hpp"
#include "overlap/gpu/gemm.hpp"

namespace overlap::small_all_reduce {

/// Y = X + act(norm(X) W1) W2 with X[t, h] and Y[t, h] whole on every rank; rank r has W1[h, f_r] and
/// W2[f_r, h]. `whole` is {t, f, h}. `Second` is a GEMM with its all-reduce: GemmThen or SumInEpilogue.
template <Floating T, typename Second>
class SmallBlock {
 public:
  /// Collective. Throws as Second and cuBLAS do.
  SmallBlock(Rank& rank, MatmulShape whole)
      : rank_(rank),
        whole_(whole),
        own_f_(balanced_share(whole.n, rank.size(), rank.id()).size()),
        second_(rank, second_product(whole)),
        normed_(rank.device(), whole.m * whole.k),
        hidden_(rank.device(), whole.m * own_f_),
        sum_(rank.device(), whole.m * whole.k) {
    warm_up_products<T>(rank, rank.cublas(), rank.stream(), {first_product()});
    mlp_block::warm_up_mlp_kernels<T>(rank);
    rank.barrier();  // ranks may share a GPU: all load their kernels before any of them waits for words
  }

  /// Enqueues one call on `stream`: x[t, h], y[t, h]. All ranks make the same calls in the same order.
  void run(const T* x, const MlpLayer<T>& layer, T* y, cudaStream_t stream) {
    mlp_block::normalise(x, layer.gain, normed_.data(), whole_.m, whole_.k, layer.epsilon, stream);
    matmul_row_major(rank_.cublas(), stream, first_product(), normed_.data(), layer.w1, hidden_.data());
    mlp_block::activate(hidden_.data(), whole_.m * own_f_, layer.activation, stream);
    second_.run(hidden_.data(), layer.w2, sum_.data(), stream);
    mlp_block::add_residual(x, sum_.data(), y, whole_.m * whole_.k, stream);
  }

  /// Cost card of the second GEMM with its all-reduce, and of the steps before it.
  static Cost cost(MatmulShape whole, int ranks) {
    Cost cost = Second::cost(second_product(whole), ranks);
    cost.products += 1;
    cost.launches += 3;
    const std::int64_t own_f = balanced_share(whole.n, ranks, 0).size();
    cost.memory += (2 * whole.m * whole.k + whole.m * own_f) * std::int64_t{sizeof(T)};
    return cost;
  }

 private:
  MatmulShape first_product() const { return {whole_.m, own_f_, whole_.k}; }
  static MatmulShape second_product(MatmulShape whole) { return {whole.m, whole.k, whole.n}; }

  Rank& rank_;
  MatmulShape whole_;
  std::int64_t own_f_;
  Second second_;  // before the buffers: it may throw Skip
  DeviceBuffer<T> normed_, hidden_, sum_;
};

}  // namespace overlap::small_all_reduce
