// Chapter 04: C = A B, where rank r has rows of A and columns of B. Chapter 03's ring, with pushes by copy
// engine and signals instead of NCCL: while a rank multiplies its current shard, its copy engine pushes the
// same shard to the left neighbour, which takes no multiprocessor from the GEMM.
//
// Source: "An illustrated deep-dive into how the compute and comms in TP+SP are overlapped using Async TP"
// (D. Vega-Myhre), which pulls and uses barriers; the page beside this file explains why this pushes and
// needs none.
#pragma once

#include <cuda_runtime.h>

#include "04_copy_engine/ring_push.cuh"
#include "overlap/gpu/gemm.hpp"

namespace overlap::copy_engine {

/// C = A B by a ring of copy-engine pushes. Rank r has A_r[m_r, k] and B_r[k, n_r], and gets C_r[m, n_r],
/// with m_r and n_r by balanced_share(); some may be 0.
template <Floating T>
class CopyEngineRing {
 public:
  /// Collective. Allocates all memory of run(), and runs each of its GEMMs once. Throws as RingPush does.
  CopyEngineRing(Rank& rank, MatmulShape whole)
      : rank_(rank),
        ring_(rank, whole),
        columns_(balanced_share(whole.n, rank.size(), rank.id()).size()),
        k_(whole.k) {
    warm_up(whole.m);
  }

  /// Enqueues one call on `stream`; a, b and c belong to it until `stream` has completed it. All ranks make
  /// the same calls in the same order. Calls may follow each other at once, on streams that are ordered.
  void run(const T* a, const T* b, T* c, cudaStream_t stream) {
    ring_.begin(a, stream);
    for (int step = 0; step < rank_.size(); ++step) {
      ring_.push(step);  // first: the left neighbour waits for this shard
      multiply(step, ring_.await(step, stream), b, c, stream);
    }
    ring_.end(stream);
  }

  /// What `rank` of `ranks` moves and multiplies in a call.
  static Cost cost(MatmulShape whole, int ranks, int rank) {
    return RingPush<T>::cost_with_products(whole, ranks, rank);
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

  /// Runs each step's GEMM, so that cuBLAS chooses and loads the same kernels. Loading a kernel may wait for
  /// the whole GPU: if it were first launched while a stream waits for a signal, it might never start.
  void warm_up(std::int64_t m) {
    const cudaStream_t stream = rank_.stream();
    warm_up_parts<T>(rank_, {m, columns_, k_}, {stream}, [&](const T* a, const T* b, T* c) {
      for (int step = 0; step < rank_.size(); ++step) multiply(step, a, b, c, stream);
    });
  }

  Rank& rank_;
  RingPush<T> ring_;
  std::int64_t columns_, k_;
};

}  // namespace overlap::copy_engine
