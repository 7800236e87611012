// Chapter 04: C = A B, where rank r has rows of A and columns of B. Chapter 03's ring, with pushes by copy
// engine and signals instead of NCCL: while a rank multiplies the shard at hand, its copy engine passes the
// same shard on to the left neighbour, and not one multiprocessor is taken from the product.
//
// Source: "An illustrated deep-dive into how the compute and comms in TP+SP are overlapped using Async TP"
// (D. Vega-Myhre), which pulls and meets at barriers; the page beside this file says why this pushes and does
// not.
#pragma once

#include <cuda_runtime.h>

#include "04_copy_engine/ring_push.cuh"
#include "overlap/gpu/gemm.hpp"

namespace overlap {

/// C = A B by a ring of copy-engine pushes. Rank r has A_r[m_r, k] and B_r[k, n_r], and gets C_r[m, n_r],
/// with m_r and n_r by balanced_share(); some may be 0.
template <Floating T>
class CopyEngineRing {
 public:
  /// Collective. Allocates all that run() needs, and runs each of its products once. Throws as RingPush does.
  CopyEngineRing(Rank& rank, MatmulShape whole)
      : rank_(rank),
        ring_(rank, whole),
        columns_(balanced_share(whole.n, rank.size(), rank.id()).size()),
        k_(whole.k) {
    warm_up(whole);
  }

  /// Enqueues one call on `stream`; a, b and c belong to it until `stream` gets past it. All ranks make the
  /// same calls in the same order. Calls may follow each other at once, on streams that are ordered.
  void run(const T* a, const T* b, T* c, cudaStream_t stream) {
    ring_.begin(a, stream);
    for (int step = 0; step < rank_.size(); ++step) {
      ring_.push(step);  // first: the left neighbour waits for it
      multiply(step, ring_.await(step, stream), b, c, stream);
    }
    ring_.end(stream);
  }

  /// What `rank` of `ranks` moves in a call: the transfers are all there is.
  static RingPushCost cost(MatmulShape whole, int ranks, int rank) {
    return RingPush<T>::cost(whole, ranks, rank);
  }

 private:
  /// The rows of C that belong to the shard of this step.
  void multiply(int step, const T* shard, const T* b, T* c, cudaStream_t stream) {
    const TimelineScope name("step ", step, ": multiply shard ", ring_.shard(step));
    // [task multiply: which rows of C does the shard of this step give?]
    const Range rows = ring_.rows(step);
    matmul_row_major(rank_.cublas(), stream, {rows.size(), columns_, k_}, shard, b,
                     c + rows.begin * columns_);
    // [/task]
  }

  /// Each step's product, at the same places in a C of its own, so that cuBLAS chooses, and loads, the same
  /// kernels. A kernel that is first launched while a stream of this GPU waits for a signal may never start:
  /// loading it waits for the GPU.
  void warm_up(MatmulShape whole) {
    const std::int64_t most_rows = balanced_share(whole.m, rank_.size(), 0).size();
    if (columns_ == 0) return;
    const DeviceBuffer<T> shard(rank_.device(), most_rows * k_), b(rank_.device(), k_ * columns_);
    const DeviceBuffer<T> c(rank_.device(), whole.m * columns_);
    for (const DeviceBuffer<T>* factor : {&shard, &b})
      CUDA_CHECK(cudaMemsetAsync(factor->data(), 0, factor->bytes(), rank_.stream()));
    for (int step = 0; step < rank_.size(); ++step)
      multiply(step, shard.data(), b.data(), c.data(), rank_.stream());
    rank_.synchronize(rank_.stream());
  }

  Rank& rank_;
  RingPush<T> ring_;
  std::int64_t columns_, k_;
};

}  // namespace overlap
