// Chapter 21, one-shot: every rank publishes its elements, signals, reads the elements of all ranks and adds
// them.
//
// Source: vLLM's custom_all_reduce.cuh (cross_device_reduce_1stage), TensorRT-LLM's customAllReduceKernels
// (ONESHOT), PyTorch's symm_mem one_shot_all_reduce.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "21_small_all_reduce/exchange.cuh"
#include "overlap/data/cost.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/peer_buffer.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/timeline.hpp"

namespace overlap::small_all_reduce {

/// How a rank knows that no rank still reads the buffer that it overwrites.
enum class Reuse {
  kExitBarrier,  ///< a barrier ends each call, after all ranks have read
  kTwoSets,      ///< calls alternate between two buffers
};

/// `published` has `set` packs per set. A block publishes the same packs that it reads on all ranks.
template <Floating T, Reuse kReuse>
__global__ void one_shot(OnRanks<Vector<T>> published, std::int64_t set, CallNumber calls, Meeting entry,
                         Meeting exit, const T* x, T* sum, std::int64_t elements) {
  const std::uint32_t call = calls.read();
  const std::int64_t packs = packs_of<Vector<T>>(elements);
  const std::int64_t begin = kReuse == Reuse::kTwoSets ? call % 2 * set : 0;
  for (std::int64_t i = first_index(); i < packs; i += stride())
    published.own()[begin + i] = load_pack<Vector<T>>(x, i, elements);
  entry.meet(call);
  // [task add: whose packs are added, and in which order?]
  for (std::int64_t i = first_index(); i < packs; i += stride()) {
    Sum<Vector<T>> total;
    for (int rank = 0; rank < published.count; ++rank) total.add(published.at[rank][begin + i]);
    store_pack(sum, i, elements, total.rounded());
  }
  // [/task]
  if constexpr (kReuse == Reuse::kExitBarrier) exit.meet(call);
  calls.end(call);
}

/// sum[elements] = the sum of all ranks' x[elements], on every rank.
///
/// Why two sets need no exit barrier: in call e a rank overwrites the set of call e - 2. The rank has ended
/// call e - 1, in which each of its blocks has seen every other rank's signal; the other rank raised that
/// signal after its call e - 2 had ended. So no rank still reads the set of call e - 2.
template <Floating T, Reuse kReuse = Reuse::kTwoSets>
class OneShot {
 public:
  /// Collective. For calls of `elements` elements. Leaves `set_aside` multiprocessors to other kernels that
  /// wait for other GPUs. Throws as blocks_for_work() and PeerBuffer do.
  OneShot(Rank& rank, std::int64_t elements, int set_aside = 0)
      : rank_(rank),
        elements_(elements),
        set_(packs_of<Vector<T>>(elements)),
        blocks_(blocks_for_work(rank, set_, set_aside)),
        published_(rank, static_cast<std::size_t>(2 * set_)),
        entry_(rank, blocks_),
        exit_(rank, blocks_),
        calls_(rank, first_call()) {
    load_on_all_ranks(rank, one_shot<T, kReuse>);
  }

  /// Enqueues one call on `stream`; it may be captured into a graph. All ranks make the same calls and
  /// replays in the same order, one stream at a time.
  void run(const T* x, T* sum, cudaStream_t stream) {
    const TimelineScope name("one-shot all-reduce");
    one_shot<T, kReuse><<<blocks_, kThreads, 0, stream>>>(on_ranks(rank_, published_), set_, calls_.number(),
                                                          entry_.meeting(), exit_.meeting(), x, sum,
                                                          elements_);
    CUDA_CHECK(cudaGetLastError());
  }

  /// Cost card of a rank's call. (Reads by other ranks count as bytes out.)
  static Cost cost(std::int64_t elements, int ranks) {
    const std::int64_t bytes = packs_of<Vector<T>>(elements) * std::int64_t{sizeof(Vector<T>)};
    return {.bytes_out = (ranks - 1) * bytes,
            .bytes_in = (ranks - 1) * bytes,
            .launches = 1,
            .memory = 2 * bytes};
  }

 private:
  Rank& rank_;
  std::int64_t elements_, set_;
  int blocks_;
  PeerBuffer<Vector<T>> published_;  // [call mod 2][pack]
  MeetingPlace entry_, exit_;
  CallCounter calls_;
};

}  // namespace overlap::small_all_reduce
