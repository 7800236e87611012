// Chapter 04: copy engines push shards of A round the ring, ordered by signals. In step i rank d has shard (d
// + i) mod P, and pushes it to its left neighbour:
//
//   step   transfer stream of rank d                            whoever multiplies
//   0                  push own A  to slot 0 of d - 1, raise    reads own A
//   1      await 0,    push slot 0 to slot 1 of d - 1, raise    await 0, read slot 0
//   2      await 1,    push slot 1 to slot 2 of d - 1, raise    await 1, read slot 1
//   ...
//   P - 1                                                       await P - 2, read slot P - 2
//
// No multiprocessor is occupied, and no rank waits for a barrier, neither within a call nor between two.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "overlap/data/cost.hpp"
#include "overlap/data/matrix.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/element.hpp"
#include "overlap/gpu/peer_buffer.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/ring.hpp"
#include "overlap/gpu/signals.hpp"
#include "overlap/gpu/stream.hpp"
#include "overlap/gpu/timeline.hpp"

namespace overlap::copy_engine {

/// Passes the ranks' rows of A[m, k] round the ring, on the rank's transfer stream 0. A call is
///
///   begin(a, stream);
///   for (step = 0 ... P - 1)  { push(step);  use await(step, stream); }
///   end(stream);
///
/// The next call may follow at once, without a wait for the other ranks: see half_. All ranks make the same
/// calls in the same order, each call's `stream` after that of the call before it.
template <Floating T>
class RingPush {
 public:
  /// Collective. Allocates the slots, copies once. Throws as PeerBuffer and Signals do.
  RingPush(Rank& rank, MatmulShape whole)
      : rank_(rank),
        ring_(rank),
        whole_(whole),
        slot_elements_(slot_elements(whole, rank.size())),
        slots_(rank, 2 * (rank.size() - 1) * slot_elements_),
        arrived_(rank, std::max(1, rank.size() - 1)),
        ready_(rank.device(), cudaEventDisableTiming),
        done_(rank.device(), cudaEventDisableTiming) {
    if (rank.size() == 1) return;
    // The first copy may load a kernel (it does if the neighbour's slots are on this GPU), which must not
    // happen while a stream waits for a signal. From one half to the other: no rank reads the result.
    CUDA_CHECK(cudaMemsetAsync(slots_.local(), 0, slot_elements_ * sizeof(T), transfer()));
    CUDA_CHECK(cudaMemcpyAsync(slots_.on(rank.previous()) + (rank.size() - 1) * slot_elements_,
                               slots_.local(), slot_elements_ * sizeof(T), cudaMemcpyDefault, transfer()));
    rank.synchronize(transfer());
    rank.barrier();
  }

  /// A new call. Its transfers start after the work now in `stream`. `a`: this rank's rows of A; it belongs
  /// to the call until end().
  void begin(const T* a, cudaStream_t stream) {
    a_ = a;
    half_ = 1 - half_;
    arrived_.begin_call();
    if (rank_.size() == 1) return;
    CUDA_CHECK(cudaEventRecord(ready_, stream));
    CUDA_CHECK(cudaStreamWaitEvent(transfer(), ready_));
  }

  /// Work in `other` starts after begin()'s `stream`, too: for a caller that uses the shards on two streams.
  void also_begin(cudaStream_t other) { CUDA_CHECK(cudaStreamWaitEvent(other, ready_)); }

  /// Pushes the shard of this step to the left neighbour, for which it is the shard of step + 1. The last
  /// shard is not pushed: every rank has had it.
  void push(int step) {
    if (step == rank_.size() - 1) return;
    const TimelineScope name("step ", step, ": push shard ", shard(step));
    // [task push: what has to be here before the copy, and where does it go?]
    const T* from = await(step, transfer());
    const std::int64_t elements = rows(step).size() * whole_.k;
    if (elements > 0) {
      CUDA_CHECK(cudaMemcpyAsync(slot(rank_.previous(), step), from, elements * sizeof(T), cudaMemcpyDefault,
                                 transfer()));
    }
    // [/task]
    // Also after a shard without rows: the signal also says that this rank has finished its previous call.
    arrived_.raise(rank_.previous(), step, transfer());
  }

