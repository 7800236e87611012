// Chapter 06, what both overlapped algorithms share: a rank's product X W, cut by rows of the result into one
// chunk for each rank, on two alternating streams (as in chapter 05) or one after the other.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "06_reduce_scatter/vec16.cuh"
#include "overlap/data/cost.hpp"
#include "overlap/data/matrix.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/gemm.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/stream.hpp"
#include "overlap/gpu/timeline.hpp"

namespace overlap::reduce_scatter {

/// The rows of a result [m, n] by their owners. Chunk j belongs to rank j; the chunks differ by at most one
/// row.
struct Chunks {
  std::int64_t m;  ///< rows of the whole result
  std::int64_t n;  ///< its columns
  int ranks;       ///< owners

  /// How many chunks have rows: the GEMMs of a call.
  std::int64_t with_rows() const { return std::min<std::int64_t>(m, ranks); }
  /// The rows of chunk `owner` in the whole result.
  Range rows(int owner) const { return balanced_share(m, ranks, owner); }
  /// The elements of chunk `owner`.
  std::int64_t elements(int owner) const { return rows(owner).size() * n; }
  /// The elements of the largest chunk.
  std::int64_t max_elements() const { return elements(0); }
};

/// The products of one call, chunk by chunk. Out is the type in which they are stored: T, or f32.
template <Floating T, typename Out = T>
class ChunkProducts {
 public:
  /// For rank's columns of X and rows of W, of a problem of these sizes. Throws CudaError, CublasError.
  ChunkProducts(Rank& rank, MatmulShape whole)
      : rank_(rank),
        chunks_{whole.m, whole.n, rank.size()},
        k_(balanced_share(whole.k, rank.size(), rank.id()).size()),
        started_(rank.device(), cudaEventDisableTiming) {
    for (int step = 0; step < rank.size(); ++step) done_.emplace_back(rank.device(), cudaEventDisableTiming);
  }

  const Chunks& chunks() const { return chunks_; }  ///< whose rows are whose
  /// The rank's product, not cut.
  MatmulShape whole() const { return {chunks_.m, chunks_.n, k_}; }

  /// A new call: both compute streams start after what `stream` holds. One of them is `stream` itself; if
  /// each product fills the GPU, so is the other one.
  ///
  /// On two streams nobody knows which product gets the GPU first. If it is the second one, what the first
  /// one has to send has nothing left to hide behind: on 2 x H200 20 calls of 2048 x 4096 x 8192 at once took
  /// 142 us each (earlier runs), and 108 on one stream. So two streams are for products that leave
  /// multiprocessors idle.
  void begin(cudaStream_t stream) {
    compute_ = {stream, fills_gpu() ? stream : rank_.second_stream()};
    CUDA_CHECK(cudaEventRecord(started_, stream));
    if (compute_[1] != stream) CUDA_CHECK(cudaStreamWaitEvent(compute_[1], started_));
  }

  /// `stream` starts after what the stream of begin() held.
  void await_begin(cudaStream_t stream) { CUDA_CHECK(cudaStreamWaitEvent(stream, started_)); }

  /// Step `step` of this call: out = (rows of `chunk` of X) W. On two streams, see begin(), the blocks of the
  /// next GEMM fill the multiprocessors that the last wave of this one leaves idle.
  void multiply(int step, int chunk, const T* x, const T* w, Out* out) {
    const TimelineScope name("step ", step, ": multiply chunk ", chunk);
    const int turn = step % 2;
    product(rank_.cublas(turn), compute_[turn], chunk, x, w, out);
    CUDA_CHECK(cudaEventRecord(done_[step], compute_[turn]));
  }

  /// `stream` waits for the product of that step of this call.
  void await(int step, cudaStream_t stream) { CUDA_CHECK(cudaStreamWaitEvent(stream, done_[step])); }

  /// Runs every GEMM that a call can have, by each handle on its stream, and waits: a kernel must be loaded
  /// before any stream waits for a signal.
  void warm_up() {
    compute_ = {rank_.stream(), rank_.second_stream()};
    const auto once = [&](const T* x, const T* w, Out* out) {
      for (int turn = 0; turn < 2; ++turn) {
        for (int chunk = 0; chunk < chunks_.ranks; ++chunk)
          product(rank_.cublas(turn), compute_[turn], chunk, x, w, out);
        rank_.synchronize(compute_[turn]);  // all chunks are written to the same memory
      }
    };
    warm_up_parts<T, Out>(rank_, whole(), {compute_[0], compute_[1]}, once);
  }

 private:
  /// Whether the largest chunk has a tile for seven of eight multiprocessors, as cuBLAS cuts large products.
  bool fills_gpu() const {
    constexpr int kTileRows = 128, kTileColumns = 256;
    const auto tiles = [](std::int64_t size, int tile) { return (size + tile - 1) / tile; };
    return 8 * tiles(chunks_.rows(0).size(), kTileRows) * tiles(chunks_.n, kTileColumns) >=
           7 * multiprocessors(rank_.device());
  }
  void product(cublasHandle_t handle, cudaStream_t stream, int chunk, const T* x, const T* w, Out* out) {
    const Range rows = chunks_.rows(chunk);
    matmul_row_major(handle, stream, {rows.size(), chunks_.n, k_}, x + rows.begin * k_, w, out);
  }

  Rank& rank_;
  Chunks chunks_;
  std::int64_t k_;  // its share of the whole k
  std::array<cudaStream_t, 2> compute_ = {};
  Event started_;
  std::vector<Event> done_;  // by step
};

}  // namespace overlap::reduce_scatter
