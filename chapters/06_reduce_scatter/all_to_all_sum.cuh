// Chapter 06 (c): C = X W by all-to-all and one sum. Each rank sends each chunk's partial product to its
// owner as soon as it is computed; the owner adds all partial products once, in the order of the ranks, in
// f32.
//
//   step         0        1        2        3 = own      P = 4: what rank d multiplies in each step
//   rank 0    chunk 1  chunk 2  chunk 3  chunk 0
//   rank 1    chunk 2  chunk 3  chunk 0  chunk 1
//   rank 2    chunk 3  chunk 0  chunk 1  chunk 2
//   rank 3    chunk 0  chunk 1  chunk 2  chunk 3
//
// Each column has every chunk once: in each step a rank sends to one rank and receives from one, so every
// link carries one transfer at a time in each direction.
//
// Source: PyTorch's _pipelined_produce_and_all2all, which pulls after barriers; this class pushes
// and signals instead.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "06_reduce_scatter/chunk_products.cuh"
#include "06_reduce_scatter/vec16.cuh"
#include "overlap/gpu/ring.hpp"
#include "overlap/gpu/signals.hpp"
#include "overlap/gpu/slots.hpp"

namespace overlap::reduce_scatter {

/// sum = slot 0 + slot 1 + ... + slot `count` - 1, each `place` elements after the one before, added in f32
/// in this order and rounded to T once. So the result does not depend on the order of arrival. The first
/// `vectors` vectors are added as vectors, the rest of the `elements` one by one.
template <Floating T>
__global__ void sum_slots(const T* __restrict__ slots, std::int64_t place, int count, T* __restrict__ sum,
                          std::int64_t elements, std::int64_t vectors) {
  constexpr int kWidth = kVec16Width<T>;
  const std::int64_t first = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::int64_t threads = std::int64_t{gridDim.x} * blockDim.x;
  // [task sum_slots: how does a thread add its vectors, and in which order and type?]
  for (std::int64_t i = first; i < vectors; i += threads) {
    float total[kWidth] = {};
#pragma unroll 4
    for (int slot = 0; slot < count; ++slot) {
      const Vec16<T, kWidth> part = reinterpret_cast<const Vec16<T, kWidth>*>(slots + slot * place)[i];
      for (int j = 0; j < kWidth; ++j) total[j] += static_cast<float>(part.values[j]);
    }
    Vec16<T, kWidth> rounded;
    for (int j = 0; j < kWidth; ++j) rounded.values[j] = static_cast<T>(total[j]);
    reinterpret_cast<Vec16<T, kWidth>*>(sum)[i] = rounded;
  }
  // [/task]
  for (std::int64_t i = vectors * kWidth + first; i < elements; i += threads) {
    float total = 0;
    for (int slot = 0; slot < count; ++slot) total += static_cast<float>(slots[slot * place + i]);
    sum[i] = static_cast<T>(total);
  }
}

/// Rows of C = X W: rank r has X[m, k_r] and W[k_r, n], and gets its rows of C[m, n]. Deterministic: equal in
/// all bits on every run. Each partial product is rounded to T once, and the sum once.
template <Floating T>
class AllToAllSum {
 public:
  /// Allocates everything and runs each product and kernel once. Collective. Throws CudaError, CublasError;
  /// Skip if two GPUs have no access to each other's memory.
  AllToAllSum(Rank& rank, MatmulShape whole)
      : rank_(rank),
        ring_(rank),
        products_(rank, whole),
        chunks_(products_.chunks()),
        max_blocks_(8 * multiprocessors(rank.device())),
        slots_(rank, rank.size(), chunks_.max_elements()),
        partials_(rank.device(), (rank.size() - 1) * slots_.pitch()),
        arrived_(rank, rank.size()),
        finished_(rank.device(), cudaEventDisableTiming) {
    products_.warm_up();
    sum_slots<T><<<1, 1, 0, rank.stream()>>>(slot(rank.id(), 0), 0, 0, partials_.data(), 0, 0);
    CUDA_CHECK(cudaGetLastError());
    rank.synchronize(rank.stream());
    rank.barrier();  // ranks may share a GPU: no stream waits for a signal before all ranks have warmed up
  }

  /// Enqueues one call: x[m, k_r], w[k_r, n], c[m_r, n], all row-major and dense, on this rank's GPU. Every
  /// rank makes the same calls in the same order; they may follow each other without a barrier.
  void run(const T* x, const T* w, T* c, cudaStream_t stream) {
    if (rank_.size() == 1) {
      matmul_row_major(rank_.cublas(), stream, products_.whole(), x, w, c);
      return;
    }
    products_.begin(stream);
    arrived_.begin_call();
    const int own = rank_.size() - 1;  // the last step
    for (int step = 0; step < own; ++step) {
      products_.multiply(step, owner(step), x, w, partial(step));
      products_.await(step, rank_.transfer_stream());
      push(step);
    }
    products_.multiply(own, rank_.id(), x, w, slot(rank_.id(), rank_.id()));
    await_slots();
    products_.await(own, rank_.transfer_stream());
    sum(c);
    join(stream);
  }

