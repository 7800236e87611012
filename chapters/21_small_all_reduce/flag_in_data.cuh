// Chapter 21, flag in the data: one 8-byte word holds 4 bytes of data and the number of the call. A reader
// that sees the number has the data: no barrier, no fence, and one trip over the link instead of two.
//
// Source: NCCL's LL protocol (src/device/prims_ll.h), which sends two such words in one 16-byte store.
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

namespace overlap::small_all_reduce {

/// Data in the low 4 bytes, the number of the call in the high ones. Stored and loaded by one access of
/// cuda::atomic_ref, which is atomic for 8 bytes on every GPU.
using Flagged = std::uint64_t;
/// The elements of a flagged word.
template <typename T>
using Word = Pack<T, 4>;

/// The flagged word of these data in this call.
template <typename T>
__device__ Flagged flagged(const Word<T>& data, std::uint32_t call) {
  std::uint32_t bits;
  memcpy(&bits, &data, sizeof bits);
  return Flagged{call} << 32 | bits;
}

/// Waits until the word has the number of this call, and returns its data; if the run is stopped, returns
/// arbitrary data.
template <typename T>
__device__ Word<T> await_word(Flagged* from, std::uint32_t call, unsigned* stop) {
  const cuda::atomic_ref<Flagged, cuda::thread_scope_system> word(*from);
  const cuda::atomic_ref<unsigned, cuda::thread_scope_system> stopped(*stop);
  // [task await_word: which part of the word shows that its data are those of this call?]
  // [blank] static_cast<void>(stopped);
  // [blank] const Flagged seen = word.load(cuda::memory_order_relaxed);
  Flagged seen = word.load(cuda::memory_order_relaxed);
  for (unsigned looks = 1; seen >> 32 != call; ++looks) {
    if (looks % 16384 == 0 && stopped.load(cuda::memory_order_acquire) != 0) break;
    seen = word.load(cuda::memory_order_relaxed);
  }
  // [/task]
  const auto bits = static_cast<std::uint32_t>(seen);
  Word<T> data;
  memcpy(&data, &bits, sizeof bits);
  return data;
}

/// `received`: [set][rank that sent][word].
template <Floating T>
__global__ void flag_in_data(OnRanks<Flagged> received, CallNumber calls, const T* x, T* sum,
                             std::int64_t elements) {
  const std::uint32_t call = calls.read();
  const int ranks = received.count, own = received.rank;
  const std::int64_t words = packs_of<Word<T>>(elements);
  const auto place = [&](int from, std::int64_t i) {
    return (std::int64_t{call % 2} * ranks + from) * words + i;
  };
  for (std::int64_t i = first_index(); i < words; i += stride()) {
    const Flagged word = flagged(load_pack<Word<T>>(x, i, elements), call);
    for (int step = 1; step < ranks; ++step) {
      const int peer = (own + step) % ranks;  // each rank starts with another peer
      // [task send: at which address is the word stored, and what must the store guarantee?]
      const cuda::atomic_ref<Flagged, cuda::thread_scope_system> to(received.at[peer][place(own, i)]);
      to.store(word, cuda::memory_order_relaxed);
      // [/task]
    }
  }
  for (std::int64_t i = first_index(); i < words; i += stride()) {
    Sum<Word<T>> total;
    for (int rank = 0; rank < ranks; ++rank) {
      total.add(rank == own ? load_pack<Word<T>>(x, i, elements)
                            : await_word<T>(received.own() + place(rank, i), call, calls.stop));
    }
    store_pack(sum, i, elements, total.rounded());
  }
  calls.end(call);
}

/// sum[elements] = the sum of all ranks' x[elements], on every rank. Two sets suffice, as in OneShot: a rank
/// that has ended call e - 1 has read a word of that call from every other rank.
template <Floating T>
class FlagInData {
 public:
  /// See OneShot. Throws Skip as flagged_elements() does.
  FlagInData(Rank& rank, std::int64_t elements, int set_aside = 0)
      : rank_(rank),
        elements_(elements),
        words_(packs_of<Word<T>>(flagged_elements<T>(rank, elements))),
        blocks_(blocks_for_work(rank, words_, set_aside)),
        received_(rank, static_cast<std::size_t>(2 * rank.size() * words_)),
        calls_(rank, first_call()) {
    // No call has this number, so no word counts as arrived.
    fill(rank, received_, Flagged{Signals::before_first} << 32);
    load_on_all_ranks(rank, flag_in_data<T>);
  }

  /// See OneShot.
  void run(const T* x, T* sum, cudaStream_t stream) {
    const TimelineScope name("flag-in-data all-reduce");
    flag_in_data<T>
        <<<blocks_, kThreads, 0, stream>>>(on_ranks(rank_, received_), calls_.number(), x, sum, elements_);
    CUDA_CHECK(cudaGetLastError());
  }

  /// Cost card of a rank's call.
  static Cost cost(std::int64_t elements, int ranks) {
    const std::int64_t bytes = packs_of<Word<T>>(elements) * std::int64_t{sizeof(Flagged)};
    return {.bytes_out = (ranks - 1) * bytes,
            .bytes_in = (ranks - 1) * bytes,
            .launches = 1,
            .memory = 2 * ranks * bytes};
  }

 private:
  Rank& rank_;
  std::int64_t elements_, words_;
  int blocks_;
  PeerBuffer<Flagged> received_;  // [call mod 2][rank][word]
  CallCounter calls_;
};

}  // namespace overlap::small_all_reduce
