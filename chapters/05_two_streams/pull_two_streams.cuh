// Chapter 05: C = A B, where rank r has rows of A and columns of B, the way PyTorch's "async TP" computes it.
// Each rank publishes a copy of its shard of A in peer memory; after a barrier every rank d pulls the others'
// shards, d + 1, d + 2, ..., and multiplies each as soon as it has arrived. Shards alternate between two
// streams, a pull and its GEMM on each:
//
//   stream:  multiply d        | pull d+2 | multiply d+2 | pull d+4 ...
//   second:  pull d+1 | multiply d+1    | pull d+3 | multiply d+3 ...
//
// So a GEMM begins on the multiprocessors that the last wave of the previous GEMM leaves idle.
//
// Source: "An illustrated deep-dive into how the compute and comms in TP+SP are overlapped using Async TP",
// and PyTorch's _pipelined_multi_all_gather_and_consume, which this article prints.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "overlap/data/cost.hpp"
#include "overlap/data/matrix.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/gemm.hpp"
#include "overlap/gpu/peer_buffer.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/ring.hpp"
#include "overlap/gpu/signals.hpp"
#include "overlap/gpu/slots.hpp"
#include "overlap/gpu/stream.hpp"
#include "overlap/gpu/timeline.hpp"

namespace overlap::two_streams {

/// C = A B: rank r has A_r[m_r, k] and B_r[k, n_r] and computes C_r[m, n_r], row-major, with m_r and n_r by
/// balanced_share(); some may be 0. Sums are in f32.
template <Floating T>
class PullTwoStreams {
 public:
  /// Collective. Allocates all memory of run(), and runs each of its copies and GEMMs once. Throws as
  /// PeerBuffer and Signals do.
  PullTwoStreams(Rank& rank, MatmulShape whole)
      : rank_(rank),
        ring_(rank),
        whole_(whole),
        columns_(balanced_share(whole.n, rank.size(), rank.id()).size()),
        slot_elements_(slot_elements(whole, rank.size())),
        published_(rank, slot_elements_),
        slots_(rank.device(), (rank.size() - 1) * slot_elements_),
        signals_(rank, 2 * rank.size()),
        reached_(rank.device(), cudaEventDisableTiming),
        pulled_(rank.device(), cudaEventDisableTiming) {
    warm_up();
  }

  /// Enqueues one call, which accesses a, b and c until it ends in `stream`. All ranks make the same calls
  /// in the same order. The next call may be enqueued at once, on a stream that is ordered after `stream`.
  /// Each call has a barrier of the host threads, which waits for no GPU.
  void run(const T* a, const T* b, T* c, cudaStream_t stream) {
    if (rank_.size() == 1) return multiply(0, a, b, c, stream);
    signals_.begin_call();
    open(a, b, c, stream);
    pull_and_multiply(b, c, stream);
    close(stream);
  }

  /// Messages, bytes, GEMMs and memory of one call on `rank` of `ranks`. Messages are the pulls of the rank's
  /// shard by all others, none if the shard has no rows. Memory is the published shard and P - 1 slots.
  /// These are the values of the page's cost card.
  static Cost cost(MatmulShape whole, int ranks, int rank) {
    const std::int64_t element = sizeof(T), own = balanced_share(whole.m, ranks, rank).size() * whole.k;
    const bool has_columns = !balanced_share(whole.n, ranks, rank).empty();
    return {.messages = own > 0 ? ranks - 1 : 0,
            .bytes_out = (ranks - 1) * own * element,
            .bytes_in = (whole.m * whole.k - own) * element,
            .products = has_columns ? std::min<std::int64_t>(whole.m, ranks) : 0,
            .memory = ranks * slot_elements(whole, ranks) * element};
  }
  /// Bytes that a call copies on the rank's own GPU: the shard that it publishes.
  static std::int64_t bytes_published(MatmulShape whole, int ranks, int rank) {
    if (ranks == 1) return 0;
    return balanced_share(whole.m, ranks, rank).size() * whole.k * std::int64_t{sizeof(T)};
  }
  /// Signals that a rank raises in a call: two barriers, each with all others.
  static int signals(int ranks) { return 2 * (ranks - 1); }

 private:
  template <Floating>
  friend class PullWithOpening;  // 05/openings: the same steps, but for the opening

  // ---- Opening: publish the own shard, barrier, multiply the own shard ------------------------------------
  // The first GEMM needs neither the copy nor the barrier. PyTorch still enqueues both before it, which is
  // never the worst choice; 05/openings times the alternatives. After the opening the second stream is
  // ordered after the barrier and the caller's earlier work, not after the first GEMM, so it may pull and
  // write to C.
  void open(const T* a, const T* b, T* c, cudaStream_t stream) {
    // [task opening: in which order, and on which stream: copy, barrier, GEMM, and the fork?]
    publish(a, stream);
    meet(kPublished, stream);
    start_after(rank_.second_stream(), stream);
    multiply(0, a, b, c, stream);
    // [/task]
  }

  /// Copies the rank's shard to peer memory. Other ranks cannot access the caller's memory: only a PeerBuffer
  /// has an address on every GPU.
  void publish(const T* a, cudaStream_t stream) {
    const TimelineScope name("publish shard ", rank_.id());
    copy(published_.local(), a, 0, stream);
  }

  // ---- A barrier of all ranks, by signals -----------------------------------------------------------------
  // Later work in `stream`, on any rank, waits for earlier work in `stream` on all ranks. Each rank raises
  // P - 1 signals and waits for P - 1: each pair of ranks has a signal in each direction.
  void meet(int barrier, cudaStream_t stream) {
    for (int i = 1; i < rank_.size(); ++i) {
      signals_.raise(ring_.at(i), barrier * rank_.size() + rank_.id(), stream);
    }
    for (int i = 1; i < rank_.size(); ++i) {
      signals_.await(barrier * rank_.size() + ring_.at(i), stream);
    }
  }