  /// One part of run() alone, to measure its cost: the GEMMs, split into chunks.
  void run_products(const T* x, const T* w, cudaStream_t stream) {
    products_.begin(stream);
    for (int step = 0; step < rank_.size(); ++step) {
      products_.multiply(step, owner(step), x, w,
                         step < rank_.size() - 1 ? partial(step) : slot(rank_.id(), 0));
    }
    for (int step = 0; step < rank_.size(); ++step) products_.await(step, stream);
  }

  /// One part of run() alone: the transfers. The contents of the buffers do not matter.
  void run_transfers(cudaStream_t stream) {
    if (rank_.size() == 1) return;
    products_.begin(stream);
    products_.await_begin(rank_.transfer_stream());
    arrived_.begin_call();
    for (int step = 0; step < rank_.size() - 1; ++step) push(step);
    await_slots();
    join(stream);
  }

  /// What `rank` of `ranks` moves and keeps in one call: it sends all chunks but its own, which all other
  /// ranks send to it. The page's cost card and the tests both come from here.
  static Cost cost(MatmulShape whole, int ranks, int rank) {
    const Chunks chunks{whole.m, whole.n, ranks};
    const std::int64_t own = chunks.elements(rank), element = sizeof(T);
    return {.messages = ranks - 1,
            .bytes_out = (whole.m * whole.n - own) * element,
            .bytes_in = (ranks - 1) * own * element,
            .products = chunks.with_rows(),
            .launches = ranks > 1 && own > 0 ? 1 : 0,
            .memory = Slots<T>::bytes(ranks, chunks.max_elements()) +
                      (ranks - 1) * Slots<T>::pitch(chunks.max_elements()) * element};
  }

 private:
  /// Whose chunk this rank multiplies in a step: first the next rank's, last its own.
  int owner(int step) const { return ring_.at(1 + step); }
  T* partial(int step) const { return partials_.data() + step * slots_.pitch(); }
  /// The slot of `source`'s summand of rank `at`'s rows, on that rank's GPU. Calls alternate between two sets
  /// of slots: a rank may be one call ahead of this one, which still reads the previous set. It is never two
  /// calls ahead, because in each call it waits for the data that this rank sends in that call.
  T* slot(int at, int source) const {
    // [task slot: which place has this source's summand, in this call?]
    // [blank] static_cast<void>(source);
    // [blank] return slots_.on(at, 0, 0);
    return slots_.on(at, source, arrived_.epoch());
    // [/task]
  }

  // ---- Step 1: a partial product to its owner, by copy engine, while the next one is multiplied --------
  void push(int step) {
    const cudaStream_t stream = rank_.transfer_stream();
    const int to = owner(step);
    const TimelineScope name("step ", step, ": push chunk ", to);
    // [task push: to which place on which rank, and what does the owner have to be told?]
    // [blank] arrived_.raise(to, rank_.id(), stream);
    const std::int64_t elements = chunks_.elements(to);
    if (elements > 0) {
      CUDA_CHECK(cudaMemcpyAsync(slot(to, rank_.id()), partial(step), elements * sizeof(T),
                                 cudaMemcpyDeviceToDevice, stream));
    }
    // An owner without rows gets the signal, too: these signals keep every rank from being two calls ahead.
    arrived_.raise(to, rank_.id(), stream);
    // [/task]
  }

  // ---- Step 2: wait for everybody's summands, in the order in which they are sent ----------------------
  void await_slots() {
    for (int back = 1; back < rank_.size(); ++back) {
      arrived_.await(ring_.at(-back), rank_.transfer_stream());
    }
  }

  // ---- Step 3: one sum ---------------------------------------------------------------------------------
  void sum(T* c) {
    const std::int64_t elements = chunks_.elements(rank_.id());
    if (elements == 0) return;
    const TimelineScope name("sum");
    const std::int64_t vectors = vectors_at(c, elements);
    sum_slots<<<add_blocks(vectors, elements, max_blocks_), kAddThreads, 0, rank_.transfer_stream()>>>(
        slot(rank_.id(), 0), slots_.pitch(), rank_.size(), c, elements, vectors);
    CUDA_CHECK(cudaGetLastError());
  }

  /// `stream` waits for the transfer stream, which has waited for all GEMMs of the call.
  void join(cudaStream_t stream) {
    CUDA_CHECK(cudaEventRecord(finished_, rank_.transfer_stream()));
    CUDA_CHECK(cudaStreamWaitEvent(stream, finished_));
  }

  Rank& rank_;
  Ring ring_;
  ChunkProducts<T> products_;
  Chunks chunks_;
  int max_blocks_;            // of the sum: as many threads as the GPU can hold
  Slots<T> slots_;            // by source
  DeviceBuffer<T> partials_;  // by step
  Signals arrived_;           // by source
  Event finished_;
};

}  // namespace overlap::reduce_scatter
