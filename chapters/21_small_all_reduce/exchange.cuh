// Chapter 21, shared by all variants: the call's number, counted by the GPU; a buffer's address on each
// rank; loads, sums and stores of elements; a barrier between ranks.
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
#include "overlap/gpu/launch.hpp"
#include "overlap/gpu/peer_buffer.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/signals.hpp"
#include "overlap/gpu/stream.hpp"

namespace overlap::small_all_reduce {

inline constexpr int kMaxRanks = 16;    ///< limit set by the size of the kernels' parameters
inline constexpr int kThreads = 512;    ///< of a block
inline constexpr int kMaxBlocks = 128;  ///< of a grid: more blocks do not help at these sizes

// ---- The number of the call ----------------------------------------------------------------------------

/// Number of the call, counted on the GPU. A decoder's step is captured into a graph once and replayed for
/// every token, so a number passed by the host would be frozen. All blocks read this number at their start,
/// and the last block that ends advances it.
struct CallNumber {
  std::uint32_t* number;  ///< of the running call, the same on all ranks
  unsigned* blocks_ended;
  std::uint32_t period;  ///< numbers wrap to 0 at this value; 0: they use all 32 bits
  unsigned* stop;        ///< Rank::abort_flag()

  /// Called by all threads before end().
  __device__ std::uint32_t read() const { return *number; }
  /// Called by all threads at the end of the kernel, with the number that they have read.
  __device__ void end(std::uint32_t call) const {
    // [task advance: which thread may advance the number, and when have all blocks read it?]
    __syncthreads();  // every thread of this block has read it
    if (threadIdx.x != 0) return;
    const cuda::atomic_ref<unsigned, cuda::thread_scope_device> ended(*blocks_ended);
    if (ended.fetch_add(1, cuda::memory_order_acq_rel) + 1 < gridDim.x) return;
    ended.store(0, cuda::memory_order_relaxed);
    *number = call + 1 == period ? 0 : call + 1;
    // [/task]
  }
};

/// Owns the CallNumber's memory on one rank.
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
  int rank;   ///< of this kernel
  int count;  ///< number of ranks, P

  __device__ Value* own() const { return at[rank]; }
};

/// The buffer's addresses, for a kernel of this rank.
template <typename Value>
OnRanks<Value> on_ranks(const Rank& rank, const PeerBuffer<Value>& buffer) {
  OnRanks<Value> all{};
  for (int i = 0; i < rank.size(); ++i) all.at[i] = buffer.on(i);
  all.rank = rank.id();
  all.count = rank.size();
  return all;
}

/// Collective: fills the rank's part of the buffer with `value`, then a barrier.
template <typename Value>
void fill(Rank& rank, const PeerBuffer<Value>& buffer, Value value) {
  const std::vector<Value> values(buffer.size(), value);
  CUDA_CHECK(
      cudaMemcpyAsync(buffer.local(), values.data(), buffer.bytes(), cudaMemcpyHostToDevice, rank.stream()));
  rank.synchronize(rank.stream());
  rank.barrier();
}

/// Collective, last in a constructor: loads the kernel, then a barrier. So no rank's kernel waits on a GPU
/// while another rank, which may share that GPU, still allocates, copies or loads.
template <typename... Parameters>
void load_on_all_ranks(Rank& rank, void (*kernel)(Parameters...)) {
  load_kernel(kernel);
  rank.barrier();
}

/// Collective: number of blocks of a kernel with work for `threads` threads, the same on all ranks. At most
/// kMaxBlocks, and no more than are resident at once if `set_aside` multiprocessors are left to other waiting
/// kernels. Throws UsageError for more than kMaxRanks ranks, and as multiprocessors_left() does.
inline int blocks_for_work(Rank& rank, std::int64_t threads, int set_aside) {
  if (rank.size() > kMaxRanks) {
    throw UsageError("the kernel's parameters have room for " + std::to_string(kMaxRanks) +
                     " ranks, and there are " + std::to_string(rank.size()));
  }
  const std::int64_t useful = std::clamp<std::int64_t>((threads + kThreads - 1) / kThreads, 1, kMaxBlocks);
  return static_cast<int>(std::min<std::int64_t>(useful, multiprocessors_left(rank, set_aside)));
}

/// Limit of the bytes of elements, flags not included, that a rank sends to all peers in one call of
/// FlagInData or WordIsFlag. With P ranks each rank's buffers take up to 4 P / (P - 1) times as much.
inline constexpr std::int64_t kMaxFlaggedBytes = 4 << 20;

/// Returns `elements`. Throws Skip if the rank would send more than kMaxFlaggedBytes.
template <typename T>
std::int64_t flagged_elements(const Rank& rank, std::int64_t elements) {
  const std::int64_t sent = (rank.size() - 1) * elements * std::int64_t{sizeof(T)};
  if (sent <= kMaxFlaggedBytes) return elements;
  throw Skip("a rank would send " + std::to_string(sent >> 10) + " KiB, and the limit is " +
             std::to_string(kMaxFlaggedBytes >> 10) + " KiB");
}

// ---- Elements ------------------------------------------------------------------------------------------

/// Neighbouring elements that one access moves.
template <typename T, int kBytes>
struct alignas(kBytes) Pack {
  static constexpr int kWidth = kBytes / static_cast<int>(sizeof(T));
  T values[kWidth];
};
/// A 16-byte pack: the widest load or store of a thread.
template <typename T>
using Vector = Pack<T, 16>;

/// Number of packs of `elements`, rounded up.
template <typename AnyPack>
__host__ __device__ constexpr std::int64_t packs_of(std::int64_t elements) {
  return (elements + AnyPack::kWidth - 1) / AnyPack::kWidth;
}
/// Number of whole packs of `x` that vector accesses can move; 0 if `x` is not aligned to a pack.
template <typename AnyPack, typename T>
__host__ __device__ std::int64_t whole_packs(const T* x, std::int64_t elements) {
  return reinterpret_cast<std::uintptr_t>(x) % sizeof(AnyPack) == 0 ? elements / AnyPack::kWidth : 0;
}

/// Loads pack `i` of x; elements behind x's end are 0.
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
/// Stores pack `i` of x, without elements behind x's end.
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

/// Sum of packs in f32. Every rank adds in the order of the ranks, so all ranks get the same bits.
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

/// First index of a thread in a grid-stride loop over packs. The same on all ranks, so block b reads what
/// block b of another rank has written.
__device__ inline std::int64_t first_index() { return std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; }
/// Stride of that loop.
__device__ inline std::int64_t stride() { return std::int64_t{gridDim.x} * blockDim.x; }

// ---- A barrier between ranks ---------------------------------------------------------------------------

/// Barrier of block b of all ranks. Words: [rank that raises][block].
struct Meeting {
  OnRanks<std::uint32_t> words;
  unsigned* stop;  ///< Rank::abort_flag()

  /// Called by all threads of the block. Writes of any rank's block b before the barrier are visible to all
  /// ranks' blocks b after it.
  __device__ void meet(std::uint32_t call) const {
    // [task meet: what must precede the signal, which thread awaits which rank, and what must follow?]
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

/// Owns a Meeting's memory. The constructor is collective.
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

/// Number of an object's first call, if Meeting or flags distinguish calls by number.
inline std::uint32_t first_call() { return Signals::before_first + 1; }

}  // namespace overlap::small_all_reduce