  /// The shard of this step, for later work in `stream`, which waits until the shard has arrived. Any number
  /// of streams may wait.
  const T* await(int step, cudaStream_t stream) {
    // [task await: where does the shard of a step lie, and what says that it is there?]
    // [blank] (void)stream; return a_;
    if (step == 0) return a_;  // in place: the caller's own rows
    arrived_.await(step - 1, stream);
    return slot(rank_.id(), step - 1);
    // [/task]
  }

  /// Ends the call: `stream` waits for its transfers.
  void end(cudaStream_t stream) {
    if (rank_.size() == 1) return;
    CUDA_CHECK(cudaEventRecord(done_, transfer()));
    CUDA_CHECK(cudaStreamWaitEvent(stream, done_));
  }

  /// The transfers alone: a whole call that does not use the shards.
  void run(const T* a, cudaStream_t stream) {
    begin(a, stream);
    for (int step = 0; step < rank_.size(); ++step) {
      push(step);
      await(step, stream);
    }
    end(stream);
  }

  /// The current shard of a step: first its own, then those of its right neighbours.
  int shard(int step) const { return ring_.shard(step); }
  /// The rows of A and of C in this step.
  Range rows(int step) const { return balanced_share(whole_.m, rank_.size(), shard(step)); }

  /// What `rank` of `ranks` moves in a call. A message is a copy to the left neighbour and the signal after
  /// it; all shards are sent but that neighbour's own. The page's cost card and the tests both come from
  /// here.
  static Cost cost(MatmulShape whole, int ranks, int rank) {
    const auto bytes = [&](int of) {
      return balanced_share(whole.m, ranks, of).size() * whole.k * std::int64_t{sizeof(T)};
    };
    const std::int64_t all = whole.m * whole.k * std::int64_t{sizeof(T)};
    return {.messages = ranks - 1,
            .bytes_out = all - bytes(Ring(rank, ranks).at(-1)),
            .bytes_in = all - bytes(rank),
            .memory = 2 * (ranks - 1) * slot_elements(whole, ranks) * std::int64_t{sizeof(T)}};
  }

  /// The same for an algorithm that multiplies each shard when it arrives: a GEMM for each shard with rows,
  /// if the rank has columns of B.
  static Cost cost_with_products(MatmulShape whole, int ranks, int rank) {
    Cost cost = RingPush::cost(whole, ranks, rank);
    if (!balanced_share(whole.n, ranks, rank).empty()) cost.products = std::min<std::int64_t>(whole.m, ranks);
    return cost;
  }

 private:
  /// Room for the largest shard, rounded up so that all slots are aligned as cudaMalloc aligns: cuBLAS
  /// chooses its kernels by the alignment, too.
  static std::int64_t slot_elements(MatmulShape whole, int ranks) {
    constexpr std::int64_t kAlignment = 256 / sizeof(T);
    return (balanced_share(whole.m, ranks, 0).size() * whole.k + kAlignment - 1) / kAlignment * kAlignment;
  }

  cudaStream_t transfer() { return rank_.transfer_stream(); }  // of high priority: copies precede GEMMs

  /// Where the shard of step i + 1 arrives on that rank.
  T* slot(int rank, int i) const {
    return slots_.on(rank) + (half_ * (rank_.size() - 1) + i) * slot_elements_;
  }

  Rank& rank_;
  Ring ring_;
  MatmulShape whole_;
  std::int64_t slot_elements_;
  PeerBuffer<T> slots_;  // [call mod 2][step - 1]
  Signals arrived_;      // one for each slot index, raised by the right neighbour
  Event ready_, done_;   // order the transfer stream after the caller's, and the other way round
  const T* a_ = nullptr;
  // Calls alternate between the two halves of the slots; two are enough. A call of rank d ends after its last
  // shard has arrived, that of rank d - 1, all the way round the ring. Rank d - 1 sent it after its previous
  // call, with all its reads of slots. So in its next call rank d may overwrite the slots that rank d - 1
  // read in that one.
  int half_ = 0;
};

}  // namespace overlap::copy_engine
