// Chapter 21: what all rungs share: the number of the call, which the GPU itself counts; a buffer on every
// rank with a place for each rank; and how elements are read, added and written.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cuda/atomic>
#include <string>
#include <type_traits>
#include <vector>

#include "overlap/gpu/check.hpp"
#include "overlap/gpu/element.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/gpu/kernel_signals.hpp"
#include "overlap/gpu/peer_buffer.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/signals.hpp"
#include "overlap/gpu/stream.hpp"

namespace overlap::small_all_reduce {

inline constexpr int kMaxRanks = 16;    ///< that the kernels' parameters have room for
inline constexpr int kThreads = 512;    ///< of a block
inline constexpr int kMaxBlocks = 128;  ///< of a kernel: more gain nothing at these sizes

// ---- The number of the call ----------------------------------------------------------------------------

/// A decoder's step is captured into a graph once and replayed for every token. A number that the host counts
/// would be frozen in the graph, so this one lies on the GPU: all blocks read it when they begin, and the
/// last block that ends advances it.
struct CallNumber {
  std::uint32_t* number;   ///< of the call that runs, the same on all ranks
  unsigned* blocks_ended;  ///< blocks that have ended
  std::uint32_t period;    ///< numbers are 0 to period - 1; 0: all that 32 bits have
  unsigned* stop;          ///< Rank::abort_flag()

  /// Called by all threads before end().
  __device__ std::uint32_t read() const { return *number; }
  /// The end of a kernel, called by all threads with what they have read.
  __device__ void end(std::uint32_t call) const {
    // [task advance: who may advance the number, and when has nobody still to read it?]
    __syncthreads();  // every thread of this block has read it
    if (threadIdx.x != 0) return;
    const cuda::atomic_ref<unsigned, cuda::thread_scope_device> ended(*blocks_ended);
    if (ended.fetch_add(1, cuda::memory_order_acq_rel) + 1 < gridDim.x) return;
    ended.store(0, cuda::memory_order_relaxed);
    *number = call + 1 == period ? 0 : call + 1;
    // [/task]
  }
};

/// Its memory, on one rank.
class CallCounter {
 public:
  CallCounter(Rank& rank, std::uint32_t first, std::uint32_t period = 0)
      : rank_(rank), period_(period), memory_(rank.device(), 2) {
    const std::uint32_t values[] = {first, 0};
    CUDA_CHECK(
        cudaMemcpyAsync(memory_.data(), values, memory_.bytes(), cudaMemcpyHostToDevice, rank.stream()));
    rank.synchronize(rank.stream());
  }
  CallNumber number() const { return {memory_.data(), memory_.data() + 1, period_, rank_.abort_flag()}; }

 private:
  Rank& rank_;
  std::uint32_t period_;
  DeviceBuffer<std::uint32_t> memory_;
};

// ---- Memory that all ranks reach -----------------------------------------------------------------------

/// A buffer's address on each rank, as a kernel's parameter.
template <typename Value>
struct OnRanks {
  Value* at[kMaxRanks];
  int rank;   ///< whose kernel this is
  int count;  ///< P

