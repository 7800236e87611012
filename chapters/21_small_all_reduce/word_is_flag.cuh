// Chapter 21, every word is its own flag: the buffer is filled with a value that is never sent, so any other
// value has arrived. No bytes for flags, and 16 bytes at a time.
//
// Source: TensorRT-LLM's Lamport kernels (allReduceFusionKernels, "lamport"), where three buffers take turns.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>
#include <cuda/atomic>

#include "21_small_all_reduce/exchange.cuh"
#include "overlap/data/cost.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/peer_buffer.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/timeline.hpp"
#include "overlap/gpu/words.hpp"

namespace overlap::small_all_reduce {

/// Value of a word that has not arrived: -0.0 in f32; in 16 bits 0.0 in the low half and -0.0 in the high
/// one.
inline constexpr std::uint32_t kEmpty = 0x80000000;

/// A pack as words to send. A word equal to kEmpty is sent as 0: in f32, 0.0 instead of -0.0. So a zero sum
/// may have another sign than with one-shot; all other sums have the same bits.
template <typename T>
__device__ Words sendable(const Vector<T>& pack) {
  Words words;
  memcpy(&words, &pack, sizeof words);
  for (std::uint32_t& word : words.word) word = word == kEmpty ? 0 : word;
  return words;
}

/// The elements of received words.
template <typename T>
__device__ Vector<T> pack_of(const Words& words) {
  Vector<T> pack;
  memcpy(&pack, &words, sizeof pack);
  return pack;
}

/// Waits until all four words have arrived, and returns them; if the run is stopped, returns arbitrary words.
__device__ inline Words await_words(const Words* from, unsigned* stop) {
  const cuda::atomic_ref<unsigned, cuda::thread_scope_system> stopped(*stop);
  // [task await_words: a store of 16 bytes may be seen in parts: when have all of its words arrived?]
  // [blank] static_cast<void>(stopped);
  // [blank] const Words seen = load_relaxed(from);
  const auto come = [](const Words& words) {
    const auto& [a, b, c, d] = words.word;
    return (a != kEmpty) & (b != kEmpty) & (c != kEmpty) & (d != kEmpty);
  };
  Words seen = load_relaxed(from);
  for (unsigned looks = 1; !come(seen); ++looks) {
    if (looks % 4096 == 0 && stopped.load(cuda::memory_order_acquire) != 0) break;
    seen = load_relaxed(from);
  }
  // [/task]
  return seen;
}

/// The three sets of a rank's buffer: call e uses set e mod 3, and empties the set of call e - 1, which call
/// e + 2 uses.
struct Sets {
  std::uint32_t call;  ///< mod 3
  int ranks;
  std::int64_t packs;

  __device__ std::int64_t in_use(int from, std::int64_t i) const { return at(call, from, i); }
  // [task emptied: which set did the last call use?]
  // [blank] __device__ std::int64_t emptied(int from, std::int64_t i) const { return at(call, from, i); }
  __device__ std::int64_t emptied(int from, std::int64_t i) const { return at((call + 2) % 3, from, i); }
  // [/task]
  __device__ std::int64_t at(std::uint32_t set, int from, std::int64_t i) const {
    return (std::int64_t{set} * ranks + from) * packs + i;
  }
};

/// Sends this rank's pack `i` to all others, and empties the words that they sent in the last call.
template <typename T>
__device__ void send_pack(const OnRanks<Words>& received, const Sets& sets, std::int64_t i,
                          const Words& words) {
  for (int step = 1; step < sets.ranks; ++step) {
    const int peer = (received.rank + step) % sets.ranks;  // each rank starts with another peer
    store_relaxed(received.at[peer] + sets.in_use(received.rank, i), words);
  }
  for (int step = 1; step < sets.ranks; ++step) {
    const int peer = (received.rank + step) % sets.ranks;
    store_relaxed(received.own() + sets.emptied(peer, i), {{kEmpty, kEmpty, kEmpty, kEmpty}});
  }
}

/// The sum of all ranks' packs `i`; `own` is this rank's.
template <typename T>
__device__ Sum<Vector<T>> sum_of_packs(const OnRanks<Words>& received, const Sets& sets, std::int64_t i,
                                       const Words& own, unsigned* stop) {
  Sum<Vector<T>> total;
  for (int rank = 0; rank < sets.ranks; ++rank) {
    const Words words =
        rank == received.rank ? own : await_words(received.own() + sets.in_use(rank, i), stop);
    total.add(pack_of<T>(words));
  }
  return total;
}

/// `received`: [set][rank that sent][pack].
template <Floating T>
__global__ void word_is_flag(OnRanks<Words> received, CallNumber calls, const T* x, T* sum,
                             std::int64_t elements) {
  const std::uint32_t call = calls.read();
  const Sets sets = {call, received.count, packs_of<Vector<T>>(elements)};
  for (std::int64_t i = first_index(); i < sets.packs; i += stride())
    send_pack<T>(received, sets, i, sendable(load_pack<Vector<T>>(x, i, elements)));
  for (std::int64_t i = first_index(); i < sets.packs; i += stride()) {
    const Words own = sendable(load_pack<Vector<T>>(x, i, elements));
    store_pack(sum, i, elements, sum_of_packs<T>(received, sets, i, own, calls.stop).rounded());
  }
  calls.end(call);
}

/// sum[elements] = the sum of all ranks' x[elements], on every rank.
///
/// Why three sets: in call e a rank writes set e mod 3 of another rank, which the other rank emptied in its
/// call e - 2. The writer has ended call e - 1, so it has read words of call e - 1 from the other rank, which
/// sent them after its call e - 2 had ended.
template <Floating T>
class WordIsFlag {
 public:
  /// See OneShot. Throws Skip as flagged_elements() does.
  WordIsFlag(Rank& rank, std::int64_t elements, int set_aside = 0)
      : rank_(rank),
        elements_(elements),
        packs_(packs_of<Vector<T>>(flagged_elements<T>(rank, elements))),
        blocks_(blocks_for_work(rank, packs_, set_aside)),
        received_(rank, static_cast<std::size_t>(3 * rank.size() * packs_)),
        calls_(rank, 0, 3) {
    fill(rank, received_, {{kEmpty, kEmpty, kEmpty, kEmpty}});
    load_on_all_ranks(rank, word_is_flag<T>);
  }

  /// See OneShot.
  void run(const T* x, T* sum, cudaStream_t stream) {
    const TimelineScope name("word-is-flag all-reduce");
    word_is_flag<T>
        <<<blocks_, kThreads, 0, stream>>>(on_ranks(rank_, received_), calls_.number(), x, sum, elements_);
    CUDA_CHECK(cudaGetLastError());
  }

  /// Cost card of a rank's call.
  static Cost cost(std::int64_t elements, int ranks) {
    const std::int64_t bytes = packs_of<Vector<T>>(elements) * std::int64_t{sizeof(Words)};
    return {.bytes_out = (ranks - 1) * bytes,
            .bytes_in = (ranks - 1) * bytes,
            .launches = 1,
            .memory = 3 * ranks * bytes};
  }

 private:
  Rank& rank_;
  std::int64_t elements_, packs_;
  int blocks_;
  PeerBuffer<Words> received_;  // [call mod 3][rank][pack]
  CallCounter calls_;
};

}  // namespace overlap::small_all_reduce
