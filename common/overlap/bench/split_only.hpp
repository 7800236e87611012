// The GEMMs of a ring without its transfers, on all of A. Its loss against one whole GEMM is the cost of
// splitting; what the ring loses beyond that is the cost of the transfers.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <stdexcept>

#include "overlap/gpu/check.hpp"
#include "overlap/gpu/element.hpp"
#include "overlap/gpu/gemm.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/ring.hpp"
#include "overlap/gpu/stream.hpp"
#include "overlap/gpu/timeline.hpp"

namespace overlap {

/// C = A B as P products of the ranks' rows, in the ring's order, on one or on two alternating streams. A is
/// whole, which no rank has: this separates the cost of splitting from that of the transfers.
template <Floating T>
class SplitOnly {
 public:
  /// Runs each of its products once. `streams` is 1 or 2; throws std::invalid_argument otherwise, and
  /// CudaError.
  SplitOnly(Rank& rank, MatmulShape whole, int streams = 1)
      : rank_(rank),
        whole_(whole),
        columns_(balanced_share(whole.n, rank.size(), rank.id()).size()),
        streams_(streams),
        ready_(rank.device(), cudaEventDisableTiming),
        done_(rank.device(), cudaEventDisableTiming) {
    if (streams != 1 && streams != 2) throw std::invalid_argument("SplitOnly: one stream or two");
    warm_up_parts<T>(rank, {whole.m, columns_, whole.k}, {rank.stream()},
                     [&](const T* a, const T* b, T* c) { run(a, b, c, rank.stream()); });
  }

  /// Enqueues one call. `a`: all of A, [m, k]; `b`: this rank's columns, [k, n_r]; `c`: [m, n_r].
  void run(const T* a, const T* b, T* c, cudaStream_t stream) {
    const cudaStream_t streams[] = {stream, streams_ == 2 ? rank_.second_stream() : stream};
    if (streams_ == 2) {
      CUDA_CHECK(cudaEventRecord(ready_, stream));
      CUDA_CHECK(cudaStreamWaitEvent(streams[1], ready_));
    }
    for (int step = 0; step < rank_.size(); ++step) {
      const int shard = Ring(rank_).shard(step);
      const TimelineScope name("step ", step, ": multiply shard ", shard);
      const Range rows = balanced_share(whole_.m, rank_.size(), shard);
      const int turn = step % streams_;
      matmul_row_major(rank_.cublas(turn), streams[turn], {rows.size(), columns_, whole_.k},
                       a + rows.begin * whole_.k, b, c + rows.begin * columns_);
    }
    if (streams_ == 2) {
      CUDA_CHECK(cudaEventRecord(done_, streams[1]));
      CUDA_CHECK(cudaStreamWaitEvent(stream, done_));
    }
  }

 private:
  Rank& rank_;
  MatmulShape whole_;
  std::int64_t columns_;
  int streams_;
  Event ready_, done_;
};

}  // namespace overlap
