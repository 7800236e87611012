// Chapter 07 (c): the block of sequence_block.cuh, with both collectives hidden behind the GEMMs: chapter
// 05's ring gathers the tokens while the first GEMM multiplies those that have arrived, and chapter 06's
// all-to-all sends the second GEMM's rows while it multiplies the next ones.
//
//   stream       normalise | products 0, 2, ...  | activate | products 0, 2, ...            | add X
//   second                 | products 1, 3, ...  |          | products 1, 3, ...            |
//   transfer               | shards to the left  |          | chunks to their owners, sum   |
//   waiting                | await their signals |          |                               |
//
// Only the activation is between the two halves: no barrier, no signal. The second GEMM reads this rank's own
// results. A rank that is ahead can write its chunks at once: their slots are free.
//
// Source: the article named in vanilla_block.cuh, whose PyTorch fuses the same two pairs of operations
// (fused_all_gather_matmul and fused_matmul_reduce_scatter).
#pragma once

#include <cuda_runtime.h>

#include "05_two_streams/ring_two_streams.cuh"
#include "06_reduce_scatter/all_to_all_sum.cuh"
#include "07_mlp_block/mlp_kernels.cuh"
#include "overlap/data/cost.hpp"

namespace overlap::mlp_block {

/// Y = X + act(norm(X) W1) W2, where rank r has X[t_r, h], W1[h, f_r] and W2[f_r, h], and gets Y[t_r, h].
/// `whole` is {t, f, h}. `Gather` gathers the tokens for the first GEMM, `Scatter` reduce-scatters the second
/// one's rows: any classes with such a constructor and run(a, b, c, stream).
template <Floating T, typename Gather = two_streams::RingTwoStreams<T>,
          typename Scatter = reduce_scatter::AllToAllSum<T>>
class OverlappedBlock {
 public:
  /// Collective. Allocates all memory of run() and runs each GEMM, copy and kernel once. Throws Skip if two
  /// GPUs have no access to each other's memory, CudaError, CublasError; and as both halves do.
  OverlappedBlock(Rank& rank, MatmulShape whole)
      : h_(whole.k),
        t_(whole.m),
        own_t_(balanced_share(whole.m, rank.size(), rank.id()).size()),
        own_f_(balanced_share(whole.n, rank.size(), rank.id()).size()),
        gather_(rank, whole),
        scatter_(rank, {whole.m, whole.k, whole.n}),
        normed_(rank.device(), own_t_ * h_),
        hidden_(rank.device(), t_ * own_f_),
        sum_(rank.device(), own_t_ * h_) {
    warm_up_mlp_kernels<T>(rank);
    rank.barrier();  // ranks may share a GPU: no stream waits for a signal before all ranks have loaded their
                     // kernels
  }

  /// Enqueues one call on `stream`: x[t_r, h], y[t_r, h]. All ranks make the same calls in the same order;
  /// they may follow each other without a barrier.
  void run(const T* x, const MlpLayer<T>& layer, T* y, cudaStream_t stream) {
    // ---- Step 1: normalise the own tokens; the first GEMM, of all ranks' tokens as they arrive ----------
    // [task first_half: what goes round the ring, and what is it multiplied by?]
    normalise(x, layer.gain, normed_.data(), own_t_, h_, layer.epsilon, stream);
    gather_.run(normed_.data(), layer.w1, hidden_.data(), stream);
    // [/task]

    // ---- Step 2: the activation, of this rank's own results ---------------------------------------------
    activate(hidden_.data(), t_ * own_f_, layer.activation, stream);

    // ---- Step 3: the second GEMM; each rank gets the sum for its tokens ---------------------------------
    // [task second_half: whose tokens are in the sum, and what is added to them?]
    scatter_.run(hidden_.data(), layer.w2, sum_.data(), stream);
    add_residual(x, sum_.data(), y, own_t_ * h_, stream);
    // [/task]
  }

  /// What a rank moves and keeps in one call: the two halves, and the memory beside them. The page's cost
  /// card and the tests both come from here.
  static Cost cost(MatmulShape whole, int ranks, int rank) {
    const std::int64_t size = sizeof(T);
    const std::int64_t own_t = balanced_share(whole.m, ranks, rank).size();
    const std::int64_t own_f = balanced_share(whole.n, ranks, rank).size();
    const Cost gather = Gather::cost(whole, ranks, rank);
    const Cost scatter = Scatter::cost(MatmulShape{whole.m, whole.k, whole.n}, ranks, rank);
    return {.messages = gather.messages + scatter.messages,
            .bytes_out = gather.bytes_out + scatter.bytes_out,
            .bytes_in = gather.bytes_in + scatter.bytes_in,
            .products = gather.products + scatter.products,
            .launches = (own_t > 0 ? 2 : 0) + (own_f > 0 ? 1 : 0) + gather.launches + scatter.launches,
            .memory = (own_t * whole.k + whole.m * own_f) * size + gather.memory + scatter.memory};
  }
  /// Bytes of X, norm(X) and Y, which normalisation and residual read and write. A network keeps them for
  /// each layer, all other memory once.
  static std::int64_t activation_bytes(MatmulShape whole, int ranks, int rank) {
    return 3 * balanced_share(whole.m, ranks, rank).size() * whole.k * std::int64_t{sizeof(T)};
  }

 private:
  std::int64_t h_, t_, own_t_, own_f_;
  Gather gather_;    // X[t, h] W1[h, f]
  Scatter scatter_;  // H[t, f] W2[f, h]
  DeviceBuffer<T> normed_, hidden_, sum_;
};

}  // namespace overlap::mlp_block