  __device__ Value* own() const { return at[rank]; }
};

/// The addresses of the buffer, for a kernel of this rank.
template <typename Value>
OnRanks<Value> on_ranks(const Rank& rank, const PeerBuffer<Value>& buffer) {
  OnRanks<Value> all{};
  for (int i = 0; i < rank.size(); ++i) all.at[i] = buffer.on(i);
  all.rank = rank.id();
  all.count = rank.size();
  return all;
}

/// Collective: the whole buffer holds `value` before any rank uses it.
template <typename Value>
void fill(Rank& rank, const PeerBuffer<Value>& buffer, Value value) {
  const std::vector<Value> values(buffer.size(), value);
  CUDA_CHECK(
      cudaMemcpyAsync(buffer.local(), values.data(), buffer.bytes(), cudaMemcpyHostToDevice, rank.stream()));
  rank.synchronize(rank.stream());
  rank.barrier();
}

/// How many blocks a kernel has: as many as find work, at most kMaxBlocks, and all of them on multiprocessors
/// at once, beside `set_aside` that the caller leaves to other kernels that wait. Collective: the same number
/// on all ranks. Throws UsageError for more than kMaxRanks ranks, and as multiprocessors_left() does.
inline int blocks_for_work(Rank& rank, std::int64_t threads, int set_aside) {
  if (rank.size() > kMaxRanks) {
    throw UsageError("the kernel's parameters have room for " + std::to_string(kMaxRanks) +
                     " ranks, and there are " + std::to_string(rank.size()));
  }
  const std::int64_t useful = std::clamp<std::int64_t>((threads + kThreads - 1) / kThreads, 1, kMaxBlocks);
  return static_cast<int>(std::min<std::int64_t>(useful, multiprocessors_left(rank, set_aside)));
}

/// Bytes of elements, at most, that a rank sends in a call whose messages go to every other rank whole and
/// take their flags along: every rank has buffers of three times as many.
inline constexpr std::int64_t kMaxFlaggedBytes = 4 << 20;

/// `elements`, if they are no more than that. Throws Skip.
template <typename T>
std::int64_t flagged_elements(const Rank& rank, std::int64_t elements) {
  const std::int64_t sent = (rank.size() - 1) * elements * std::int64_t{sizeof(T)};
  if (sent <= kMaxFlaggedBytes) return elements;
  throw Skip("a rank would send " + std::to_string(sent >> 10) + " KiB, and it is for at most " +
             std::to_string(kMaxFlaggedBytes >> 10) + " KiB");
}

// ---- Elements ------------------------------------------------------------------------------------------

/// Neighbouring elements that are moved together.
template <typename T, int kBytes>
struct alignas(kBytes) Pack {
  static constexpr int kWidth = kBytes / static_cast<int>(sizeof(T));
  T values[kWidth];
};
/// What a thread loads or stores at once.
template <typename T>
using Vector = Pack<T, 16>;

/// Packs that `elements` fill, the last one perhaps in part.
template <typename AnyPack>
__host__ __device__ constexpr std::int64_t packs_of(std::int64_t elements) {
  return (elements + AnyPack::kWidth - 1) / AnyPack::kWidth;
}
/// How many whole packs can be moved at once from or to `x`; 0 if it is not aligned to their size.
template <typename AnyPack, typename T>
__host__ __device__ std::int64_t whole_packs(const T* x, std::int64_t elements) {
  return reinterpret_cast<std::uintptr_t>(x) % sizeof(AnyPack) == 0 ? elements / AnyPack::kWidth : 0;
}

/// Pack `i` of x; behind x's end it holds zeros.
template <typename AnyPack, typename T>
__device__ AnyPack load_pack(const T* x, std::int64_t i, std::int64_t elements) {
  if (i < whole_packs<AnyPack>(x, elements)) return reinterpret_cast<const AnyPack*>(x)[i];
  AnyPack pack;
  for (int j = 0; j < AnyPack::kWidth; ++j) {
    const std::int64_t at = i * AnyPack::kWidth + j;
    pack.values[j] = at < elements ? x[at] : static_cast<T>(0.0f);
  }
  return pack;
}
/// Writes it, but nothing behind x's end.
template <typename AnyPack, typename T>
__device__ void store_pack(T* x, std::int64_t i, std::int64_t elements, const AnyPack& pack) {
  if (i < whole_packs<AnyPack>(x, elements)) {
    reinterpret_cast<AnyPack*>(x)[i] = pack;
    return;
  }
  for (int j = 0; j < AnyPack::kWidth; ++j) {
    const std::int64_t at = i * AnyPack::kWidth + j;
    if (at < elements) x[at] = pack.values[j];
  }
}

/// Sums in f32 of the ranks' packs. They are added in the order of the ranks, on every rank: so all ranks get
/// the same bits.
template <typename AnyPack>
struct Sum {
  float of[AnyPack::kWidth];

  __device__ Sum() {
    for (float& value : of) value = -0.0f;  // -0.0 + x is x, also for x = -0.0
  }
  __device__ void add(const AnyPack& pack) {
    for (int j = 0; j < AnyPack::kWidth; ++j) of[j] += static_cast<float>(pack.values[j]);
  }
  /// Rounded once.
  __device__ AnyPack rounded() const {
    AnyPack pack;
    using T = std::remove_reference_t<decltype(pack.values[0])>;
    for (int j = 0; j < AnyPack::kWidth; ++j) pack.values[j] = static_cast<T>(of[j]);
    return pack;
  }
};

/// Where a thread begins in a loop over all packs, and in which steps it goes on. The same on all ranks: what
/// block b reads of another rank, block b of that rank has written.
__device__ inline std::int64_t first_index() { return std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; }
/// See first_index().
__device__ inline std::int64_t stride() { return std::int64_t{gridDim.x} * blockDim.x; }

// ---- A barrier between ranks ---------------------------------------------------------------------------

/// Words by which block b of each rank meets block b of all others: [rank that raises][block].
struct Meeting {
  OnRanks<std::uint32_t> words;
  unsigned* stop;  ///< Rank::abort_flag()

  /// Called by all threads of the block. What any block b has written before, all blocks b see behind it.
  __device__ void meet(std::uint32_t call) const {
    // [task meet: what must come before the signal, which thread awaits which rank, and what comes behind?]
    __syncthreads();
    if (static_cast<int>(threadIdx.x) < words.count) {
      const int peer = static_cast<int>(threadIdx.x);
      raise_signal(words.at[peer] + words.rank * gridDim.x + blockIdx.x, call);
      await_signal(words.own() + peer * gridDim.x + blockIdx.x, call, stop);
    }
    __syncthreads();
    // [/task]
  }
};

/// Its memory. Collective.
class MeetingPlace {
 public:
  MeetingPlace(Rank& rank, int blocks) : rank_(rank), words_(rank, std::size_t(rank.size() * blocks)) {
    fill(rank, words_, Signals::before_first);
  }
  Meeting meeting() const { return {on_ranks(rank_, words_), rank_.abort_flag()}; }

 private:
  Rank& rank_;
  PeerBuffer<std::uint32_t> words_;
};

/// The number of a new object's first call, where meetings tell calls apart by it.
inline std::uint32_t first_call() { return Signals::before_first + 1; }

}  // namespace overlap::small_all_reduce