  // ---- All other shards, alternately on the two streams ---------------------------------------------------
  void pull_and_multiply(const T* b, T* c, cudaStream_t stream) {
    // All pulls from a GPU are in one queue, in the order in which the hosts enqueued them (see PeerBuffer).
    // So enqueue a pull only when all work that the pull waits for has been enqueued. Otherwise the pull of a
    // rank that is a call ahead waits for a slower rank's signal, and blocks the slower rank's pulls.
    rank_.barrier();
    for (int step = 1; step < rank_.size(); ++step) {
      const cudaStream_t on = step % 2 == 0 ? stream : rank_.second_stream();
      pull(step, on);
      multiply(step, slot(step), b, c, on);
    }
  }

  // ---- Step i: pull shard d + i, multiply it --------------------------------------------------------------
  // Every rank begins with its right neighbour, and pulls from one rank at a time: while all ranks are in the
  // same step, no two of them pull from the same GPU. PyTorch's source assumes that copies on two streams do
  // not overlap; here the event pulled_ ensures this. Where the barrier is on the second stream (in
  // 05/openings), the event also orders pulls on the caller's stream after the barrier.
  void pull(int step, cudaStream_t stream) {
    const TimelineScope name("step ", step, ": pull shard ", shard(step));
    if (step > 1) CUDA_CHECK(cudaStreamWaitEvent(stream, pulled_));
    // [task pull: from which rank's memory, and into which slot?]
    copy(slot(step), published_.on(shard(step)), step, stream);
    // [/task]
    CUDA_CHECK(cudaEventRecord(pulled_, stream));
  }

  /// Computes the rows of C that the shard of this step gives. Each stream has its own cuBLAS handle: with
  /// one handle for both, cuBLAS may choose another workspace in each run, and C's last bits may differ.
  void multiply(int step, const T* shard_of_a, const T* b, T* c, cudaStream_t stream) {
    const TimelineScope name("step ", step, ": multiply shard ", shard(step));
    // [task multiply: which rows of C does the shard of this step give?]
    const Range rows = rows_of(step);
    matmul_row_major(rank_.cublas(step % 2), stream, {rows.size(), columns_, whole_.k}, shard_of_a, b,
                     c + rows.begin * columns_);
    // [/task]
  }

  // ---- Closing: join the streams, and a barrier after all pulls -------------------------------------------
  void close(cudaStream_t stream) {
    start_after(stream, rank_.second_stream());
    // The next call overwrites the shard that this one has published, so the others must have pulled it.
    // (PyTorch has a third barrier, before publishing, because other operations use the same memory. Here no
    // other operation uses the buffer.)
    meet(kPulled, stream);
  }

  /// Later work in `later` waits for the work now in `earlier`. One event is enough for all calls of this
  /// function: a wait refers to the last record that was enqueued before the wait.
  void start_after(cudaStream_t later, cudaStream_t earlier) {
    CUDA_CHECK(cudaEventRecord(reached_, earlier));
    CUDA_CHECK(cudaStreamWaitEvent(later, reached_));
  }

  /// Copies the shard of this step.
  void copy(T* to, const T* from, int step, cudaStream_t stream) {
    const std::int64_t elements = rows_of(step).size() * whole_.k;
    if (elements > 0) CUDA_CHECK(cudaMemcpyAsync(to, from, elements * sizeof(T), cudaMemcpyDefault, stream));
  }

  /// Runs all copies and GEMMs once, on the streams of run(): see CopyEngineRing of chapter 04.
  void warm_up() {
    const cudaStream_t stream = rank_.stream(), second = rank_.second_stream();
    const auto once = [&](const T* a, const T* b, T* c) {
      publish(a, stream);
      rank_.synchronize(stream);
      rank_.barrier();
      for (int step = 0; step < rank_.size(); ++step) {
        const cudaStream_t on = step % 2 == 0 ? stream : second;
        if (step > 0) pull(step, on);
        multiply(step, step == 0 ? a : slot(step), b, c, on);
      }
    };
    warm_up_parts<T>(rank_, {whole_.m, columns_, whole_.k}, {stream, second}, once);
    rank_.barrier();  // after all pulls
  }

  /// The shard of a step: first the rank's own, then those of its right neighbours.
  int shard(int step) const {
    // [task turn: which rank's shard, so that no two ranks pull from the same rank in a step?]
    // [blank] return step;
    return ring_.shard(step);
    // [/task]
  }
  /// The rows of A and of C in this step.
  Range rows_of(int step) const { return balanced_share(whole_.m, rank_.size(), shard(step)); }
  /// The slot into which the shard of a step is pulled, from step 1 on.
  T* slot(int step) const { return slots_.data() + (step - 1) * slot_elements_; }
  /// Room for the largest shard.
  static std::int64_t slot_elements(MatmulShape whole, int ranks) {
    return Slots<T>::pitch(balanced_share(whole.m, ranks, 0).size() * whole.k);
  }

  static constexpr int kPublished = 0, kPulled = 1;  // the barriers: signals 0 to P - 1, and P to 2 P - 1

  Rank& rank_;
  Ring ring_;
  MatmulShape whole_;
  std::int64_t columns_;
  std::int64_t slot_elements_;
  PeerBuffer<T> published_;  // the rank's shard in this call, for all ranks
  DeviceBuffer<T> slots_;    // pulled shards: step i fills slot i - 1
  Signals signals_;          // [barrier][raising rank]
  Event reached_, pulled_;
};

}  // namespace overlap::two_streams
