// Chapter 21, two-shot: a reduce-scatter and an all-gather in one kernel. Each rank adds one part of the
// elements and sends the sum to all others: two steps, and 2 (P - 1) / P of the bytes instead of P - 1 times
// the bytes.
//
// Source: vLLM's custom_all_reduce.cuh (cross_device_reduce_2stage), PyTorch's symm_mem two_shot_all_reduce_.
// Both pull from other ranks; here each rank pushes, so a rank waits only for signals.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "21_small_all_reduce/exchange.cuh"
#include "overlap/data/cost.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/peer_buffer.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/timeline.hpp"

namespace overlap::small_all_reduce {

/// Split of the packs into one part per rank: all parts have the same size but the last ones, so block b
/// handles the same packs of each part on every rank.
struct Parts {
  std::int64_t packs;  ///< of all parts
  std::int64_t size;   ///< packs of a part

  __host__ __device__ Parts(std::int64_t all, int ranks) : packs(all), size((all + ranks - 1) / ranks) {}
  /// Packs of the rank's part; the last parts may have fewer or none.
  __host__ __device__ std::int64_t size_of(int rank) const {
    const std::int64_t left = packs - rank * size;
    return left < 0 ? 0 : left < size ? left : size;
  }
};

/// `received`: [set][rank that sent][pack of the part], `sums`: [set][part][pack].
template <Floating T>
__global__ void two_shot(OnRanks<Vector<T>> received, OnRanks<Vector<T>> sums, CallNumber calls,
                         Meeting scattered, Meeting gathered, const T* x, T* sum, std::int64_t elements) {
  const std::uint32_t call = calls.read();
  const int ranks = received.count, own = received.rank;
  const Parts parts(packs_of<Vector<T>>(elements), ranks);
  const auto place = [&](int part, std::int64_t i) {
    return (std::int64_t{call % 2} * ranks + part) * parts.size + i;
  };
  // ---- Reduce-scatter: pack i of each part to the rank that adds it ------------------------------------
  for (int part = 0; part < ranks; ++part) {
    for (std::int64_t i = first_index(); i < parts.size_of(part); i += stride())
      received.at[part][place(own, i)] = load_pack<Vector<T>>(x, part * parts.size + i, elements);
  }
  scattered.meet(call);
  // ---- Add this rank's part, and send the sum to all ranks ---------------------------------------------
  for (std::int64_t i = first_index(); i < parts.size_of(own); i += stride()) {
    // [task add_part: which packs are added, and where are the sums stored?]
    Sum<Vector<T>> total;
    for (int rank = 0; rank < ranks; ++rank) total.add(received.own()[place(rank, i)]);
    for (int rank = 0; rank < ranks; ++rank) sums.at[rank][place(own, i)] = total.rounded();
    // [/task]
  }
  gathered.meet(call);
  for (int part = 0; part < ranks; ++part) {
    for (std::int64_t i = first_index(); i < parts.size_of(part); i += stride())
      store_pack(sum, part * parts.size + i, elements, sums.own()[place(part, i)]);
  }
  calls.end(call);
}

/// sum[elements] = the sum of all ranks' x[elements], on every rank. Both buffers have two sets, see OneShot.
template <Floating T>
class TwoShot {
 public:
  /// See OneShot.
  TwoShot(Rank& rank, std::int64_t elements, int set_aside = 0)
      : rank_(rank),
        elements_(elements),
        parts_(packs_of<Vector<T>>(elements), rank.size()),
        blocks_(blocks_for_work(rank, parts_.size, set_aside)),
        received_(rank, static_cast<std::size_t>(2 * rank.size() * parts_.size)),
        sums_(rank, static_cast<std::size_t>(2 * rank.size() * parts_.size)),
        scattered_(rank, blocks_),
        gathered_(rank, blocks_),
        calls_(rank, first_call()) {
    load_on_all_ranks(rank, two_shot<T>);
  }

  /// See OneShot.
  void run(const T* x, T* sum, cudaStream_t stream) {
    const TimelineScope name("two-shot all-reduce");
    two_shot<T><<<blocks_, kThreads, 0, stream>>>(on_ranks(rank_, received_), on_ranks(rank_, sums_),
                                                  calls_.number(), scattered_.meeting(), gathered_.meeting(),
                                                  x, sum, elements_);
    CUDA_CHECK(cudaGetLastError());
  }

  /// Cost card of a call of rank 0, whose part is the largest.
  static Cost cost(std::int64_t elements, int ranks) {
    const Parts parts(packs_of<Vector<T>>(elements), ranks);
    const std::int64_t own = parts.size_of(0), pack = sizeof(Vector<T>);
    return {.bytes_out = (parts.packs - own + (ranks - 1) * own) * pack,
            .bytes_in = ((ranks - 1) * own + parts.packs - own) * pack,
            .launches = 1,
            .memory = 4 * ranks * parts.size * pack};
  }

 private:
  Rank& rank_;
  std::int64_t elements_;
  Parts parts_;
  int blocks_;
  PeerBuffer<Vector<T>> received_, sums_;
  MeetingPlace scattered_, gathered_;
  CallCounter calls_;
};

}  // namespace overlap::small_all_reduce
