// Chapter 03: the ring. A is gathered shard by shard, and a shard is multiplied while the next one is in
// transfer. Each rank sends the shard that it multiplies to its left neighbour. After P steps every rank has
// multiplied every shard, and no rank ever waits for all of A.
//
// Sources: "Collective matrix multiplication" (JAX, Pallas:MGPU), "Algorithm overview: Ring All-Gather", here
// with NCCL and cuBLAS instead of one kernel; Wang et al., "Overlap Communication with Dependent Computation
// via Decomposition in Large Deep Learning Models" (ASPLOS 2023).
#pragma once

#include <cuda_runtime.h>
#include <nccl.h>

#include <cstdint>
#include <vector>

#include "overlap/data/cost.hpp"
#include "overlap/data/matrix.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/check_nccl.hpp"
#include "overlap/gpu/gemm.hpp"
#include "overlap/gpu/nccl_type.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/stream.hpp"
#include "overlap/gpu/timeline.hpp"

namespace overlap::ring_all_gather {

/// The shard of A that `rank` multiplies in a step of the ring, 0 <= step < ranks: first its own, then the
/// shards that arrive from the right. In each step but the last, the rank also sends this shard to the left.
inline int shard_in_step(int rank, int ranks, int step) {
  // [task order: which shard does a rank hold, if all shards move one rank to the left in each step?]
  // [blank] return rank;
  return (rank + step) % ranks;
  // [/task]
}

/// The rank's columns of C in the rows of one shard: C[m_s, n_r] = A_s[m_s, k] B[k, n_r], where `c` is all of
/// C[m, n_r]. Enqueues one GEMM on `stream`; none if the shard has no rows or the rank has no columns.
template <Floating T>
void multiply_shard(Rank& rank, MatmulShape whole, int shard, const T* a_shard, const T* b, T* c,
                    cudaStream_t stream) {
  // [task product: which rows of C does a shard of A give, and where do they lie in memory?]
  const Range rows = balanced_share(whole.m, rank.size(), shard);
  const std::int64_t columns = balanced_share(whole.n, rank.size(), rank.id()).size();
  matmul_row_major(rank.cublas(), stream, {rows.size(), columns, whole.k}, a_shard, b,
                   c + rows.begin * columns);
  // [/task]
}

/// C = A B, where rank r has A[m_r, k] and B[k, n_r] and computes C[m, n_r], all row-major, with m_r and n_r
/// by balanced_share(). Sums are in f32. Transfers are NCCL's sends and receives on a stream of their own.
template <Floating T>
class RingAllGatherMatmul {
 public:
  /// Collective. Allocates the slots; then sends and multiplies once, because NCCL connects two neighbours at
  /// their first transfer, and CUDA loads a kernel at its first launch. Throws Skip if ranks share a GPU,
  /// CudaError if there is too little memory, NcclError if NCCL fails.
  RingAllGatherMatmul(Rank& rank, MatmulShape whole)
      : rank_(rank),
        whole_(whole),
        nccl_(rank.nccl()),
        transfers_(rank.transfer_stream()),
        started_(rank.device(), cudaEventDisableTiming) {
    for (int step = 1; step < rank.size(); ++step) {
      slots_.emplace_back(rank.device(), elements(step));
      arrived_.emplace_back(rank.device(), cudaEventDisableTiming);
    }
    const DeviceBuffer<T> a(rank.device(), elements(0));
    communicate(a.data(), rank.stream());
    rank.synchronize(transfers_);
    const std::int64_t columns = balanced_share(whole.n, rank.size(), rank.id()).size();
    const std::int64_t most = balanced_share(whole.m, rank.size(), 0).size();
    const std::int64_t least = balanced_share(whole.m, rank.size(), rank.size() - 1).size();
    warm_up_products<T>(rank, rank.cublas(), rank.stream(),
                        {{most, columns, whole.k}, {least, columns, whole.k}});
  }

  /// Enqueues one call and returns at once. `a` is the rank's shard [m_r, k], `b` its columns [k, n_r], `c`
  /// its result [m, n_r], all on its GPU. The call accesses them until `stream` has completed it. The next
  /// call may be enqueued at once, on the same stream.
  void run(const T* a, const T* b, T* c, cudaStream_t stream) {
    start_transfers_after(stream);
    for (int step = 0; step < rank_.size(); ++step) {
      // Enqueue the transfer first: once the GEMM occupies all multiprocessors, NCCL's kernel would have to
      // wait.
      if (step + 1 < rank_.size()) pass_on(step, a);
      if (step > 0) await_shard(step, stream);
      const int shard = shard_in_step(rank_.id(), rank_.size(), step);
      const TimelineScope name("step ", step, ": multiply shard ", shard);
      multiply_shard(rank_, whole_, shard, shard_at(step, a), b, c, stream);
    }
  }

