// Signals as kernels raise and await them, and what a kernel needs that waits for other GPUs: all of its
// blocks on multiprocessors at the same time. Chapter 17 explains both.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cuda/atomic>
#include <string>

#include "overlap/gpu/check.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/gpu/ranks.hpp"

namespace overlap {

/// Whether a word that grows, and may overflow, has reached `value`: as cuStreamWaitValue32 compares.
__host__ __device__ constexpr bool has_reached(std::uint32_t word, std::uint32_t value) {
  return static_cast<std::int32_t>(word - value) >= 0;
}

/// Called by one thread: returns once the signal has reached `value`; what its raiser wrote before is then
/// seen by this thread's ordinary loads, but by TMA only behind a fence.proxy.async. Also returns when `stop`
/// (Rank::abort_flag()) says that the run is over: what the kernel computes from there on means nothing.
__device__ inline void await_signal(std::uint32_t* word, std::uint32_t value, unsigned* stop) {
  // Another GPU writes the word: with a scope below system, loads might be served by this GPU's cache.
  const cuda::atomic_ref<std::uint32_t, cuda::thread_scope_system> signal(*word);
  const cuda::atomic_ref<unsigned, cuda::thread_scope_system> stopped(*stop);
  // The stop lies in the host's memory. Many reads of that slow down NCCL and signals (chapter 20 has the
  // times): it is looked at every ten milliseconds. (Virtual GPUs take a thread for one that waits once it
  // has looked at one word a thousand times in a row.)
  for (unsigned looks = 1; !has_reached(signal.load(cuda::memory_order_acquire), value); ++looks) {
    if (looks % 16384 == 0 && stopped.load(cuda::memory_order_acquire) != 0) return;
  }
}

/// Called by one thread: raises the signal to `value`, behind all that this thread has written, and what it
/// has seen of others' writes; of the other threads' only what a barrier has ordered before.
__device__ inline void raise_signal(std::uint32_t* word, std::uint32_t value) {
  const cuda::atomic_ref<std::uint32_t, cuda::thread_scope_system> signal(*word);
  signal.store(value, cuda::memory_order_release);
}

/// Collective; `peer` may differ from rank to rank. Throws Skip unless kernels on the rank's GPU can read and
/// write a word of that rank's in one access, as fetch_add() and the additions of TMA do: NVLink can, PCI
/// Express need not, and says so by nothing but this attribute.
inline void require_native_atomics(Rank& rank, int peer) {
  const int own = rank.device(), other = rank.exchange(own)[static_cast<std::size_t>(peer)];
  if (own == other) return;
  int supported = 0;
  CUDA_CHECK(cudaDeviceGetP2PAttribute(&supported, cudaDevP2PAttrNativeAtomicSupported, own, other));
  if (supported != 0) return;
  throw Skip("the kernel adds to words of other GPUs, and GPU " + std::to_string(own) +
             " has no native atomics on GPU " + std::to_string(other) +
             "'s memory (cudaDevP2PAttrNativeAtomicSupported is 0)");
}

/// Collective: multiprocessors that every rank has for a kernel that waits for other ranks: those of its GPU
/// without `set_aside`, shared out among the ranks that share it; at least one. A waiting block keeps its
/// multiprocessor. If another kernel waits for its like on other GPUs, NCCL's for example, and some ranks
/// have begun with it and others with this one, each may hold what the other needs, for ever: the caller sets
/// aside what the other one takes (ncclConfig_t::maxCTAs). Throws UsageError if nothing is left.
inline int multiprocessors_left(Rank& rank, int set_aside) {
  int all = 0;
  CUDA_CHECK(cudaDeviceGetAttribute(&all, cudaDevAttrMultiProcessorCount, rank.device()));
  if (set_aside < 0 || set_aside >= all) {
    throw UsageError(std::to_string(set_aside) + " multiprocessors cannot be set aside: GPU " +
                     std::to_string(rank.device()) + " has " + std::to_string(all) + ", and one is needed");
  }
  const int own = (all - set_aside) / (rank.shares_gpu() ? rank.size() : 1);
  return std::max(1, std::ranges::min(rank.exchange(own)));
}

/// Throws Skip unless `blocks` blocks of the kernel find room on the rank's GPU at the same time: a block
/// that waits for a signal keeps its place, and one that has none could never raise its own. Ranks that share
/// a GPU share its multiprocessors. What other kernels leave of the GPU is not known here.
template <typename... Parameters>
void require_resident(const Rank& rank, void (*kernel)(Parameters...), int threads, std::size_t shared_bytes,
                      int blocks) {
  int multiprocessors = 0, each = 0;
  CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, rank.device()));
  CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, threads, shared_bytes));
  const int room = multiprocessors * each / (rank.shares_gpu() ? rank.size() : 1);
  if (blocks <= room) return;
  throw Skip("the kernel waits in " + std::to_string(blocks) + " blocks at the same time, and GPU " +
             std::to_string(rank.device()) + " has room for " + std::to_string(room) +
             (rank.shares_gpu() ? " of each rank that shares it" : ""));
}

}  // namespace overlap
