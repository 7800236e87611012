// Signals that kernels raise and await, and the check that all blocks of such a kernel are resident at the
// same time. Chapter 17 explains both.
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

/// Whether a growing word, which may overflow, has reached `value`. Compares as cuStreamWaitValue32 does.
__host__ __device__ constexpr bool has_reached(std::uint32_t word, std::uint32_t value) {
  return static_cast<std::int32_t>(word - value) >= 0;
}

/// Called by one thread: returns once the signal has reached `value`; the raiser's earlier writes are then
/// visible to this thread's ordinary loads; TMA needs a fence.proxy.async, too. Also returns once `stop`
/// (Rank::abort_flag()) is set: the kernel's results are then discarded.
__device__ inline void await_signal(std::uint32_t* word, std::uint32_t value, unsigned* stop) {
  // Another GPU writes the word: with a scope below system, loads might be served by this GPU's cache.
  const cuda::atomic_ref<std::uint32_t, cuda::thread_scope_system> signal(*word);
  const cuda::atomic_ref<unsigned, cuda::thread_scope_system> stopped(*stop);
  // `stop` is in host memory. Frequent reads of it slow down NCCL and signals (chapter 20 has the times), so
  // it is polled every ten milliseconds. (Virtual GPUs take a thread for one that waits once it has looked at
  // one word a thousand times in a row.)
  for (unsigned looks = 1; !has_reached(signal.load(cuda::memory_order_acquire), value); ++looks) {
    if (looks % 16384 == 0 && stopped.load(cuda::memory_order_acquire) != 0) return;
  }
}

/// Called by one thread: raises the signal to `value`, with release. That publishes this thread's writes, and
/// those of others that it has observed; writes of the block's other threads only if a barrier has ordered
/// them before.
__device__ inline void raise_signal(std::uint32_t* word, std::uint32_t value) {
  const cuda::atomic_ref<std::uint32_t, cuda::thread_scope_system> signal(*word);
  signal.store(value, cuda::memory_order_release);
}

/// Collective; `peer` may differ from rank to rank. Throws Skip unless kernels on the rank's GPU can read and
/// write a word of that rank's in one access, as fetch_add() and the additions of TMA do: NVLink can; PCI
/// Express may not, and only this attribute tells.
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
/// less `set_aside`, divided among the ranks that share the GPU; at least one. A waiting block keeps its
/// multiprocessor. If another kernel also waits for its peers (NCCL's, for example) and ranks start the two
/// in different orders, both may wait for ever. So the caller sets aside what the other kernel takes
/// (ncclConfig_t::maxCTAs). Throws UsageError if none is left.
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

/// Throws Skip unless `blocks` blocks of the kernel can be resident on the rank's GPU at the same time: a
/// waiting block keeps its place, so a block without one would never start, nor raise its signal. Ranks that
/// share a GPU share its multiprocessors. Other kernels on the GPU are not considered.
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
