// Chapter 05: chapter 04's ring with its GEMMs on two alternating streams. The transfers are the same, but
// the GEMM of a step need not wait for the previous GEMM. As soon as the last wave of the previous GEMM
// leaves multiprocessors idle, the next GEMM begins on them:
//
//   stream:    multiply d            | multiply d+2          | multiply d+4 ...
//   second:        multiply d+1          | multiply d+3 ...
//   transfer:  push d  | push d+1  | push d+2 ...
//   waiting:   await d+1 | await d+2 | ... after each await an event, for which multiply waits
#pragma once

#include <cuda_runtime.h>

#include <vector>

#include "04_copy_engine/ring_push.cuh"
#include "overlap/gpu/gemm.hpp"

namespace overlap::two_streams {

/// C = A B by a ring of copy-engine pushes, with GEMMs on two streams. Rank r has A_r[m_r, k] and B_r[k,
/// n_r], and computes C_r[m, n_r], row-major, with m_r and n_r by balanced_share(); some may be 0. Sums are
/// in f32.
template <Floating T>
class RingTwoStreams {
 public:
  /// Collective. Allocates all memory of run(), and runs each of its GEMMs once. Throws as RingPush does.
  RingTwoStreams(Rank& rank, MatmulShape whole)
      : rank_(rank),
        ring_(rank, whole),
        columns_(balanced_share(whole.n, rank.size(), rank.id()).size()),
        k_(whole.k),
        second_done_(rank.device(), cudaEventDisableTiming) {
    for (int step = 1; step < rank.size(); ++step) here_.emplace_back(rank.device(), cudaEventDisableTiming);
    warm_up(whole.m);
  }

  /// Enqueues one call, which accesses a, b and c until it ends in `stream`. All ranks make the same calls
  /// in the same order. The next call may be enqueued at once, on a stream that is ordered after `stream`.
  void run(const T* a, const T* b, T* c, cudaStream_t stream) {
    const cudaStream_t second = rank_.second_stream();
    const bool two = rank_.size() > 1;  // one rank has one GEMM
    // ---- Fork: `stream` holds the producer of B and the last reader of C ----------------------------------
    ring_.begin(a, stream);
    if (two) {
      ring_.also_begin(second);
      ring_.also_begin(rank_.transfer_stream(1));
    }
    // ---- Steps: enqueue the GEMM first, because the GPU idles until the host has enqueued the first GEMM.
    // The push may be enqueued second, because it needs no multiprocessor.
    for (int step = 0; step < rank_.size(); ++step) {
      // [task steps: which stream multiplies the shard of this step, and what must that stream wait for?]
      const cudaStream_t on = step % 2 == 0 ? stream : second;
      multiply(step, await(step, on), b, c, on);
      ring_.push(step);
      // [/task]
    }
    // ---- Join: C is complete when both streams have finished. Wait for the transfers first: they finish
    // long before the last GEMM. (Measured on H200s, the other order of the two waits took as long.)
    ring_.end(stream);
    if (two) {
      CUDA_CHECK(cudaEventRecord(second_done_, second));
      CUDA_CHECK(cudaStreamWaitEvent(stream, second_done_));
    }
  }

  /// Messages, bytes, GEMMs and memory of one call on `rank` of `ranks`: those of chapter 04's ring.
  static Cost cost(MatmulShape whole, int ranks, int rank) {
    return copy_engine::RingPush<T>::cost_with_products(whole, ranks, rank);
  }

 private:
  /// The shard of this step, for later work in the stream `on`. Another stream awaits the signal and records
  /// an event: before a GEMM, waiting for an event costs less than waiting for a signal.
  const T* await(int step, cudaStream_t on) {
    if (step == 0) return ring_.await(step, on);  // the caller's own rows: nothing to wait for
    const cudaStream_t waiting = rank_.transfer_stream(1);
    const T* shard = ring_.await(step, waiting);
    CUDA_CHECK(cudaEventRecord(here_[step - 1], waiting));
    CUDA_CHECK(cudaStreamWaitEvent(on, here_[step - 1]));
    return shard;
  }

  /// Computes the rows of C that the shard of this step gives. Each stream has its own cuBLAS handle: with
  /// one handle for both, cuBLAS may choose another workspace in each run, and C's last bits may differ.
  void multiply(int step, const T* shard, const T* b, T* c, cudaStream_t on) {
    const TimelineScope name("step ", step, ": multiply shard ", ring_.shard(step));
    // [task ring_product: which rows of C does the shard of this step give, and which handle is free?]
    const Range rows = ring_.rows(step);
    matmul_row_major(rank_.cublas(step % 2), on, {rows.size(), columns_, k_}, shard, b,
                     c + rows.begin * columns_);
    // [/task]
  }

  /// Runs each step's GEMM on its stream and handle: see CopyEngineRing.
  void warm_up(std::int64_t m) {
    const cudaStream_t stream = rank_.stream(), second = rank_.second_stream();
    warm_up_parts<T>(rank_, {m, columns_, k_}, {stream, second}, [&](const T* a, const T* b, T* c) {
      for (int step = 0; step < rank_.size(); ++step)
        multiply(step, a, b, c, step % 2 == 0 ? stream : second);
    });
  }

  Rank& rank_;
  copy_engine::RingPush<T> ring_;
  std::int64_t columns_, k_;
  std::vector<Event> here_;  // the shards of steps 1, 2, ... have arrived
  Event second_done_;
};

}  // namespace overlap::two_streams