  /// The transfers of a call without its GEMMs: to time the communication alone.
  void communicate(const T* a, cudaStream_t stream) {
    start_transfers_after(stream);
    for (int step = 0; step + 1 < rank_.size(); ++step) pass_on(step, a);
    if (rank_.size() > 1) await_shard(rank_.size() - 1, stream);
  }

  /// Messages, bytes, GEMMs and memory of one call on `rank` of `ranks`. The rank receives all of A but its
  /// own shard, and sends all but its left neighbour's. Shards without rows are neither sent nor multiplied.
  /// These are the values of the page's cost card.
  static Cost cost(MatmulShape whole, int ranks, int rank) {
    Cost cost;
    const bool has_columns = !balanced_share(whole.n, ranks, rank).empty();
    for (int step = 0; step < ranks; ++step) {
      const std::int64_t rows = balanced_share(whole.m, ranks, shard_in_step(rank, ranks, step)).size();
      if (rows == 0) continue;
      const std::int64_t bytes = rows * whole.k * static_cast<std::int64_t>(sizeof(T));
      if (has_columns) ++cost.products;
      if (step > 0) cost.bytes_in += bytes;
      if (step + 1 < ranks) ++cost.messages, cost.bytes_out += bytes;
    }
    cost.memory = cost.bytes_in;  // a slot for each shard that arrives
    return cost;
  }

 private:
  /// Elements of the shard of a step.
  std::int64_t elements(int step) const {
    const int shard = shard_in_step(rank_.id(), rank_.size(), step);
    return balanced_share(whole_.m, rank_.size(), shard).size() * whole_.k;
  }

  /// The slot that is filled in a step, with the next step's shard: each step has its own.
  T* slot(int step) const { return slots_[step].data(); }
  /// The shard that is multiplied in a step: the first one is the caller's, and is read in place.
  const T* shard_at(int step, const T* a) const { return step == 0 ? a : slot(step - 1); }

  // ---- Before the first step ------------------------------------------------------------------------------
  // The transfer stream must wait for work already in `stream`: the producer of A, and the previous call's
  // GEMMs, which still read the slots.
  void start_transfers_after(cudaStream_t stream) {
    CUDA_CHECK(cudaEventRecord(started_, stream));
    CUDA_CHECK(cudaStreamWaitEvent(transfers_, started_));
  }

  // ---- Every step but the last: send a shard to the left, receive the next one from the right -------------
  // After step 0 the shard to send was received in the previous step, on the same stream: stream order
  // suffices, and no event is needed.
  void pass_on(int step, const T* a) {
    const TimelineScope name("step ", step, ": pass shard ", shard_in_step(rank_.id(), rank_.size(), step));
    // [task transfer: which shard is sent and which is received, and how do all ranks avoid a deadlock?]
    const std::int64_t out = elements(step), in = elements(step + 1);
    // A send completes only when the peer has posted its receive. If every rank sent first, all would
    // deadlock; in a group both are issued together.
    NCCL_CHECK(ncclGroupStart());
    // A shard without rows is not sent; its receiver computes the same sizes and does not wait for it.
    if (out > 0)
      NCCL_CHECK(ncclSend(shard_at(step, a), out, nccl_type<T>(), rank_.previous(), nccl_, transfers_));
    if (in > 0) NCCL_CHECK(ncclRecv(slot(step), in, nccl_type<T>(), rank_.next(), nccl_, transfers_));
    NCCL_CHECK(ncclGroupEnd());
    // [/task]
    CUDA_CHECK(cudaEventRecord(arrived_[step], transfers_));
  }

  // ---- Every step but the first: the GEMM waits for its shard ---------------------------------------------
  // The last of these waits also orders the caller's later work after all transfers of this call.
  void await_shard(int step, cudaStream_t stream) {
    // [task wait: what must have completed before the GEMM of this step may read its shard?]
    CUDA_CHECK(cudaStreamWaitEvent(stream, arrived_[step - 1]));
    // [/task]
  }

  Rank& rank_;
  MatmulShape whole_;
  ncclComm_t nccl_;
  cudaStream_t transfers_;
  std::vector<DeviceBuffer<T>> slots_;  // slot i: the shard received in step i and multiplied in step i + 1
  std::vector<Event> arrived_;          // event i: the shard of slot i has arrived
  Event started_;
};

}  // namespace overlap::ring_all_gather
